// y = x @ W^T for dozens of rows of 16-bit x and more, with
// gemm/fragment_tile.glsl: cooperative matrices of known element layout.
//
// x passes through shared memory. A lane loads the codes of its elements of B
// matrices, scales them in registers and rounds them to the nearest value of
// x's type. A matrix of them is used for all rows of a subgroup. If a scale or
// bias is not finite, the column of y is NaN.
//
// Codes of a chunk are replaced by those of the next as soon as they are used;
// its scales and biases are prefetched. K is a multiple of a chunk.
#define TRANSPOSE 1
#define BK 64
#include "quant/tile.glsl"
#include "quant/qmm_tall.h"
#include "gemm/fragment_tile.glsl"

#define CHUNK 128
#define STEPS (CHUNK / BK)
#define GROUPS (CHUNK / GROUP) // per chunk
#define GROUP_STEPS (GROUP / BK)
#define COLUMNS (2 * FN)

// Columns with a scale or bias that is Inf or NaN, a bit each: y is NaN.
shared uint bad_columns[BN / 32];

#define PART_WORDS (BITS / 4) // words of a column's eight codes
uint codes[STEPS][COLUMNS][PARTS * PART_WORDS];
uint next_sides[GROUPS][COLUMNS]; // a scale, and a bias in the upper half
// A code in the mantissa of 256 or 16 is that number plus the code, which one
// instruction makes. Two adjacent codes of four bits take one shift for both
// places; those of eight bits have the same place, one after the other.
#define LOW_OFFSET 256.0
#define HIGH_OFFSET (BITS == 4 ? 16.0 : 256.0)
#define LOW_MASK (((1u << BITS) - 1u) << 15)
#define HIGH_MASK (BITS == 4 ? LOW_MASK << 4 : LOW_MASK)
uint low_base, high_base;
// Scale of the group, and bias less the scaled offset of each place.
float scale[COLUMNS], low_bias[COLUMNS], high_bias[COLUMNS];

uint64_t code_at[COLUMNS]; // address of the lane's codes of the first step
uint side_at[COLUMNS]; // first group of each column
uint bad; // bit c: column c is one of bad_columns
uint64_t x_at[LOADS]; // address of the invocation's pieces of x

void fetch_codes(uint s, uint k) {
  UNROLL for (uint c = 0; c < COLUMNS; ++c) {
    uint64_t at = code_at[c] + k / 8 * BITS;
#if BITS == 4
    uvec2 q = Ptr_u32x2(at).v[0];
#else
    uvec4 q = Ptr_u32x4(at).v[0];
#endif
    UNROLL for (uint w = 0; w < PARTS * PART_WORDS; ++w) {
      codes[s][c][w] = q[w];
    }
  }
}

// Fetches the scales and biases of group g of the chunk at k.
void fetch_sides(uint g, uint k) {
  UNROLL for (uint c = 0; c < COLUMNS; ++c) {
    uint64_t at = uint64_t(side_at[c] + k / GROUP + g) * 2;
    next_sides[g][c] = uint(Ptr_u16(uint64_t(scale_base) + at).v[0]) |
        (uint(Ptr_u16(uint64_t(bias_base) + at).v[0]) << 16);
  }
}

void take_sides(uint g) {
  UNROLL for (uint c = 0; c < COLUMNS; ++c) {
    vec2 side = TWO_FLOATS(next_sides[g][c]);
    if (!is_finite(side.x) || !is_finite(side.y)) {
      side = vec2(0.0);
      bad |= 1u << c;
    }
    scale[c] = side.x;
    low_bias[c] = fma(-LOW_OFFSET, side.x, side.y);
    high_bias[c] = fma(-HIGH_OFFSET, side.x, side.y);
  }
}

void fetch_x(uint k) {
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    next_a[i] = Ptr_u32x4(x_at[i] + k * 2).v[0];
  }
}

void take_bases(uint k) {
  low_base = IN_REGISTER(floatBitsToUint(LOW_OFFSET), k);
  high_base = IN_REGISTER(floatBitsToUint(HIGH_OFFSET), k);
}

// `word` with its bit `bit` moved to bit 15.
uint moved(uint word, uint bit) {
  return bit < 15 ? word << (15 - bit) : word >> (bit - 15);
}

// Weights of codes 2 p and 2 p + 1 of part u of a column.
uint weight_pair(uint s, uint c, uint u, uint p) {
  uint bit = 2 * p * BITS;
  uint word = codes[s][c][u * PART_WORDS + bit / 32];
  uint at = moved(word, bit % 32);
  uint high_at = BITS == 4 ? at : moved(word, bit % 32 + 8);
  float low = uintBitsToFloat((at & LOW_MASK) | low_base);
  float high = uintBitsToFloat((high_at & HIGH_MASK) | high_base);
  low = fma(low, scale[c], low_bias[c]);
  high = fma(high, scale[c], high_bias[c]);
  return PACK2_NUMBERS(low, high);
}

// Place in the workgroup's tile of the lane's column c.
uint column_in_tile(uint c, uint wn) {
  return wn * FN * 16 + column_of(LANE / 4) + COLUMN_AT(c / 2) +
      c % 2 * SECOND_COLUMN;
}

void set_addresses(uint row0, uint end, uint col0, uint wn) {
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    uint row = row0 + gl_LocalInvocationIndex / WIDTH + i * STRIDE;
    x_at[i] = uint64_t(x_base) + uint64_t(x_item(min(row, end - 1)) * 2) +
        gl_LocalInvocationIndex % WIDTH * 16;
  }
  UNROLL for (uint c = 0; c < COLUMNS; ++c) {
    uint n = min(col0 + column_in_tile(c, wn), A.N - 1);
    code_at[c] = uint64_t(code_row(n, A.K)) + LANE % 4 * (BITS * PARTS);
    side_at[c] = n * (A.K / GROUP);
  }
}

#if SPLIT
#define STORE_ITEM(at, v) store(Ptr_f32(part_base), at, v);
#else
#define STORE_ITEM(at, v) store(y_base, at, v);
#endif

// Stores eight items of a row.
void put_eight(uint r, uint c, uint bits, bool inside, float v[8]) {
  uint64_t at = uint64_t(r) * A.N + c;
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    v[e] = (bits >> e & 1u) != 0 ? NAN_F : v[e];
    v[e] = SPLIT != 0 ? v[e] : ROW_ITEM(inside, v[e]);
  }
  if (A.N % 8 == 0) {
#if SPLIT
    store_eight(part_base + at * 4, v);
#else
    store_eight(uint64_t(y_base) + at * 2, v);
#endif
  } else {
    for (uint e = 0; e < 8 && c + e < A.N; ++e) {
      STORE_ITEM(at + e, v[e])
    }
  }
}
#define PUT(r, c, v)                                                          \
  if (live && r < end && c < A.N) {                                           \
    uint bits = bad_columns[(c - col0) / 32] >> (c - col0) % 32;              \
    put_eight(r, c, bits, row_inside(r), v);                                  \
  }

// Sets B matrix j of half h of part u to the weights of the codes of step s.
#define FILL_COLUMNS(w, s, u, j, h)                                           \
  UNROLL for (uint r = 0; r < 2; ++r) {                                       \
    UNROLL for (uint p = 0; p < 2; ++p) {                                     \
      SET_PAIR(w, r, p, weight_pair(s, 2 * (j) + r, u, 2 * (h) + p))          \
    }                                                                         \
  }

// acc += half h of part u of the tile of x at `from` times the codes of step s.
// The few B matrices are made first, and those of A loaded as they are used.
#define MULTIPLY_HALF(s, from, u, h, NEXT)                                    \
  {                                                                           \
    MATRIX_B w[FN];                                                           \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      FILL_COLUMNS(w[j], s, u, j, h)                                          \
    }                                                                         \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      MATRIX_A x;                                                             \
      LOAD_MATRIX(x, (from) + (wm * FM + i) * 16 * PITCH + 4 * (u) + 2 * (h));\
      UNROLL for (uint j = 0; j < FN; ++j) {                                  \
        MULTIPLY(acc[i * FN + j], x, w[j], acc[i * FN + j]);                  \
      }                                                                       \
      if (i == 0) {                                                           \
        NEXT                                                                  \
      }                                                                       \
    }                                                                         \
  }

// Multiplies step s, a constant, of the chunk at k.
#define MULTIPLY_AT(s)                                                        \
  {                                                                           \
    if ((s) % GROUP_STEPS == 0) {                                             \
      take_sides((s) / GROUP_STEPS);                                          \
      fetch_sides((s) / GROUP_STEPS, min(k + CHUNK, last_chunk));             \
    }                                                                         \
    barrier();                                                                \
    MULTIPLY_HALF(s, (s) % 2 * TILE, 0, 0, {                                  \
      stash(((s) + 1) % 2 * TILE);                                            \
      fetch_x(min(k + ((s) + 2) * BK, last));                                 \
    })                                                                        \
    MULTIPLY_HALF(s, (s) % 2 * TILE, 0, 1, {})                                \
    MULTIPLY_HALF(s, (s) % 2 * TILE, 1, 0, {})                                \
    MULTIPLY_HALF(s, (s) % 2 * TILE, 1, 1, {})                                \
    fetch_codes(s, min(k + CHUNK, last_chunk) + (s) * BK);                    \
  }

void multiply(
    uint row0, uint col0, uint end, bool live, uint k_begin, uint k_end) {
  take_bases(A.K);
  uint wm = SUBGROUP % WM, wn = SUBGROUP / WM;
  MATRIX_C acc[FM * FN];
  CLEAR_FRAGMENTS(acc)
  set_addresses(row0, end, col0, wn);
  uint last = k_end - BK, last_chunk = k_end - CHUNK;
  fetch_x(k_begin);
  UNROLL for (uint s = 0; s < STEPS; ++s) {
    fetch_codes(s, k_begin + s * BK);
  }
  UNROLL for (uint g = 0; g < GROUPS; ++g) {
    fetch_sides(g, k_begin);
  }
  barrier(); // the last tile may still be read
  if (gl_LocalInvocationIndex < BN / 32) {
    bad_columns[gl_LocalInvocationIndex] = 0;
  }
  bad = 0;
  stash(0);
  fetch_x(k_begin + BK);
  for (uint k = k_begin; k < k_end; k += CHUNK) {
    MULTIPLY_AT(0)
    MULTIPLY_AT(1)
  }
  UNROLL for (uint c = 0; c < COLUMNS; ++c) {
    if ((bad >> c & 1u) != 0) {
      uint n = column_in_tile(c, wn);
      atomicOr(bad_columns[n / 32], 1u << n % 32);
    }
  }
  barrier();
  PUT_FRAGMENTS(acc, row0, col0, PUT)
}

void main() {
  multiply_tile();
}

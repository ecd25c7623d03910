// y = x @ W^T for a few dozen rows of 16-bit x, with cooperative matrices whose
// element layout is known from runtime/probe.cpp. Lanes load codes and x
// straight into their elements, without shared memory.
//
// Weights are the rows of A, rows of x the columns of B. Columns of A may be
// permuted along k if rows of B are permuted alike, so the four lanes that
// share rows of A take SPREAD / 4 contiguous items each. Marlin (Frantar et
// al., 2024) does so with repacked weights; here the weights keep MLX's layout.
//
// A subgroup computes 16 FM outputs of 16 FX rows. WN subgroups take adjacent
// outputs; WK parts alternate over spans of DEPTH chunks of 128 items of k and
// are summed at the end. A span's codes, scales and biases and AHEAD steps of x
// are prefetched into registers.
//
// Codes have four bits. They enter the product unscaled, exact in 16 bits; a group's product is
// scaled in float32, as in load_skinny.glsl.
//
// qmm_fragments_fused.comp computes outputs of several matrices (fused.glsl).
// With GATE half of a subgroup's fragments hold the gate product, half the up
// product of the same outputs.
//
// With SORTED a tile has up to 16 FX rows of one matrix, and reads its codes
// once.
#define BOTH_SETS_AT_ONCE
#if SORTED
#define TRANSPOSE 1
#define BM (16 * FX)
#define BN (16 * FM * WN)
#define BK 128
#include "quant/tile.glsl"
#else
#include "quant/operands.glsl"
#endif
#include "quant/qmm_fragments.h"
#include "quant/fragments.glsl"

#define WG (WN * WK * SG)
layout(local_size_x = WG) in;

#define CHUNK 128
#define STEPS 4 // per chunk: 32 items, 8 per lane, two matrices
#define GROUPS (CHUNK / GROUP) // per chunk
#define GROUP_STEPS (GROUP / 32)
#define SPREADS (CHUNK / SPREAD)
#define SPREAD_STEPS (SPREAD / 32)
#define SPREAD_WORDS SPREAD_STEPS // words of codes in a lane's quarter block
#define CHUNK_WORDS STEPS
#define TILES (FM * FX)
#ifndef FUSED
#define outputs() A.N
#define GATE 0
#endif
#if GATE
#define WEIGHT_SETS 2
#else
#define WEIGHT_SETS 1
#endif
#define SET_FRAGMENTS (FM / WEIGHT_SETS) // fragments per set
#define SET_TILES (TILES / WEIGHT_SETS)

// Tiles of sums staged in shared memory at a time.
#define TILE_SUMS (8 * SG)
#define AT_ONCE MIN_(TILES, 32 / (WN * WK))
#define MIN_(a, b) ((a) < (b) ? (a) : (b))
#if WK > 1
#if GATE && TILES * WN * WK > 32
#error "a gate and what it gates must be summed at once"
#endif
shared float stage[WN * WK * AT_ONCE * TILE_SUMS];

// Index in `stage` of element e of tile f of part p.
uint stage_at(uint p, uint f, uint e) {
  return ((p * WN + SUBGROUP % WN) * AT_ONCE + f) * TILE_SUMS + e * SG + LANE;
}
float sum_of_parts(uint f, uint e) {
  float sum = 0.0;
  UNROLL for (uint p = 0; p < WK; ++p) {
    sum += stage[stage_at(p, f, e)];
  }
  return sum;
}
#endif

uint codes[DEPTH][2 * FM][CHUNK_WORDS];
uvec4 items[AHEAD][2 * FX];
// Scales and biases of the current and the next span, packed as in memory.
#define SPAN_GROUPS (DEPTH * GROUPS)
#define SIDE_WORDS ((SPAN_GROUPS + 1) / 2)
uint sides[2 * FM][2][SIDE_WORDS], next_sides[2 * FM][2][SIDE_WORDS];

uint part;
uint m0, n0; // first row of x and first output of the subgroup
uint m_end; // end of the tile's rows
uint spans;
uint64_t code_at[2 * FM]; // address of the lane's codes, per row of A
uint64_t x_at[2 * FX]; // address of the lane's items of x, per column of B
uint side_at[2 * FM]; // first group of each row of C
uint64_t sides_of_set[WEIGHT_SETS][2]; // addresses of scales and biases

MATRIX_C acc[TILES]; // scaled sums
MATRIX_C sums[TILES]; // sums of one group
MATRIX_C x_sums[FX];

void fetch_codes(uint d, uint chunk) {
  UNROLL for (uint r = 0; r < 2 * FM; ++r) {
    UNROLL for (uint g = 0; g < SPREADS; ++g) {
      uint64_t at = code_at[r] + (chunk * SPREADS + g) * (SPREAD * BITS / 8);
#if SPREAD_WORDS % 4 == 0
      UNROLL for (uint w = 0; w < SPREAD_WORDS; w += 4) {
        uvec4 q = Ptr_u32x4(at).v[w / 4];
        UNROLL for (uint i = 0; i < 4; ++i) {
          codes[d][r][g * SPREAD_WORDS + w + i] = q[i];
        }
      }
#else
      uvec2 q = Ptr_u32x2(at).v[0];
      codes[d][r][g * SPREAD_WORDS] = q.x;
      codes[d][r][g * SPREAD_WORDS + 1] = q.y;
#endif
    }
  }
}

void fetch_sides(uint span) {
  bool live = span < spans;
  span = min(span, spans - 1);
  UNROLL for (uint r = 0; r < 2 * FM; ++r) {
    UNROLL for (uint i = 0; i < 2; ++i) {
      uint64_t at = sides_of_set[r / (2 * SET_FRAGMENTS)][i] +
          uint64_t(side_at[r] + span * SPAN_GROUPS) * 2;
#if SPAN_GROUPS == 1
      next_sides[r][i][0] = Ptr_u16(at).v[0];
#elif SPAN_GROUPS == 2
      next_sides[r][i][0] = Ptr_u32(at).v[0];
#else
      uvec2 q = Ptr_u32x2(at).v[0];
      next_sides[r][i][0] = q.x;
      next_sides[r][i][1] = q.y;
#endif
#if EMULATED
      UNROLL for (uint w = 0; w < SIDE_WORDS; ++w) {
        next_sides[r][i][w] = live ? next_sides[r][i][w] : 0;
      }
#endif
    }
  }
}

void take_sides() {
  UNROLL for (uint r = 0; r < 2 * FM; ++r) {
    UNROLL for (uint w = 0; w < SIDE_WORDS; ++w) {
      sides[r][0][w] = next_sides[r][0][w];
      sides[r][1][w] = next_sides[r][1][w];
    }
  }
}

// Scale or bias of group g of the span.
float side_value(uint r, uint i, uint g) {
  uint bits = sides[r][i][g / 2] >> (g % 2 * 16);
#ifdef T_IS_bf16
  return bf16_to_f32(uint16_t(bits & 0xffffu));
#else
  return f16_to_f32(uint16_t(bits & 0xffffu));
#endif
}

// Spans beyond the last repeat it; their values are not used.
uint chunk_of(uint span, uint d) {
  return min(span, spans - 1) * DEPTH + d;
}

void fetch_x(uint chunk, uint s) {
  uint k = chunk * CHUNK + s / SPREAD_STEPS * SPREAD + s % SPREAD_STEPS * 8;
  UNROLL for (uint r = 0; r < 2 * FX; ++r) {
    items[s % AHEAD][r] = Ptr_u32x4(x_at[r] + k * 2).v[0];
  }
}

// Eight codes as pairs of 16-bit floats.
uvec4 code_pairs(uint d, uint r, uint s) {
  return word_pairs(codes[d][r][s]);
}

// Scales the sums of group g of a chunk and adds them to acc.
void scale_sums(uint d, uint g) {
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint r = 0; r < 2; ++r) {
      float scale = side_value(2 * i + r, 0, d * GROUPS + g);
      float bias =
          fma(-CODE_OFFSET, scale, side_value(2 * i + r, 1, d * GROUPS + g));
      UNROLL for (uint c = 0; c < 4; ++c) {
        uint e = ELEMENT(r, c);
        UNROLL for (uint j = 0; j < FX; ++j) {
          float sum = fma(sums[i * FX + j][e], scale, acc[i * FX + j][e]);
          acc[i * FX + j][e] = fma(x_sums[j][e], bias, sum);
        }
      }
    }
  }
}

// Multiplies step s of chunk d of a span and prefetches x.
void multiply_step(uint span, uint d, uint s) {
  uvec4 x[2 * FX];
  UNROLL for (uint r = 0; r < 2 * FX; ++r) {
    x[r] = item_pairs(items[s % AHEAD][r]);
  }
  uint next = d + (s + AHEAD) / STEPS;
  fetch_x(chunk_of(span + next / DEPTH * WK, next % DEPTH), (s + AHEAD) % STEPS);
  bool first = s % GROUP_STEPS == 0;
  UNROLL for (uint h = 0; h < 2; ++h) {
    MATRIX_B b[FX];
    UNROLL for (uint j = 0; j < FX; ++j) {
      UNROLL for (uint r = 0; r < 2; ++r) {
        SET_PAIR(b[j], r, 0, x[2 * j + r][2 * h]);
        SET_PAIR(b[j], r, 1, x[2 * j + r][2 * h + 1]);
      }
      MATRIX_C none = MATRIX_ZERO;
      if (!(first && h == 0)) {
        none = x_sums[j];
      }
      MULTIPLY(x_sums[j], MATRIX_ONES, b[j], none);
    }
    UNROLL for (uint i = 0; i < FM; ++i) {
      MATRIX_A a;
      UNROLL for (uint r = 0; r < 2; ++r) {
        uvec4 q = code_pairs(d, 2 * i + r, s);
        SET_PAIR(a, r, 0, q[2 * h]);
        SET_PAIR(a, r, 1, q[2 * h + 1]);
      }
      UNROLL for (uint j = 0; j < FX; ++j) {
        MATRIX_C none = MATRIX_ZERO;
        if (!(first && h == 0)) {
          none = sums[i * FX + j];
        }
        MULTIPLY(sums[i * FX + j], a, b[j], none);
      }
    }
  }
  if (s % GROUP_STEPS == GROUP_STEPS - 1) {
    scale_sums(d, s / GROUP_STEPS);
  }
}

void multiply_chunk(uint span, uint d) {
  UNROLL for (uint s = 0; s < STEPS; ++s) {
    multiply_step(span, d, s);
  }
  fetch_codes(d, chunk_of(span + WK, d));
}

// Row and output of element e of a tile of C.
uvec2 place_of(uint tile, uint e) {
  return uvec2(
      m0 + tile % FX * 16 + FRAGMENT_COLUMN(e),
      n0 + tile / FX * 16 + FRAGMENT_ROW(e));
}

#if SORTED
void store_sum(bool live, uint m, uint n, float sum) {
  if (m < m_end && n < A.N) {
    store(y_base, uint64_t(m) * A.N + n, ROW_ITEM(row_inside(m), sum));
  }
}
#else
#define store_sum store_y
#endif

#if !GATE
#define STORE(live, tile, e, sum_of)                                          \
  {                                                                           \
    uvec2 at_ = place_of(tile, e);                                            \
    store_sum(live, at_.x, at_.y, sum_of(tile, e));                           \
  }
#else
#define STORE(live, tile, e, sum_of)                                          \
  {                                                                           \
    uvec2 at_ = place_of(tile, e);                                            \
    store_gated(                                                              \
        live, at_.x, at_.y, sum_of(tile, e), sum_of(tile + SET_TILES, e));    \
  }
#endif

// Sums the parts and stores; part p takes elements p, p + WK, ...
void store_sums(bool live) {
#if WK == 1
#define OWN_SUM(tile, e) acc[tile][e]
  UNROLL for (uint f = 0; f < SET_TILES; ++f) {
    UNROLL for (uint e = 0; e < 8; ++e) {
      STORE(live, f, e, OWN_SUM)
    }
  }
#else
  UNROLL for (uint first = 0; first < TILES; first += AT_ONCE) {
    barrier();
    UNROLL for (uint f = 0; f < AT_ONCE; ++f) {
      if (first + f < TILES) {
        UNROLL for (uint e = 0; e < 8; ++e) {
          stage[stage_at(part, f, e)] = acc[first + f][e];
        }
      }
    }
    barrier();
#define SUM_OF_PARTS(tile, e) sum_of_parts((tile) - first, e)
    uint count = min(AT_ONCE / WEIGHT_SETS, SET_TILES - first) * 8;
    for (uint i = part; i < count; i += WK) {
      STORE(live, first + i / 8, i % 8, SUM_OF_PARTS)
    }
  }
#endif
}

void find_rows() {
  uint quarter = LANE % 4;
  uint last = outputs() - 1;
  UNROLL for (uint i = 0; i < 2 * FM; ++i) {
    uint set = i / (2 * SET_FRAGMENTS);
#if GATE
    locate_set(set);
#endif
    sides_of_set[set][0] = uint64_t(scale_base);
    sides_of_set[set][1] = uint64_t(bias_base);
    uint r = n0 + i / 2 % SET_FRAGMENTS * 16 + FRAGMENT_ROW(ELEMENT(i % 2, 0));
    code_at[i] = uint64_t(code_row(min(r, last), A.K)) +
        quarter * (SPREAD / 4 * BITS / 8);
    side_at[i] = min(r, last) * (A.K / GROUP);
  }
  UNROLL for (uint i = 0; i < 2 * FX; ++i) {
    uint r = m0 + i / 2 * 16 + FRAGMENT_ROW(ELEMENT(i % 2, 0));
    r = min(r, m_end - 1);
#if SORTED
    x_at[i] = uint64_t(x_base) + uint64_t(x_item(r) * 2);
#else
    x_at[i] = uint64_t(x_row(r));
#endif
    x_at[i] += quarter * (SPREAD / 4 * 2);
  }
}

// Computes the outputs of the subgroup's rows and columns of a tile.
void multiply_spans(bool live) {
  spans = A.K / (CHUNK * DEPTH);
  find_rows();
  UNROLL for (uint f = 0; f < TILES; ++f) {
    acc[f] = MATRIX_ZERO;
  }
  fetch_sides(part);
  UNROLL for (uint d = 0; d < DEPTH; ++d) {
    fetch_codes(d, chunk_of(part, d));
  }
  UNROLL for (uint s = 0; s < AHEAD; ++s) {
    fetch_x(chunk_of(part, 0), s);
  }
  for (uint span = part; EACH_SPAN(span); span += WK) {
    take_sides();
    fetch_sides(span + WK);
    // Not a loop: NVIDIA's compiler does not unroll a long one, and then puts
    // the arrays that it indexes in memory.
    multiply_chunk(span, 0);
#if DEPTH > 1
    multiply_chunk(span, 1);
#endif
  }
  store_sums(live);
}

#if SORTED
void multiply(
    uint row, uint column, uint end, bool live, uint k_begin, uint k_end) {
  m0 = row;
  m_end = end;
  n0 = column + SUBGROUP % WN * (16 * FM);
  multiply_spans(live);
}
#endif

void main() {
  part = SUBGROUP / WN;
  take_code_base(A.K);
#if SORTED
  multiply_sorted(group_index());
#else
  Tile tile = own_tile();
  locate(tile.product);
#ifndef FUSED
  // Tiles with the same weights are adjacent in dispatch order, for cache
  // reuse.
  uint i = tile.m * A.n_tiles + tile.n;
  tile.m = i % A.m_tiles;
  tile.n = i / A.m_tiles;
#endif
  m0 = tile.m * (16 * FX);
  m_end = A.M;
  n0 = (tile.n * WN + SUBGROUP % WN) * (16 * SET_FRAGMENTS);
  multiply_spans(tile.live);
#endif
}

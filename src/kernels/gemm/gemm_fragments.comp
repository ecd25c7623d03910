// Tiled matrix product of 16-bit floats with cooperative matrices whose elements
// lie as NVIDIA's do, which runtime/probe.cpp has found; otherwise as
// gemm_coopmat.comp. Rows of a and columns of b lie along k, in whole pieces of
// eight; a tile is wholly inside, and k is a multiple of BK.
//
// a goes through shared memory, b does not: a lane loads the eight items of k
// that its elements of two B's have, straight into registers, as soon as those of
// the step before are used. So which items of k the matrices of a step stand for
// is the lanes' choice: lane t of four has items 8 t to 8 t + 7, the first half
// for one matrix, the second for the other. a is stored in that order: pair q of
// piece t as pair t of piece q.
//
// Which column of b a column of B stands for is free as well: a lane of two C's
// has eight columns in a row, and stores them at once.
#include "gemm/product.glsl"

#define SUBGROUPS (WM * WN)
#include "common/matrix_elements.glsl"
#include "common/pairs.glsl"

#define BK 32
#define WIDTH (BK / 8)
#define PITCH (WIDTH + 1) // of rows in uvec4, against bank conflicts
#define WG (SUBGROUPS * SG)
#define FM (BM / (16 * WM)) // fragments of a subgroup
#define FN (BN / (16 * WN))
#define LOADS (BM * WIDTH / WG)
#define STRIDE (WG / WIDTH) // rows from one load to the next
#define TILE (BM * PITCH)

layout(local_size_x = WG) in;

// One tile is multiplied, while the next is stored and the one after it waits in
// registers.
shared uvec4 tiles[2 * TILE];
uvec4 next_a[LOADS];
uvec4 own_b[2 * FN];

uint64_t from_a; // of the invocation's first piece at k 0
int64_t step_a; // from one piece to the next, in bytes
uint64_t from_b; // the lane's first column at k 0

void fetch(uint k0) {
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    next_a[i] = Ptr_u32x4(from_a + k0 * 2 + uint64_t(int64_t(i) * step_a)).v[0];
  }
}

void stash(uint at) {
  uint row = gl_LocalInvocationIndex / WIDTH;
  uint piece = gl_LocalInvocationIndex % WIDTH;
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    UNROLL for (uint q = 0; q < 4; ++q) {
      tiles[at + (row + i * STRIDE) * PITCH + q][piece] = next_a[i][q];
    }
  }
}

// Of a column of C: which of its lane's four it is, and which of the four lanes
// that share a row has it.
uint place_in_lane(uint column) {
  return BIT(column, PLACE_C(5 + LOW_BIT_C)) |
      BIT(column, PLACE_C(5 + HIGH_BIT_C)) << 1;
}
uint lane_of(uint column) {
  uint lane = 0, at = 0;
  [[unroll]] for (uint i = 0; i < 5; ++i) {
    if (PLACE_C(i) < 4) {
      lane |= BIT(column, PLACE_C(i)) << at;
      ++at;
    }
  }
  return lane;
}

// The column of b for column c of the first of two B's, of their 32.
uint column_of(uint c) {
  return lane_of(c) * 8 + place_in_lane(c);
}
// From a lane's first column of B number 0 to that of B number j, and to the
// second of the same.
#define COLUMN_AT(j) ((j) / 2 * 32 + (j) % 2 * 4)
#define SECOND_COLUMN                                                         \
  column_of(element_item(FRAGMENT_B, ELEMENT_B(1, 0, 0)) % 16)

void aim(uint row0, uint col0, uint wn) {
  uint slow = gl_LocalInvocationIndex / WIDTH;
  uint fast = gl_LocalInvocationIndex % WIDTH * 8;
  Index a = Index(row0 + slow) * A.a_row + Index(fast);
  from_a = uint64_t(base_a) + uint64_t(int64_t(a) * 2);
  step_a = int64_t(A.a_row) * (STRIDE * 2);
  uint column = col0 + wn * FN * 16 + column_of(lane_item(FRAGMENT_B) % 16);
  Index b = Index(column) * A.b_col + Index(lane_quarter() * 8);
  from_b = uint64_t(base_b) + uint64_t(int64_t(b) * 2);
}

#define LOAD_COLUMN(j, second, k0)                                            \
  Ptr_u32x4(                                                                  \
      from_b + (k0) * 2 +                                                     \
      uint64_t(                                                               \
          int64_t(COLUMN_AT(j) + (second) * SECOND_COLUMN) *                  \
          int64_t(A.b_col) * 2))                                              \
      .v[0]
#define LOAD_COLUMNS(j, k0)                                                   \
  own_b[2 * (j)] = LOAD_COLUMN(j, 0, k0);                                     \
  own_b[2 * (j) + 1] = LOAD_COLUMN(j, 1, k0);

#if EMULATED
float[8] loaded(uint at) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint item = lane_item(FRAGMENT_A) | element_item(FRAGMENT_A, e);
    uint pair = tiles[at + item / 16 * PITCH + item % 16 / 8][item % 8 / 2];
    m[e] = item % 2 == 0 ? LOW_ITEM(pair) : HIGH_ITEM(pair);
  }
  return m;
}
#define LOAD_MATRIX(m, at) m = loaded(at)
#else
#define LOAD_MATRIX(m, at) coopMatLoad(m, tiles, at, PITCH, ROW_MAJOR)
#endif

// The A's of half h of the tile at `from`.
#define LOAD_ROWS(x, from, h)                                                 \
  UNROLL for (uint i = 0; i < FM; ++i) {                                      \
    LOAD_MATRIX(x[i], (from) + (wm * FM + i) * 16 * PITCH + 2 * (h));         \
  }

#define MULTIPLY_COLUMNS(acc, x, j, h)                                        \
  {                                                                           \
    MATRIX_B w;                                                               \
    UNROLL for (uint r = 0; r < 2; ++r) {                                     \
      SET_PAIR(w, ELEMENT_B, r, 0, own_b[2 * (j) + r][2 * (h)])               \
      SET_PAIR(w, ELEMENT_B, r, 1, own_b[2 * (j) + r][2 * (h) + 1])           \
    }                                                                         \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      MULTIPLY(acc[i * FN + j], x[i], w, acc[i * FN + j]);                    \
    }                                                                         \
  }

// acc += the product of the tile at `from` and what the lane has of b, which of
// k_next takes the place of. The tile after next goes to registers, and those to
// `to`. A macro, as acc is to stay in registers.
#define MULTIPLY_STEP(acc, from, to, k_next, k_after)                         \
  {                                                                           \
    MATRIX_A x[FM];                                                           \
    LOAD_ROWS(x, from, 0)                                                     \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      MULTIPLY_COLUMNS(acc, x, j, 0)                                          \
      if (j == 0) {                                                           \
        stash(to);                                                            \
        fetch(k_after);                                                       \
      }                                                                       \
    }                                                                         \
    LOAD_ROWS(x, from, 1)                                                     \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      MULTIPLY_COLUMNS(acc, x, j, 1)                                          \
      LOAD_COLUMNS(j, k_next)                                                 \
    }                                                                         \
  }

// Eight items of a row.
void put_eight(Y_PTR y, uint r, uint c, float v[8]) {
#if AXPBY
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    v[e] = A.alpha * v[e] +
        A.beta * load(base_c, Index(r) * A.c_row + Index(c + e) * A.c_col);
  }
#endif
  Index at = Index(r) * Index(A.n) + Index(c);
  uint64_t to = uint64_t(y) + uint64_t(int64_t(at) * Y_SIZE);
#if SPLIT
  Ptr_f32x4(to).v[0] = vec4(v[0], v[1], v[2], v[3]);
  Ptr_f32x4(to).v[1] = vec4(v[4], v[5], v[6], v[7]);
#else
  uvec4 q;
  [[unroll]] for (uint p = 0; p < 4; ++p) {
    q[p] = pack2(v[2 * p], v[2 * p + 1]);
  }
  Ptr_u32x4(to).v[0] = q;
#endif
}

void multiply(uint tile) {
  uvec2 origin = tile_at(tile) * uvec2(BM, BN);
  // The last tiles overlap those before them, and leave to them what is theirs.
  uint row0 = min(origin.x, A.m - BM), col0 = min(origin.y, A.n - BN);
  uint wm = SUBGROUP % WM, wn = SUBGROUP / WM;

  MATRIX_C acc[FM * FN];
  UNROLL for (uint i = 0; i < FM * FN; ++i) {
    acc[i] = MATRIX_ZERO;
  }
  aim(row0, col0, wn);
  uint last = k_end - BK;
  fetch(k_begin);
  UNROLL for (uint j = 0; j < FN; ++j) {
    LOAD_COLUMNS(j, k_begin)
  }
  stash(0);
  fetch(min(k_begin + BK, last));
  uint from = 0;
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    MULTIPLY_STEP(
        acc, from, TILE - from, min(k0 + BK, last), min(k0 + 2 * BK, last))
    from = TILE - from;
  }

  Y_PTR y = y_matrix();
  uint place = lane_item(FRAGMENT_C);
  uint row = row0 + wm * FM * 16 + place / 16;
  uint column = col0 + wn * FN * 16 + lane_of(place % 16) * 8;
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint second = 0; second < 2; ++second) {
      uint r = row + i * 16 +
          element_item(FRAGMENT_C, ELEMENT_C(second, 0)) / 16;
      UNROLL for (uint j = 0; j < FN; j += 2) {
        float v[8];
        [[unroll]] for (uint e = 0; e < 8; ++e) {
          v[e] = acc[i * FN + j + e / 4][ELEMENT_C(second, e % 4)];
        }
        uint c = column + j * 16;
        if (r >= origin.x && c >= origin.y) {
          put_eight(y, r, c, v);
        }
      }
    }
  }
}

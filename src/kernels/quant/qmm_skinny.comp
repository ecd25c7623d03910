// y = x @ W^T for a few dozen rows of 16-bit x, with cooperative matrices.
// Bound by memory bandwidth: weights are read once.
//
// A workgroup computes 16 FM x 16 FN WN outputs. Its WK parts alternate over
// units of 64 items of k and are summed at the end; the WN subgroups of a part
// share its x. DEPTH units are prefetched into registers. Halves of a unit are
// expanded to 16-bit floats in shared memory, from which fragments are loaded.
//
// Codes enter the product unscaled, exact in 16 bits, and a group's product is
// scaled in float32: more accurate than rounded weights and fewer instructions.
// Integers are 2^BITS + code, which takes one `or`; the offset times the sum of
// x (a product with ones) is folded into the bias.
#include "quant/operands.glsl"
#include "common/matrices.glsl"
#include "common/constants.glsl"
#include "quant/code_items.glsl"

#define WG (WN * WK * SG)
#define PART (WN * SG) // invocations that share a tile of x
#define UNIT 64
#define BM (16 * FM)
#define ROWS (16 * FN) // rows of w per subgroup
#define BN (ROWS * WN)

// Half s of a unit (four chunks of 16 items) consists of chunks s and s + 2, so
// that two invocations, reading 32 items each, both contribute to it. Sizes are
// in uvec4 of eight items; one uvec4 per chunk row and four before the second
// chunk avoid bank conflicts.
#define PITCH 3
#define CHUNK_X (BM * PITCH + 4)
#define CHUNK_W (ROWS * PITCH + 4)
#define TILE_X (2 * CHUNK_X)
#define TILE_W (2 * CHUNK_W)

#define LOADS_X (BM * 8 / PART) // uvec4 per unit; half of them per half unit
#define RUNS (ROWS * 2 / SG) // runs of 32 codes
#define GROUPS (GROUP < UNIT ? UNIT / GROUP : 1) // groups per unit
#define SPAN (GROUP > UNIT && DEPTH % 2 == 0 ? 2 : 1) // units that share scales
#define SIDES (GROUPS * ROWS)
#define LOADS_SIDE ((SIDES + SG - 1) / SG)
#define AFFINE (SIDE == SIDE_BIASES)

layout(local_size_x = WG) in;

shared uvec4 tile_x[WK * TILE_X];
shared uvec4 tile_w[WN * WK * TILE_W];
shared vec2 side[WN * WK * SIDES]; // scale and bias by group and row
shared float stage[WN * WK * 256];

uint codes[DEPTH][RUNS][BITS];
uvec4 items[DEPTH][LOADS_X];
vec2 sides[DEPTH][LOADS_SIDE];

uint lane, part_lane; // in the subgroup; in the part
uint part, column; // index of the part; of the subgroup in the part
uint m0, n0; // first row of x and of w of the subgroup
uint own_x, own_w, own_side; // start of its tiles in shared memory
// Column of each element that this invocation holds of a fragment of y, for any
// layout; set by find_columns().
#define ITEMS_Y (256 / SG)
uint columns[ITEMS_Y];

MATRIX_C acc[FM * FN]; // scaled sums
MATRIX_C sums[FM * FN]; // sums of one group
MATRIX_C x_sums[FM];

void sync() {
#if WN > 1
  barrier();
#else
  subgroupMemoryBarrierShared();
  subgroupBarrier();
#endif
}

// Row of w, and half of the unit, of run i.
#define RUN_ROW(i) ((lane + (i) * SG) / 2)
#define RUN_HALF (lane % 2)

void fetch_codes(uint b, uint unit) {
  uint k = unit * UNIT + RUN_HALF * 32;
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    [[unroll]] for (uint j = 0; j < BITS; ++j) {
      codes[b][i][j] = 0;
    }
    if (k < A.K) {
      Ptr_u32 row = code_row(min(n0 + RUN_ROW(i), A.N - 1), A.K);
      uint64_t at = uint64_t(row) + k / 8 * BITS;
#if BITS % 4 == 0
      [[unroll]] for (uint j = 0; j < BITS; j += 4) {
        uvec4 q = Ptr_u32x4(at).v[j / 4];
        codes[b][i][j] = q.x;
        codes[b][i][j + 1] = q.y;
        codes[b][i][j + 2] = q.z;
        codes[b][i][j + 3] = q.w;
      }
#elif BITS % 2 == 0
      [[unroll]] for (uint j = 0; j < BITS; j += 2) {
        uvec2 q = Ptr_u32x2(at).v[j / 2];
        codes[b][i][j] = q.x;
        codes[b][i][j + 1] = q.y;
      }
#else
      [[unroll]] for (uint j = 0; j < BITS; ++j) {
        codes[b][i][j] = load(Ptr_u32(at), j);
      }
#endif
    }
  }
}

void fetch_sides(uint b, uint unit) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    uint e = lane + i * SG;
    uint k = unit * UNIT + e / ROWS * GROUP;
    sides[b][i] = vec2(0.0);
    if (k < A.K && e < SIDES) {
      uint64_t group = group_of(min(n0 + e % ROWS, A.N - 1), A.K, k);
      sides[b][i] =
          vec2(load_scale(scale_base, group), load_bias(group));
    }
  }
}

// Row, chunk and uvec4 of load i.
#define X_ROW(i) ((part_lane + (i) % (LOADS_X / 2) * PART) / 4)
#define X_CHUNK (part_lane / 2 % 2)
#define X_PIECE (part_lane % 2)

void fetch_x(uint b, uint unit) {
  [[unroll]] for (uint i = 0; i < LOADS_X; ++i) {
    uint s = i / (LOADS_X / 2);
    uint k = unit * UNIT + (2 * X_CHUNK + s) * 16 + X_PIECE * 8;
    items[b][i] = uvec4(0);
    if (k < A.K) {
      T_PTR row = x_row(min(m0 + X_ROW(i), A.M - 1));
      items[b][i] = Ptr_u32x4(uint64_t(row) + k * 2).v[0];
    }
  }
}

void fetch(uint b, uint unit) {
  fetch_codes(b, unit);
  fetch_x(b, unit);
  if (b % SPAN == 0) {
    fetch_sides(b, unit);
  }
}

// Eight codes of a run, starting at `first`.
uvec4 code_items(uint b, uint i, uint first) {
#if INTERLEAVED
  return word_pairs(codes[b][i][first / 8]);
#else
  uvec4 q;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    uint at = first + 2 * c;
    q[c] = code_pair(CODE_IN(codes[b][i], at), CODE_IN(codes[b][i], at + 1));
  }
  return q;
#endif
}

void stash_codes(uint b, uint s) {
  REQUIRE(codes[0].length() * SG == ROWS * 2 && SG % 2 == 0)
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint at = own_w + RUN_HALF * CHUNK_W + RUN_ROW(i) * PITCH;
    tile_w[at] = code_items(b, i, s * 16);
    tile_w[at + 1] = code_items(b, i, s * 16 + 8);
  }
}

void stash_x(uint b, uint s) {
  REQUIRE(items[0].length() * PART == BM * 8 && LOADS_X % 2 == 0)
  REQUIRE(PART % 4 == 0)
  [[unroll]] for (uint i = 0; i < LOADS_X / 2; ++i) {
    tile_x[own_x + X_CHUNK * CHUNK_X + X_ROW(i) * PITCH + X_PIECE] =
        item_pairs(items[b][s * (LOADS_X / 2) + i]);
  }
}

void stash_sides(uint b) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    uint e = lane + i * SG;
    if (SIDES % SG == 0 || e < SIDES) {
      float scale = sides[b][i].x;
      side[own_side + e] =
          vec2(scale, fma(-CODE_OFFSET, scale, sides[b][i].y));
    }
  }
}

// Scales the sums of group g of the unit, adds them to acc, and clears them.
void scale_sums(uint g) {
  [[unroll]] for (uint j = 0; j < FN; ++j) {
    uint at = own_side + g * ROWS + j * 16;
    [[unroll]] for (uint e = 0; e < ITEMS_Y; ++e) {
      vec2 scale = side[at + columns[e]];
      [[unroll]] for (uint i = 0; i < FM; ++i) {
        float sum = acc[i * FN + j][e];
        sum = fma(sums[i * FN + j][e], scale.x, sum);
#if AFFINE
        sum = fma(x_sums[i][e], scale.y, sum);
#endif
        acc[i * FN + j][e] = sum;
      }
    }
    [[unroll]] for (uint i = 0; i < FM; ++i) {
      sums[i * FN + j] = MATRIX_C(0.0);
    }
  }
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    x_sums[i] = MATRIX_C(0.0);
  }
}

// Multiplies chunk h of the half unit in shared memory.
void multiply_chunk(uint h) {
  MATRIX_A x[FM];
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    coopMatLoad(
        x[i], tile_x, own_x + h * CHUNK_X + i * 16 * PITCH, PITCH,
        ROW_MAJOR);
#if AFFINE
    x_sums[i] = coopMatMulAdd(x[i], MATRIX_B(Item(1.0)), x_sums[i]);
#endif
  }
  [[unroll]] for (uint j = 0; j < FN; ++j) {
    MATRIX_B w;
    coopMatLoad(
        w, tile_w, own_w + h * CHUNK_W + j * 16 * PITCH, PITCH,
        COLUMN_MAJOR);
    [[unroll]] for (uint i = 0; i < FM; ++i) {
      sums[i * FN + j] = coopMatMulAdd(x[i], w, sums[i * FN + j]);
    }
  }
}

// Multiplies the unit in registers b, then prefetches unit `next` into them.
void multiply_unit(uint b, uint next) {
  [[unroll]] for (uint s = 0; s < 2; ++s) {
    sync();
    if (s == 0 && b % SPAN == 0) {
      stash_sides(b);
    }
    stash_codes(b, s);
    stash_x(b, s);
    sync();
    if (s == 1) {
      fetch(b, next);
    }
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      multiply_chunk(h);
      if (GROUP <= 32) {
        scale_sums((2 * h + s) * 16 / GROUP);
      }
    }
  }
  if (GROUP > 32 && b % SPAN == SPAN - 1) {
    scale_sums(0);
  }
}

bool live; // whether the tile is stored, see own_tile()
#define STORE_SUM(m, n, sum) store_y(live, m, n, sum);
#include "gemm/skinny_sums.glsl"

void find_columns() {
  uint corner = gl_SubgroupID * 256;
  for (uint e = lane; e < 256; e += SG) {
    stage[corner + e] = float(e % 16);
  }
  subgroupMemoryBarrierShared();
  subgroupBarrier();
  MATRIX_C numbers;
  coopMatLoad(
      numbers, stage, corner, 16, ROW_MAJOR);
  [[unroll]] for (uint e = 0; e < ITEMS_Y; ++e) {
    columns[e] = uint(numbers[e]);
  }
}

void main() {
  Tile tile = own_tile();
  locate(tile.product);
  lane = gl_SubgroupInvocationID;
  column = gl_SubgroupID % WN;
  part = gl_SubgroupID / WN;
  part_lane = column * SG + lane;
  own_x = part * TILE_X;
  own_w = gl_SubgroupID * TILE_W;
  own_side = gl_SubgroupID * SIDES;
  take_code_base(A.K);
  find_columns();
  // Tiles with the same weights are adjacent in dispatch order, for cache
  // reuse.
  uint i = tile.m * A.n_tiles + tile.n;
  m0 = i % A.m_tiles * BM;
  n0 = i / A.m_tiles * BN + column * ROWS;

  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    acc[f] = MATRIX_C(0.0);
    sums[f] = MATRIX_C(0.0);
  }
  [[unroll]] for (uint f = 0; f < FM; ++f) {
    x_sums[f] = MATRIX_C(0.0);
  }
  // A part takes DEPTH consecutive units at a time. All parts iterate equally
  // often; units beyond K are zero.
  uint unit = part * DEPTH;
  [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
    fetch(d, unit + d);
  }
  for (uint k = 0; k < A.K; k += UNIT * DEPTH * WK) {
    unit += DEPTH * WK;
    [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
      multiply_unit(d, unit + d);
    }
  }
  live = tile.live;
  store_sums(m0, n0 - column * ROWS);
}

// y = x @ W^T for a few dozen rows of x: a part of gemm/rows_skinny.comp.
//
// Codes enter the product unscaled, exact in 16 bits, and a group's product is
// scaled in float32: more accurate than rounded weights and fewer instructions.
// Integers are 2^BITS + code, which takes one `or`; the offset times the sum of
// x (a product with ones) is folded into the bias.
#include "quant/operands.glsl"
#include "quant/code_items.glsl"

uint k_end;
// Two invocations, reading 32 codes each, both contribute to each half.
#define CHUNK_OF(c, s) (2 * (c) + (s))
#define SPAN (GROUP > 64 && DEPTH % 2 == 0 ? 2 : 1) // units that share scales
#define SCALED_SUMS 1
#define SUMS_OF_A (SIDE == SIDE_BIASES)
void scale_sums(uint g);
#if GROUP <= 32
#define END_CHUNK(c, s) scale_sums(CHUNK_OF(c, s) * 16 / GROUP);
#else
#define END_UNIT(d)                                                           \
  if (d % SPAN == SPAN - 1) {                                                 \
    scale_sums(0);                                                            \
  }
#endif
#include "gemm/skinny_tile.glsl"

#define RUNS (ROWS * 2 / SG) // runs of 32 codes
#define GROUPS (GROUP < UNIT ? UNIT / GROUP : 1) // groups per unit
#define SIDES (GROUPS * ROWS)
#define LOADS_SIDE ((SIDES + SG - 1) / SG)

shared vec2 side[WN * WK * SIDES]; // scale and bias by group and row

uint codes[DEPTH][RUNS][BITS];
vec2 sides[DEPTH][LOADS_SIDE];
uint own_side; // start of the subgroup's in shared memory
// Column of each element that this invocation holds of a fragment of y, for any
// layout; set by find_columns().
#define ITEMS_Y (256 / SG)
uint columns[ITEMS_Y];

uint64_t row_address(uint m) {
  return uint64_t(x_row(min(m, A.M - 1)));
}

// Row of w, and half of the unit, of run i.
#define RUN_ROW(i) ((lane + (i) * SG) / 2)
#define RUN_HALF (lane % 2)

void fetch_codes(uint d, uint k0) {
  uint k = k0 + RUN_HALF * 32;
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    [[unroll]] for (uint j = 0; j < BITS; ++j) {
      codes[d][i][j] = 0;
    }
    if (k < k_end) {
      Ptr_u32 row = code_row(min(n0 + RUN_ROW(i), A.N - 1), A.K);
      uint64_t at = uint64_t(row) + k / 8 * BITS;
      LOAD_RUN(codes[d][i], at)
    }
  }
}

void fetch_sides(uint d, uint k0) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    uint e = lane + i * SG;
    uint k = k0 + e / ROWS * GROUP;
    sides[d][i] = vec2(0.0);
    if (k < k_end && e < SIDES) {
      uint64_t group = group_of(min(n0 + e % ROWS, A.N - 1), A.K, k);
      sides[d][i] = vec2(load_scale(scale_base, group), load_bias(group));
    }
  }
}

void fetch_b(uint d, uint k0) {
  fetch_codes(d, k0);
  if (d % SPAN == 0) {
    fetch_sides(d, k0);
  }
}

void stash_sides(uint d) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    uint e = lane + i * SG;
    if (SIDES % SG == 0 || e < SIDES) {
      float scale = sides[d][i].x;
      side[own_side + e] =
          vec2(scale, fma(-CODE_OFFSET, scale, sides[d][i].y));
    }
  }
}

void stash_b(uint d, uint s) {
  REQUIRE(codes[0].length() * SG == ROWS * 2 && SG % 2 == 0)
  if (s == 0 && d % SPAN == 0) {
    stash_sides(d);
  }
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint slot = own_b + RUN_HALF * CHUNK_B + RUN_ROW(i) * PITCH;
    [[unroll]] for (uint p = 0; p < 2; ++p) {
      uvec4 q;
      RUN_ITEMS(q, codes[d][i], s * 16 + p * 8)
      tile_b[slot + p] = q;
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
#if SUMS_OF_A
        sum = fma(a_sums[i][e], scale.y, sum);
#endif
        acc[i * FN + j][e] = sum;
      }
    }
    [[unroll]] for (uint i = 0; i < FM; ++i) {
      sums[i * FN + j] = MATRIX_C(0.0);
    }
  }
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    a_sums[i] = MATRIX_C(0.0);
  }
}

bool live; // whether the tile is stored, see own_tile()
void store_sum(uint m, uint n, float sum) {
  store_y(live, m, n, sum);
}

void find_columns() {
  uint corner = gl_SubgroupID * 256;
  for (uint e = lane; e < 256; e += SG) {
    stage[corner + e] = float(e % 16);
  }
  subgroupMemoryBarrierShared();
  subgroupBarrier();
  MATRIX_C numbers;
  coopMatLoad(numbers, stage, corner, 16, ROW_MAJOR);
  [[unroll]] for (uint e = 0; e < ITEMS_Y; ++e) {
    columns[e] = uint(numbers[e]);
  }
}

void main() {
  Tile tile = own_tile();
  locate(tile.product);
  live = tile.live;
  k_end = A.K;
  own_side = gl_SubgroupID * SIDES;
  lane = gl_SubgroupInvocationID;
  take_code_base(A.K);
  find_columns();
  // Adjacent workgroups have the same weights, for cache reuse.
  uint i = tile.m * A.n_tiles + tile.n;
  place(i % A.m_tiles * BM, i / A.m_tiles * BN);
  // NVIDIA's compiler makes sums slow that another function clears.
  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    acc[f] = MATRIX_C(0.0);
    sums[f] = MATRIX_C(0.0);
  }
  [[unroll]] for (uint f = 0; f < FM; ++f) {
    a_sums[f] = MATRIX_C(0.0);
  }
  multiply_units(0);
  store_sums();
}

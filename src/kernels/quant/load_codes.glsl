// Tiles of codes for rows_tile.glsl, w transposed. As in load_skinny.glsl, codes
// enter the product unscaled, exact in 16 bits, and a group's product is scaled
// in float32. Here all subgroups share both tiles, and the sums of x for the
// bias are computed as x is stored to shared memory.
#include "quant/code_items.glsl"

// The probed layout applies to 16 x 16 x 16 matrices only.
#if defined(KNOWN_FRAGMENTS) && MM * MN * MK == 4096
#define KNOWN_LAYOUT
#include "common/fragments.glsl"
#endif

#define AFFINE (SIDE == SIDE_BIASES)
#define ENDS_INSIDE (BK > GROUP)
#define SCALED_SUMS 1

#define GROUPS (GROUP < BK ? BK / GROUP : 1) // groups per tile
#define SPAN (GROUP > BK ? GROUP / BK : 1) // tiles per group
#define PER_ROW (BK / 32) // runs of 32 codes per tile row
#define RUNS ((BN * PER_ROW + WG - 1) / WG)
#define SIDES (GROUPS * BN)
#define LOADS_SIDE ((SIDES + WG - 1) / WG)

shared vec2 side[SIDES]; // scale and bias by group and row of w
#if HALVES
#define X_SIDES (GROUPS * BM)
#define LOADS_X_SIDE ((X_SIDES + WG - 1) / WG)
shared vec2 x_side[X_SIDES]; // factor and sum by group and row of x
vec2 next_x_side[LOADS_X_SIDE];
uint64_t from_x_side[LOADS_X_SIDE];
#elif AFFINE
shared float x_sum[GROUPS * BM];
float sum_so_far[LOADS_A];
#endif

uint next_codes[RUNS][BITS];
vec2 next_side[LOADS_SIDE];
uint64_t from_codes[RUNS]; // of the invocation's runs of the first tile
uint64_t from_side[LOADS_SIDE]; // index of the first group
// Row and column of each element that an invocation holds of a fragment of y,
// packed in a register; an unknown layout is found by a matrix load.
#ifdef KNOWN_LAYOUT
#define ROW_OF(e) FRAGMENT_ROW(e)
#define COLUMN_OF(e) FRAGMENT_COLUMN(e)
#else
uint items_of[ELEMENTS_C];
#define ROW_OF(e) (items_of[e] / MN)
#define COLUMN_OF(e) (items_of[e] % MN)
#if SG >= 32
#define TESTS_COLUMNS // AMD's elements of an invocation are in one column
bool one_column;
#endif
#endif

void find_items() {
#ifndef KNOWN_LAYOUT
  uint corner = SUBGROUP * ITEMS_C;
  for (uint e = LANE; e < ITEMS_C; e += SG) {
    stage[corner + e] = float(e);
  }
  SYNC_SUBGROUP
  MATRIX_C numbers;
  LOAD_C(numbers, stage, corner, MN);
  UNROLL for (uint e = 0; e < ELEMENTS_C; ++e) {
    items_of[e] = uint(numbers[e]);
  }
#ifdef TESTS_COLUMNS
  uint others = 0;
  UNROLL for (uint e = 1; e < ELEMENTS_C; ++e) {
    others |= COLUMN_OF(e) ^ COLUMN_OF(0);
  }
  one_column = subgroupAll(others == 0);
#endif
  SYNC_SUBGROUP
#endif
}

// Rows beyond the last repeat it and are not stored.
void set_b(uint m0, uint end, uint n0, bool inside) {
  uint t = INVOCATION;
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint e = t + i * WG;
    from_codes[i] = uint64_t(code_row(min(n0 + e / PER_ROW, A.N - 1), A.K));
  }
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    uint e = t + i * WG;
    from_side[i] = group_of(min(n0 + e % BN, A.N - 1), A.K, 0);
  }
#if HALVES
  [[unroll]] for (uint i = 0; i < LOADS_X_SIDE; ++i) {
    uint m = min(m0 + (t + i * WG) % BM, end - 1);
    from_x_side[i] = uint64_t(x_base) + uint64_t((x_item(m) + A.K) * 2);
  }
#endif
}

// Offsets along k in a tile of the invocation's codes and groups.
uint own_code() {
  return INVOCATION % PER_ROW * 32;
}
uint own_group(uint i) {
  return (INVOCATION + i * WG) / BN * GROUP;
}
#if HALVES
uint own_x_group(uint i) {
  return (INVOCATION + i * WG) / BM * GROUP;
}
#endif

void fetch_b(uint span, uint k0, uint depth, bool inside) {
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint64_t from = from_codes[i] + min(k0 + own_code(), depth - 32) / 8 * BITS;
    LOAD_RUN(next_codes[i], from)
  }
  if (span == 0) {
    [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
      uint k = min(k0 + own_group(i), depth - GROUP);
      uint64_t group = from_side[i] + k / GROUP;
      next_side[i] = vec2(load_scale(scale_base, group), load_bias(group));
    }
#if HALVES
    [[unroll]] for (uint i = 0; i < LOADS_X_SIDE; ++i) {
      uint k = min(k0 + own_x_group(i), depth - GROUP);
      next_x_side[i] =
          uintBitsToFloat(Ptr_u32x2(from_x_side[i]).v[k / GROUP]);
    }
#endif
  }
}

// With scales of zero, codes have no effect.
void clear_b(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    next_side[i] = k0 + own_group(i) < depth ? next_side[i] : vec2(0.0);
  }
}

#if AFFINE && !HALVES
float sum2(uint pair) {
  vec2 x = TWO_FLOATS(pair);
  return x.x + x.y;
}

// Accumulates sums of x. WIDTH_A adjacent invocations hold a row's items.
void stash_sum(uint i, uint span) {
  uvec4 q = next_a[i];
  float sum = (sum2(q.x) + sum2(q.y)) + (sum2(q.z) + sum2(q.w));
  sum += span > 0 ? sum_so_far[i] : 0.0;
  sum_so_far[i] = sum;
  if (span == SPAN - 1) {
    const uint lanes = min(GROUP, BK) / 8;
    [[unroll]] for (uint d = 1; d < lanes; d *= 2) {
      sum += subgroupShuffleXor(sum, d);
    }
    uint e = INVOCATION + i * WG;
    if (e % lanes == 0) {
      x_sum[e % WIDTH_A / lanes * BM + e / WIDTH_A] = sum;
    }
  }
}
#endif

#define STASHED_A(i, span) stashed_items(i, span)
uvec4 stashed_items(uint i, uint span) {
#if AFFINE && !HALVES
  stash_sum(i, span);
#endif
  return item_pairs(next_a[i]);
}

void stash_b(uint span) {
  REQUIRE(BN * PER_ROW * 4 / WIDTH_B * PITCH_B == tile_b.length())
  REQUIRE(next_codes.length() * WG >= BN * PER_ROW && WG % PER_ROW == 0)
  REQUIRE(next_side.length() * WG >= SIDES)
  uint t = INVOCATION;
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint e = t + i * WG;
    if (BN * PER_ROW % WG == 0 || e < BN * PER_ROW) {
      [[unroll]] for (uint p = 0; p < 4; ++p) {
        uvec4 q;
        RUN_ITEMS(q, next_codes[i], p * 8)
        tile_b[AT_PIECE(e * 4 + p, WIDTH_B)] = q;
      }
    }
  }
  if (span == 0) {
    [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
      uint e = t + i * WG;
      if (SIDES % WG == 0 || e < SIDES) {
        float scale = next_side[i].x;
        side[e] = vec2(scale, fma(-CODE_OFFSET, scale, next_side[i].y));
      }
    }
#if HALVES
    [[unroll]] for (uint i = 0; i < LOADS_X_SIDE; ++i) {
      uint e = t + i * WG;
      if (X_SIDES % WG == 0 || e < X_SIDES) {
        x_side[e] = next_x_side[i];
      }
    }
#endif
  }
}

MATRIX_C acc[FM * FN]; // scaled sums
MATRIX_C sums[FM * FN]; // sums of one group

// Scales the sums of group g of the tile, adds them to acc, and clears them.
void scale_sums(uint g, uint wm, uint wn) {
  vec2 scale[FN];
  UNROLL for (uint e = 0; e < ELEMENTS_C; ++e) {
#ifdef TESTS_COLUMNS
    if (e == 0 || !one_column)
#endif
    UNROLL for (uint j = 0; j < FN; ++j) {
      scale[j] = side[g * BN + (wn * FN + j) * MN + COLUMN_OF(e)];
    }
    UNROLL for (uint i = 0; i < FM; ++i) {
#if HALVES
      vec2 x = x_side[g * BM + (wm * FM + i) * MM + ROW_OF(e)];
#elif AFFINE
      float x = x_sum[g * BM + (wm * FM + i) * MM + ROW_OF(e)];
#endif
      UNROLL for (uint j = 0; j < FN; ++j) {
        float sum = acc[i * FN + j][e];
#if HALVES
        sum = fma(sums[i * FN + j][e] * x.x, scale[j].x, sum);
        sum = fma(x.y, scale[j].y, sum);
#else
        sum = fma(sums[i * FN + j][e], scale[j].x, sum);
#endif
#if AFFINE && !HALVES
        sum = fma(x, scale[j].y, sum);
#endif
        acc[i * FN + j][e] = sum;
      }
    }
  }
  CLEAR_FRAGMENTS(sums)
}

void begin_sums(uint depth) {
  take_code_base(depth);
  find_items();
  CLEAR_FRAGMENTS(acc)
  CLEAR_FRAGMENTS(sums)
}

// y = x @ W^T with cooperative matrices, for rows of 16-bit x of one product,
// or SORTED by matrix index (tile.glsl).
//
// As in qmm_skinny.comp, codes enter the product unscaled, exact in 16 bits,
// and a group's product is scaled in float32. Here all subgroups share both
// tiles, and the sums of x for the bias are computed as x is stored to shared
// memory. HALVES: x is packed (quant/half_rows.h).
#define TRANSPOSE 1
#define A_T 0
#define B_T 1
#include "gemm/matrix_tile.glsl"
#include "quant/tile.glsl"
#if SPLIT
uint64_t part_base;
#endif
#include "gemm/store_rows.glsl"
#include "quant/code_items.glsl"

// The probed layout applies to 16 x 16 x 16 matrices only.
#if defined(KNOWN_FRAGMENTS) && MM * MN * MK == 4096
#define KNOWN_LAYOUT
#include "common/fragments.glsl"
#endif

#define AFFINE (SIDE == SIDE_BIASES)

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
uint64_t from_x[LOADS_A]; // the invocation's pieces of the first tile of x
uint64_t from_codes[RUNS]; // the same for w
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

// Linear index in which lanes of a subgroup are contiguous.
uint own_index() {
  return SUBGROUP * SG + LANE;
}

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

// Computes the invocation's addresses. Rows beyond the last repeat it and are
// not stored.
void set_addresses(uint m0, uint end, uint n0) {
  uint t = own_index();
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    uint m = min(m0 + e / WIDTH_A, end - 1);
    from_x[i] = uint64_t(x_base) + uint64_t(x_item(m) * 2);
  }
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

void fetch_run(uint i, uint k0) {
  uint64_t at = from_codes[i] + k0 / 8 * BITS;
#if BITS % 4 == 0
  [[unroll]] for (uint j = 0; j < BITS; j += 4) {
    uvec4 q = Ptr_u32x4(at).v[j / 4];
    next_codes[i][j] = q.x;
    next_codes[i][j + 1] = q.y;
    next_codes[i][j + 2] = q.z;
    next_codes[i][j + 3] = q.w;
  }
#else
  [[unroll]] for (uint j = 0; j < BITS; ++j) {
    next_codes[i][j] = load(Ptr_u32(at), j);
  }
#endif
}

// Offsets along k in a tile of the invocation's items, codes and groups.
uint own_item() {
  return own_index() % WIDTH_A * 8;
}
uint own_code() {
  return own_index() % PER_ROW * 32;
}
uint own_group(uint i) {
  return (own_index() + i * WG) / BN * GROUP;
}
#if HALVES
uint own_x_group(uint i) {
  return (own_index() + i * WG) / BM * GROUP;
}
#endif

// Prefetches the tile at k0, number `span` of its group. Indices beyond depth
// are clamped, because a branch around the loads costs 10 % of the time;
// clear_beyond() zeroes the result.
void fetch(uint span, uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    fetch_run(i, min(k0 + own_code(), depth - 32));
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
  uint k = min(k0 + own_item(), depth - 8);
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = Ptr_u32x4(from_x[i]).v[k / 8];
  }
}

// Zeroes x and scales fetched beyond depth; the codes then have no effect.
void clear_beyond(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_SIDE; ++i) {
    next_side[i] = k0 + own_group(i) < depth ? next_side[i] : vec2(0.0);
  }
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = k0 + own_item() < depth ? next_a[i] : uvec4(0);
  }
}

// Eight codes of a run, starting at `first`.
uvec4 code_items(uint i, uint first) {
#if INTERLEAVED
  return word_pairs(next_codes[i][first / 8]);
#else
  uvec4 q;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    uint at = first + 2 * c;
    q[c] = code_pair(CODE_IN(next_codes[i], at), CODE_IN(next_codes[i], at + 1));
  }
  return q;
#endif
}

float sum2(uint pair) {
#ifdef T_IS_bf16
  return uintBitsToFloat(pair << 16) + uintBitsToFloat(pair & 0xffff0000u);
#else
  vec2 x = unpackHalf2x16(pair);
  return x.x + x.y;
#endif
}

#if AFFINE && !HALVES
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
    uint e = own_index() + i * WG;
    if (e % lanes == 0) {
      x_sum[e % WIDTH_A / lanes * BM + e / WIDTH_A] = sum;
    }
  }
}
#endif

void stash(uint span) {
  WHOLE_TILE(tile_a, next_a, WIDTH_A)
  REQUIRE(BN * PER_ROW * 4 / WIDTH_B * PITCH_B == tile_b.length())
  REQUIRE(next_codes.length() * WG >= BN * PER_ROW && WG % PER_ROW == 0)
  REQUIRE(next_side.length() * WG >= SIDES)
  uint t = own_index();
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
#if AFFINE && !HALVES
    stash_sum(i, span);
#endif
    tile_a[AT_PIECE(e, WIDTH_A)] = item_pairs(next_a[i]);
  }
  [[unroll]] for (uint i = 0; i < RUNS; ++i) {
    uint e = t + i * WG;
    if (BN * PER_ROW % WG == 0 || e < BN * PER_ROW) {
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        tile_b[AT_PIECE(e * 4 + c, WIDTH_B)] = code_items(i, c * 8);
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

#if SPLIT
#define K_BEGIN k_begin
void multiply_range(
    uint m0, uint n0, uint end, bool live, uint k_begin, const uint depth) {
#else
#define K_BEGIN 0
void multiply(uint m0, uint n0, uint end, bool live) {
#endif
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;
#if !SPLIT
  const uint depth = A.K;
#endif
  take_code_base(depth);
  find_items();
  CLEAR_FRAGMENTS(acc)
  CLEAR_FRAGMENTS(sums)
  set_addresses(m0, end, n0);
  fetch(0, K_BEGIN, depth);
  uint rows_inside = find_rows_inside(m0 + wm * FM * MM, end);
  for (uint k0 = K_BEGIN; k0 < depth; k0 += BK * SPAN) {
    [[unroll]] for (uint s = 0; s < SPAN; ++s) {
      barrier();
      if (BK > GROUP && k0 + BK > depth) {
        clear_beyond(k0, depth);
      }
      stash(s);
      barrier();
#if SG >= 32 // narrow subgroups lack the registers for it here
      fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth);
#endif
      [[unroll]] for (uint g = 0; g < GROUPS; ++g) {
        MULTIPLY_RANGE(sums, wm, wn, g * (BK / GROUPS), (g + 1) * (BK / GROUPS))
        if (s == SPAN - 1) {
          scale_sums(g, wm, wn);
        }
      }
#if SG < 32
      fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth);
#endif
    }
  }
  STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)
}

#if SPLIT
void main() {
  Tile tile = own_tile();
  uvec2 at = banded(tile.m * A.n_tiles + tile.n);
  locate(0);
  part_base = uint64_t(A.y) + uint64_t(tile.product) * A.M * A.N * 4;
  uint k = tile.product * A.k_split;
  multiply_range(
      at.x * BM, at.y * BN, A.M, tile.live, k, min(k + A.k_split, A.K));
}
#else
void main() {
  multiply_tile();
}
#endif

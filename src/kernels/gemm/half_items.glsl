// bfloat16 operands as float16 items, for matrix units without bfloat16
// (docs/dev/matrix-units.md, "bf16 on f16 matrices"). float16 has more mantissa
// bits but less range, so each row of a and each column of b is scaled by a
// power of two that keeps the items read so far below 2^16, and y is unscaled
// at the end. If an item is not exact after scaling, the tile is recomputed
// without matrices.
//
// Both operands are contiguous along k. Include before rows_tile.glsl.
#pragma once

#include "common/halves.glsl"

// A new scale leaves room for items 2^HEADROOM times larger, because each
// rescaling also multiplies the sums so far. These sums are multiples of 2^-48,
// so they stay normal when row and column are lowered by up to 2^39 each.
#define HEADROOM 1
#define NO_TOP (-200) // top of a row of zeros
#define MOST_LOWERED 39

// The items of a row read so far are below 2^(top + 1), which is scaled to
// 2^16. WIDTH_A (WIDTH_B) adjacent invocations hold a row (column).
int top_a[LOADS_A], first_top_a[LOADS_A];
int top_b[LOADS_B], first_top_b[LOADS_B];
shared float factor_a[BM]; // factors of the sums so far; finally the tops
shared float factor_b[BN];
shared uint lowered_at; // k0 + 1 of the last step with a factor other than 1
shared uint inexact; // both by atomics: several subgroups may set them at once

// Updates the scale for a new largest item and returns the factor of the sums
// so far.
float lower(inout int top, inout int first, int largest) {
  if (largest <= top) {
    return 1.0;
  }
  int before = top;
  top = max(largest + HEADROOM, LEAST_TOP);
  if (before == NO_TOP) {
    first = top;
    return 1.0;
  }
  if (top - first > MOST_LOWERED) {
    atomicOr(inexact, 1);
  }
  return uintBitsToFloat(uint(127 - min(top - before, MOST_LOWERED)) << 23);
}

#define STASH_HALVES(tile, next, LOADS, WIDTH, top, first, factors)           \
  WHOLE_TILE(tile, next, WIDTH)                                               \
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {                               \
    uint e = INVOCATION + i * WG;                                             \
    uint largest, smallest;                                                   \
    span_of(next[i], largest, smallest);                                      \
    [[unroll]] for (uint d = 1; d < WIDTH; d *= 2) {                          \
      largest = max(largest, subgroupShuffleXor(largest, d));                 \
    }                                                                         \
    float factor = lower(                                                     \
        top[i], first[i], largest == 0 ? NO_TOP : int(largest >> 7) - 127);   \
    if (factor != 1.0) {                                                      \
      atomicMax(lowered_at, k0 + 1);                                          \
    }                                                                         \
    /* Eight bits from 2^-24 on are exact. */                                 \
    if (int(min(smallest, 0x7fffu) >> 7) - 127 + 15 - top[i] < -17) {         \
      atomicOr(inexact, 1);                                                   \
    }                                                                         \
    if (e % WIDTH == 0) {                                                     \
      factors[e / WIDTH] = factor;                                            \
    }                                                                         \
    tile[AT_PIECE(e, WIDTH)] = half_items(next[i], top[i]);                   \
  }

void stash_halves(uint k0) {
  STASH_HALVES(tile_a, next_a, LOADS_A, WIDTH_A, top_a, first_top_a, factor_a)
  STASH_HALVES(tile_b, next_b, LOADS_B, WIDTH_B, top_b, first_top_b, factor_b)
}

#define STASH_TILES(span, k0) stash_halves(k0);

void begin_halves() {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    top_a[i] = NO_TOP;
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    top_b[i] = NO_TOP;
  }
  if (INVOCATION == 0) {
    lowered_at = 0;
    inexact = 0;
  }
}

#define BEGIN_SUMS begin_halves();

// Replaces the corner by OF(corner item, row, column) for the subgroup's
// fragment (i, j).
#define FILL_CORNER(corner, i, j, OF)                                         \
  for (uint e = LANE; e < ITEMS_C; e += SG) {                                 \
    uint r = (wm * FM + i) * MM + e / MN;                                     \
    uint c = (wn * FN + j) * MN + e % MN;                                     \
    stage[corner + e] = OF(stage[corner + e], r, c);                          \
  }                                                                           \
  SYNC_SUBGROUP
#define FACTOR_OF(x, r, c) (factor_a[r] * factor_b[c])

// Rescales acc. Runs after the tiles of k0 are stored and before they are
// multiplied.
#define LOWER_SUMS(acc, wm, wn)                                               \
  if (lowered_at == k0 + 1) {                                                 \
    uint corner = SUBGROUP * ITEMS_C;                                         \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      UNROLL for (uint j = 0; j < FN; ++j) {                                  \
        SYNC_SUBGROUP                                                         \
        FILL_CORNER(corner, i, j, FACTOR_OF)                                  \
        MATRIX_C factors;                                                     \
        LOAD_C(factors, stage, corner, MN);                                   \
        MULTIPLY_ELEMENTS(acc[i * FN + j], factors);                          \
      }                                                                       \
    }                                                                         \
  }

// Shares the tops with all invocations, after the last tiles.
void share_tops() {
  barrier();
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    factor_a[(INVOCATION + i * WG) / WIDTH_A] =
        float(max(top_a[i], LEAST_TOP));
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    factor_b[(INVOCATION + i * WG) / WIDTH_B] =
        float(max(top_b[i], LEAST_TOP));
  }
  barrier();
}

// Divides by both scales, in two steps because their product may overflow.
float unscaled(float x, uint r, uint c) {
  int power = int(factor_a[r] + factor_b[c]) - 30;
  int first = clamp(power, -126, 127), rest = clamp(power - first, -126, 127);
  return x * uintBitsToFloat(uint(first + 127) << 23) *
      uintBitsToFloat(uint(rest + 127) << 23);
}

uvec4 eight(T_PTR x, Index at) {
  return Ptr_u32x4(uint64_t(x) + uint64_t(int64_t(at) * 2)).v[0];
}

// Recomputes the tile item by item.
void multiply_items(uint row0, uint col0) {
  for (uint e = INVOCATION; e < BM * BN; e += WG) {
    uint r = row0 + e / BN, c = col0 + e % BN;
    if (r < A.M && c < A.N) {
      float sum = 0.0;
      Index a_at = Index(r) * A.a_row, b_at = Index(c) * A.b_col;
#if VA && VB
      for (uint k = k_begin; k < k_end; k += 8) {
        uvec4 a = eight(base_a, a_at + Index(k));
        uvec4 b = eight(base_b, b_at + Index(k));
        [[unroll]] for (uint i = 0; i < 4; ++i) {
          sum = fma(
              uintBitsToFloat(a[i] << 16), uintBitsToFloat(b[i] << 16), sum);
          sum = fma(
              uintBitsToFloat(a[i] & 0xffff0000u),
              uintBitsToFloat(b[i] & 0xffff0000u),
              sum);
        }
      }
#else
      for (uint k = k_begin; k < k_end; ++k) {
        sum = fma(
            load(base_a, a_at + Index(k)), load(base_b, b_at + Index(k)), sum);
      }
#endif
      put(y_base, r, c, sum);
    }
  }
}

// The condition is uniform in the workgroup.
#define FINISH_SUMS(m0, n0)                                                   \
  share_tops();                                                               \
  if (inexact != 0) {                                                         \
    multiply_items(m0, n0);                                                   \
    return;                                                                   \
  }
#define FINISH_CORNER(corner, i, j) FILL_CORNER(corner, i, j, unscaled)

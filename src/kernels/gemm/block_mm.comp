// Matrix product by blocks, with masks or over segments of k (block_mm.h). A
// workgroup computes a TILE x TILE tile of y, an invocation 4 x 4 items. Blocks
// hidden by a bool mask are not read.
#include "common/index.glsl"
#include "common/types.glsl"

#if OPERAND_MASKS == 1
#define MASK_PTR Ptr_bool
#else
#define MASK_PTR T_PTR
#endif
#if OUT_MASK == 1
#define OUT_MASK_PTR Ptr_bool
#else
#define OUT_MASK_PTR T_PTR
#endif
#include "gemm/block_mm.h"
#define ARGS_BLOCK BlockMmArgs
#include "common/args.glsl"
#include "gemm/batch.glsl"

#define BM TILE
#define BN TILE
#define TM 4
#define TN 4
#define A_T A.a_t
#define B_T A.b_t
#include "gemm/tile.glsl"

T_PTR base_a, base_b;
uint k_end;
float factor_a = 1.0, factor_b = 1.0; // mask factors of the current tiles

Acc item_a(uint r, uint k) {
  float x = 0.0;
  if (r < A.m && k < k_end) {
    Index at = Index(r) * Index(A.rows[BLOCK_A]) +
        Index(k) * Index(A.cols[BLOCK_A]);
    x = factor_a * load(base_a, at);
  }
  return x;
}
Acc item_b(uint k, uint c) {
  float x = 0.0;
  if (c < A.n && k < k_end) {
    Index at = Index(k) * Index(A.rows[BLOCK_B]) +
        Index(c) * Index(A.cols[BLOCK_B]);
    x = factor_b * load(base_b, at);
  }
  return x;
}

#define BATCH_OFFSET(operand, result)                                         \
  int64_t result = 0l;                                                        \
  ADD_NEST(result, batch, A.ndim, A.shape, A.batch[operand])

#define MASK_AT(mask, operand, base, row, col)                                \
  float(                                                                      \
      load(mask, base + int64_t(row) * A.rows[operand] +                      \
               int64_t(col) * A.cols[operand]))

void multiply(uint group) {
  uint col0 = group % A.tiles_n * TILE;
  uint rest = group / A.tiles_n;
  uint row0 = rest % A.tiles_m * TILE;
  uint batch = rest / A.tiles_m;
  clear_acc();

#if SEGMENTED
  int64_t a0 = 0l, b0 = 0l;
  uint k_begin = load(A.segments, 2ul * uint64_t(batch));
  k_end = min(load(A.segments, 2ul * uint64_t(batch) + 1ul), A.k);
#else
  BATCH_OFFSET(BLOCK_A, a0)
  BATCH_OFFSET(BLOCK_B, b0)
  uint k_begin = 0;
  k_end = A.k;
#endif
#if OPERAND_MASKS
  BATCH_OFFSET(BLOCK_A_MASK, am0)
  BATCH_OFFSET(BLOCK_B_MASK, bm0)
#endif
  float factor = 1.0;
#if OUT_MASK
  BATCH_OFFSET(BLOCK_Y_MASK, ym0)
  factor = MASK_AT(
      A.y_mask, BLOCK_Y_MASK, ym0, row0 / A.block, col0 / A.block);
#if OUT_MASK == 1
  k_end = factor == 0.0 ? 0 : k_end;
#endif
#endif
  base_a = MOVED(T, A.a, a0);
  base_b = MOVED(T, A.b, b0);

  // The bounds are uniform in the workgroup, as the barriers require.
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
#if OPERAND_MASKS
    factor_a = MASK_AT(
        A.a_mask, BLOCK_A_MASK, am0, row0 / A.block, k0 / A.block);
    factor_b = MASK_AT(
        A.b_mask, BLOCK_B_MASK, bm0, k0 / A.block, col0 / A.block);
#if OPERAND_MASKS == 1
    if (factor_a == 0.0 || factor_b == 0.0) {
      continue;
    }
#endif
#endif
    barrier();
    stage_tiles(row0, col0, k0);
    barrier();
    for (uint k = 0; k < BK; ++k) {
      multiply_k(k);
    }
  }

  uint64_t y0 = uint64_t(batch) * uint64_t(A.m) * uint64_t(A.n);
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      uint r = row0 + own_row(i), c = col0 + own_col(j);
      if (r < A.m && c < A.n) {
        uint64_t at = y0 + uint64_t(r) * uint64_t(A.n) + uint64_t(c);
        store(A.y, at, acc[i * TN + j] * factor);
      }
    }
  }
}

void main() {
  uint group = group_index();
  if (group < A.tiles_m * A.tiles_n * A.batches) {
    multiply(group);
  }
}

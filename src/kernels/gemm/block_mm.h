#include "common/interface.h"

#define BLOCK_MM_DIMS 16

// Operands that have strides.
#define BLOCK_A 0
#define BLOCK_B 1
#define BLOCK_A_MASK 2
#define BLOCK_B_MASK 3
#define BLOCK_Y_MASK 4
#define BLOCK_OPERANDS 5

BEGIN_INTERFACE

struct BlockMmArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, b)
#if OPERAND_MASKS
  PTR(MASK_PTR, a_mask)
  PTR(MASK_PTR, b_mask)
#endif
#if OUT_MASK
  PTR(OUT_MASK_PTR, y_mask)
#endif
#if SEGMENTED
  PTR(Ptr_u32, segments)
#endif
  PTR(T_PTR, y)
  uint m, n, k, block;
  uint tiles_m, tiles_n, batches;
  uint a_t, b_t; // unit stride: of a along rows, of b along k
  int ndim, shape[BLOCK_MM_DIMS];
  int64_t rows[BLOCK_OPERANDS], cols[BLOCK_OPERANDS];
  int64_t batch[BLOCK_OPERANDS][BLOCK_MM_DIMS];
};

#ifdef __cplusplus
struct BlockMmVariant {
  Type T;
  uint TILE; // divides block
  // Masks: 0 none, 1 bool, 2 factors of type T; one per `block` x `block`.
  uint OPERAND_MASKS, OUT_MASK;
  bool SEGMENTED; // matrix s sums over [segments[2 s], segments[2 s + 1]) of k
  bool LARGE;
  KERNEL_VARIANT(
      "gemm/block_mm", BlockMmArgs, T, TILE, OPERAND_MASKS, OUT_MASK, SEGMENTED,
      LARGE)
};
#endif

END_INTERFACE

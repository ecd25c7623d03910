// Interface of gemm_sorted.comp. Row i of y is row lhs[i] of a times matrix
// rhs[i] of b; equal matrix indices are adjacent.
#include "common/interface.h"

BEGIN_INTERFACE

struct GemmSortedArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, b)
  PTR(Ptr_u32, lhs)
  PTR(Ptr_u32, rhs)
  PTR(Ptr_u32, tiles) // sorted_tiles.h
  PTR(T_PTR, y)
  // Strides in items: between rows of a, between matrices of b, and within a
  // matrix between columns (B_T) or rows.
  int64_t a_row, b_matrix, b_pitch;
  uint M, N, K;
  uint a_rows, b_matrices; // bounds of the indices
  uint m_tiles, n_tiles, groups; // workgroups along M, along N and in total
};

#ifdef __cplusplus
struct GemmSortedVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  bool B_T; // b has unit stride along k, else along columns
  MATRIX_VARIANT("gemm/gemm_sorted", GemmSortedArgs, BM, BN, WM, WN, B_T)
};
#endif

END_INTERFACE

// Products of rows with sorted indices, by gemm_sorted.comp: row i of y is row
// lhs[i] of a times the matrix rhs[i] of b, and equal matrices stand together.
#include "common/interface.h"

BEGIN_INTERFACE

struct GemmSortedArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, b)
  PTR(Ptr_u32, lhs)
  PTR(Ptr_u32, rhs)
  PTR(Ptr_u32, tiles) // sorted_tiles.h
  PTR(T_PTR, y)
  // Items from a row of a to the next, from a matrix of b to the next, and
  // inside it from a column (B_T) or row to the next.
  int64_t a_row, b_matrix, b_pitch;
  uint M, N, K;
  uint a_rows, b_matrices; // that indices may name
  uint m_tiles, n_tiles, groups; // workgroups: along M, along N, in all
};

#ifdef __cplusplus
struct GemmSortedVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // of y, a workgroup; subgroups along them
  bool B_T; // b's k is the unit-stride direction, else its columns
  MATRIX_VARIANT("gemm/gemm_sorted", BM, BN, WM, WN, B_T)
};
#endif

END_INTERFACE

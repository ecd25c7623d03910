// Interfaces of the kernels for large symmetric matrices, T f32 or f64.
//
// A matrix is reduced to a tridiagonal one by blocks of BLOCK columns. Halves
// of halves of that are solved, and then merged.
#pragma once

#include "linalg/linalg.h"

#define PRODUCT_GROUP 256
#define COLUMN_GROUP 256
#define BISECT_GROUP 64
#define MERGE_GROUP 64
#define MERGE_LANES 8 // for a root
// Items of ReduceArgs::state per matrix.
#define REDUCE_STATE(n, block) (4 * (n) + 4 * (block) + 4)
#define LEAF_ROWS 32 // most of a part that jacobi.comp solves

// Steps of merge.comp: order entries; remove those that do not change; roots;
// weights and vectors.
#define MERGE_SORT 0
#define MERGE_DEFLATE 1
#define MERGE_ROOTS 2
#define MERGE_WEIGHTS 3
#define MERGE_VECTORS 4
#define MERGE_STEPS 5
// Arrays of an item per entry: of type T, and uint.
#define MERGE_REALS 9
#define MERGE_INTS 6

BEGIN_INTERFACE

// The lower triangle of x, scaled so that its largest item is from 1 to 2, as a
// whole matrix a; zeros if an item is not finite. With FILL false only the
// largest item of each row.
struct SymmetricArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, largest)
#if FILL
  PTR(T_PTR, a)
  PTR(T_PTR, state)
  PTR(T_PTR, diagonals)
  PTR(T_PTR, scales) // what undoes it, or NaN
#endif
  Strided xs;
  uint n, count;
};

// One column of a block that begins at row `at`, of a, n - at rows as earlier
// blocks leave them. `panel` has the columns v, w and v again of its block,
// each n items long, by which a - v w^T - w v^T is the next a. `state` has the
// column u of the next reflector and that after it, n items each; products with
// u: of a, of the v, of the w and of u; largest items of the result so far; and
// `parts` that add up to u^T a u. `diagonals`: n of the diagonal, n beside it.
struct ReduceArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, panel)
  PTR(T_PTR, state)
#ifdef KEEP
  PTR(T_PTR, diagonals)
#if KEEP
  PTR(T_PTR, reflectors) // n x n, by columns
#endif
#endif
  uint n, at, column, parts;
  uint groups, count; // workgroups per matrix; matrices
};

// Parts of `rows` rows of a tridiagonal matrix, less what joins them, as whole
// matrices. Rows from n on have a larger eigenvalue than the others of a part.
struct LeavesArgs {
  PTR(T_PTR, diagonals)
  PTR(T_PTR, parts)
  uint n, rows, leaves; // leaves per matrix
  uint count; // of leaves
};

// Pairs of matrices q of `size` / 2 eigenvectors become matrices of `size`, by
// factors u: blocks diag(q1, q2) u. `total`: eigenvalues of all matrices, n of
// `rows` per matrix without the padding.
struct MergeArgs {
  PTR(T_PTR, diagonals)
  PTR(T_PTR, q)
  PTR(T_PTR, values)
  PTR(T_PTR, reals)
  PTR(Ptr_u32, ints)
  PTR(T_PTR, u)
  uint n, rows, size, total;
  uint groups, count; // workgroups per merge; merges
};

// Sorts n of `rows` eigenvalues and eigenvectors.
struct SortedArgs {
  PTR(T_PTR, values)
  PTR(T_PTR, q)
  PTR(T_PTR, scales)
  PTR(T_PTR, s)
  PTR(T_PTR, v)
  Strided vs;
  uint n, rows, count;
};

// Eigenvalues alone, by bisection.
struct BisectArgs {
  PTR(T_PTR, diagonals)
  PTR(T_PTR, scales)
  PTR(T_PTR, s)
  uint n, groups, count;
};

#ifdef __cplusplus
struct SymmetricVariant {
  Type T;
  bool FILL;
  uint BLOCK = linalg_block;
  KERNEL_VARIANT("linalg/symmetric", SymmetricArgs, T, FILL, BLOCK)
};

struct ReduceProductVariant {
  Type T;
  uint ROWS, LANES; // rows of as many invocations, 64 to 256
  uint FEW; // loads of each at once
  uint BLOCK = linalg_block;
  constexpr uint rows() const { // of a workgroup
    return ROWS * PRODUCT_GROUP / LANES;
  }
  KERNEL_VARIANT(
      "linalg/reduce_product", ReduceArgs, T, ROWS, LANES, FEW, BLOCK)
};

struct ReduceColumnVariant {
  Type T;
  bool KEEP; // the reflectors
  uint LANES; // rows of a workgroup
  uint BLOCK = linalg_block;
  KERNEL_VARIANT("linalg/reduce_column", ReduceArgs, T, KEEP, LANES, BLOCK)
};

struct LeavesVariant {
  Type T;
  KERNEL_VARIANT("linalg/leaves", LeavesArgs, T)
};

struct MergeVariant {
  Type T;
  uint STEP;
  KERNEL_VARIANT("linalg/merge", MergeArgs, T, STEP)
};

struct SortedVariant {
  Type T;
  KERNEL_VARIANT("linalg/sorted", SortedArgs, T)
};

struct BisectVariant {
  Type T;
  uint LANES; // for an eigenvalue
  KERNEL_VARIANT("linalg/bisect", BisectArgs, T, LANES)
};
#endif

END_INTERFACE

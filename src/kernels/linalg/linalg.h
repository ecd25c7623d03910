// Interfaces of the kernels of linear algebra (float32).
//
// Matrices are taken in blocks of BLOCK rows or columns; products between the
// blocks are those of src/kernels/gemm (ops/linalg/blocks.h).
#pragma once

#include "common/interface.h"

// Invocations of a workgroup of cholesky.comp and solve.comp.
#define LINALG_GROUP 128

BEGIN_INTERFACE

// Strides in items.
struct Strided {
  int64_t batch, row, col;
};

// One block column: the lower factor of the first `width` rows of x, and the
// rows below times its inverse, transposed. Writes y's lower triangle only.
// x is what earlier columns leave of a, whose diagonal says which pivots are
// rounding errors of zero.
struct CholeskyArgs {
  PTR(Ptr_f32, x)
  PTR(Ptr_f32, a)
  PTR(Ptr_f32, y)
  Strided xs, as, ys;
  uint rows, width; // of x; width <= BLOCK
  float tolerance;
  uint groups; // workgroups per matrix
  uint count; // of matrices
};

// x = t^-1 b, with t lower triangular of `width` rows; a unit diagonal is not
// read. b is what R and EYE say: r, or rows of the identity, from row `first`
// on or as `perm` names them, less r.
struct SolveArgs {
  PTR(Ptr_f32, t)
#if R
  PTR(Ptr_f32, r)
#endif
#if EYE == 2
  PTR(Ptr_u32, perm)
#endif
  PTR(Ptr_f32, x)
  Strided ts, rs, xs;
  int64_t perm_batch;
  uint width, columns, first;
  uint groups, count;
};

// One block column of LU with partial pivoting: x, `rows` x `width` with rows
// >= width, to y in place of it, and the pivots' rows, counted from `first`.
// With `first` 0 it begins the permutation.
struct LuPanelArgs {
  PTR(Ptr_f32, x)
  PTR(Ptr_f32, y)
  PTR(Ptr_u32, pivots)
  PTR(Ptr_u32, perm)
  Strided xs, ys;
  int64_t pivot_batch;
  uint rows, width, first;
  uint count;
};

// Exchanges rows of y as the pivots from `first` on say, in all columns but
// those of the block; column `columns` is the permutation.
struct LuSwapArgs {
  PTR(Ptr_u32, pivots)
  PTR(Ptr_f32, y)
  PTR(Ptr_u32, perm)
  Strided ys;
  int64_t pivot_batch, perm_batch;
  uint columns, width, first;
  uint groups, count;
};

// inverse[perm[i]] = i in each of `count` permutations of n.
struct InvertArgs {
  PTR(Ptr_u32, perm)
  PTR(Ptr_u32, inverse)
  uint n;
  uint64_t count;
};

// One block column of QR: x, `rows` x `width` with rows >= width. Writes the
// reflectors v, with their unit diagonal and zeros, r's upper triangle, and t,
// (width, width) in each item of the batch.
struct QrPanelArgs {
  PTR(Ptr_f32, x)
  PTR(Ptr_f32, v)
  PTR(Ptr_f32, r)
  PTR(Ptr_f32, t)
  Strided xs, vs, rs;
  uint rows, width;
  uint count;
};

// x v = u diag(s) of rows x cols, rows >= cols, with s descending: y is x v.
// With SYMMETRIC x v = v diag(s), s ascending, of the lower triangle of x. A
// matrix with an item that is not finite gives NaN.
struct JacobiArgs {
  PTR(Ptr_f32, x)
  PTR(Ptr_f32, s)
#if VECTORS
#if !SYMMETRIC
  PTR(Ptr_f32, y)
#endif
  PTR(Ptr_f32, v)
  PTR(Ptr_f32, work)
#endif
  Strided xs, ys, vs;
  uint rows, cols;
  uint count;
};

// Changes the sign of those columns of v for which r's diagonal is negative.
struct SignsArgs {
  PTR(Ptr_f32, r)
  PTR(Ptr_f32, v)
  Strided rs, vs;
  uint n, count;
};

#ifdef __cplusplus
constexpr uint linalg_block = 32;

struct CholeskyVariant {
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return BLOCK * (BLOCK + 1) * 4;
  }
  KERNEL_VARIANT("linalg/cholesky", CholeskyArgs, BLOCK)
};

struct SolveVariant {
  bool UNIT; // t has a unit diagonal
  bool R; // b has a part in memory
  uint EYE; // 1: and rows of the identity; 2: named by perm
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return BLOCK * (BLOCK + 1) * 4;
  }
  KERNEL_VARIANT("linalg/solve", SolveArgs, UNIT, R, EYE, BLOCK)
};

// With ROWS > 0 panels of at most so many rows are held in shared memory.
struct LuPanelVariant {
  uint ROWS, WG_SIZE;
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return (BLOCK * (ROWS + 2) + WG_SIZE / 2) * 4;
  }
  KERNEL_VARIANT("linalg/lu_panel", LuPanelArgs, ROWS, WG_SIZE, BLOCK)
};

// ROWS as in LuPanelVariant.
struct QrPanelVariant {
  uint ROWS, WG_SIZE;
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return (BLOCK * (ROWS + WG_SIZE / 4 + BLOCK + 2) + 1) * 4;
  }
  KERNEL_VARIANT("linalg/qr_panel", QrPanelArgs, ROWS, WG_SIZE, BLOCK)
};

struct LuSwapVariant {
  uint BLOCK = linalg_block;
  KERNEL_VARIANT("linalg/lu_swap", LuSwapArgs, BLOCK)
};

// Matrices of at most MOST rows, a multiple of 32. Above 32 the rotations are
// collected in `work`, MOST x MOST for each matrix.
struct JacobiVariant {
  uint MOST;
  bool SYMMETRIC, VECTORS;
  constexpr uint shared_memory() const {
    uint held = VECTORS && MOST <= 32 ? 2 : 1;
    return (held * MOST * (MOST + 1) + 7 * MOST / 2 + 1) * 4;
  }
  KERNEL_VARIANT("linalg/jacobi", JacobiArgs, MOST, SYMMETRIC, VECTORS)
};

struct SignsVariant {
  bool LARGE = false;
  KERNEL_VARIANT("linalg/signs", SignsArgs, LARGE)
};

struct InvertVariant {
  bool LARGE;
  KERNEL_VARIANT("linalg/invert", InvertArgs, LARGE)
};
#endif

END_INTERFACE

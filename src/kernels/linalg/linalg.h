// Interfaces of the kernels of linear algebra, T f32 or f64.
//
// Matrices are taken in blocks of BLOCK rows or columns; products between the
// blocks are those of src/kernels/gemm (ops/linalg/blocks.h).
#pragma once

#include "common/interface.h"

// Invocations of a workgroup of cholesky.comp and solve.comp.
#define LINALG_GROUP 128
#define LU_SWAP_GROUP 256
#define LU_COLUMN_ROWS 32 // of a workgroup
// Words of LuColumnArgs::state per matrix.
#define LU_STATE(rows, groups) (8 * (groups) + ((rows) + 3) / 4 * 4)
#define MOST_SWEEPS 32 // of round.comp

BEGIN_INTERFACE

// Strides in items.
struct Strided {
  int64_t batch, row, col;
};

// One block column: the lower factor of the first `width` rows of x, and the
// rows below times its inverse, transposed. Writes y's lower triangle only.
// x is what earlier columns leave of a, whose diagonal says which items of x
// are rounding errors of zero.
struct CholeskyArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, a)
  PTR(T_PTR, y)
  Strided xs, as, ys;
  uint rows, width; // of x; width <= BLOCK
  uint each; // rows below the first `width` per workgroup, up to LINALG_GROUP
  float tolerance;
  uint groups; // workgroups per matrix
  uint count; // of matrices
};

// x = t^-1 b, with t lower triangular of `width` rows; a unit diagonal is not
// read. b is what R and EYE say: r, or rows from `first` on of the identity,
// with its rows in order or where `places` says, less r.
struct SolveArgs {
  PTR(T_PTR, t)
#if R
  PTR(T_PTR, r)
#endif
#if EYE == 2
  PTR(Ptr_u32, places)
#endif
  PTR(T_PTR, x)
  Strided ts, rs, xs;
  uint width, columns, first;
  uint groups, count;
};

// One block column of LU with partial pivoting: x, `rows` x `width` with rows
// >= width, to y, and the pivots' rows, counted from `first`.
// With `first` 0 it writes the places that rows have afterwards.
struct LuPanelArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, y)
  PTR(Ptr_u32, pivots)
  PTR(Ptr_u32, places)
  Strided xs, ys;
  int64_t pivot_batch;
  uint rows, width, first;
  uint count;
};

// A step of the same for panels of many rows, which it leaves where they are:
// eliminates column `column` - 1 and finds the pivot of `column`. With START it
// copies x to y instead of the first. `state` per matrix: the pivots that
// workgroups found, of two steps in turn, as uvec4: its key, place and row;
// then the rows' places.
struct LuColumnArgs {
#if START
  PTR(T_PTR, x)
#endif
  PTR(T_PTR, y)
  PTR(Ptr_u32, pivots)
  PTR(Ptr_u32, places)
  PTR(Ptr_u32, state)
  Strided xs, ys;
  int64_t pivot_batch;
  uint rows, width, first, column;
  uint groups, count; // workgroups per matrix
};

// Exchanges rows as the `width` pivots from `first` on say, counted from there:
// in `done` columns of y, in all `columns` of rest, and if `first` is not 0 in
// the places of all `rows`.
struct LuSwapArgs {
  PTR(Ptr_u32, pivots)
  PTR(T_PTR, y)
  PTR(T_PTR, rest)
  PTR(Ptr_u32, places)
  Strided ys, rests;
  int64_t pivot_batch;
  uint rows, done, columns, width, first;
  uint groups, count;
};

// One block column of QR: x, `rows` x `width` with rows >= width. Writes the
// reflectors v, column-major, and r's upper triangle.
struct QrPanelArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, v)
  PTR(T_PTR, r)
  Strided xs, vs, rs;
  uint rows, width;
  uint count;
};

// x v = u diag(s) of n x n matrices, with s descending: y is x v. With
// SYMMETRIC x v = v diag(s), s ascending, of the lower triangle of x. A matrix
// with an item that is not finite, or that takes too many sweeps, gives NaN.
// Rotations are of columns of a stack, with `lines` items: `rows` of the
// matrix, scaled, and if they are twice as many the product of all rotations.
struct StartArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, stack)
  PTR(T_PTR, scales) // of the result, NaN where that is NaN, and shift
  Strided xs;
  uint n, rows, lines, count;
};

// All sweeps over stacks of at most MOST rows.
struct JacobiArgs {
  PTR(T_PTR, stack)
  PTR(T_PTR, lengths)
  PTR(T_PTR, scales)
  uint rows, lines, count;
};

// One round over stacks of more rows, a multiple of WIDE.
struct RoundArgs {
  PTR(T_PTR, stack)
  PTR(T_PTR, lengths)
  PTR(T_PTR, scales)
  PTR(Ptr_u32, state) // MOST_SWEEPS for each matrix: whether a sweep rotated
  uint rows, lines, sweep, round_, count;
};

struct FinishArgs {
  PTR(T_PTR, stack)
  PTR(T_PTR, lengths)
  PTR(T_PTR, scales)
  PTR(T_PTR, s)
#if VECTORS
#if !SYMMETRIC
  PTR(T_PTR, y)
#endif
  PTR(T_PTR, v)
#endif
  Strided ys, vs;
  uint n, rows, lines, count;
};

// Changes the sign of those columns of v for which r's diagonal is negative.
struct SignsArgs {
  PTR(T_PTR, r)
  PTR(T_PTR, v)
  Strided rs, vs;
  uint n, count;
};

#ifdef __cplusplus
constexpr uint linalg_block = 32;

constexpr uint linalg_bytes(Type t) { // of an item
  return t == Type::f64 ? 8 : 4;
}

struct CholeskyVariant {
  Type T;
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return BLOCK * (BLOCK + 3) * linalg_bytes(T);
  }
  KERNEL_VARIANT("linalg/cholesky", CholeskyArgs, T, BLOCK)
};

struct SolveVariant {
  Type T;
  bool UNIT; // t has a unit diagonal
  bool R; // b has a part in memory
  uint EYE; // 1: and rows of the identity; 2: where places says
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    return BLOCK * (BLOCK + 1) * linalg_bytes(T);
  }
  KERNEL_VARIANT("linalg/solve", SolveArgs, T, UNIT, R, EYE, BLOCK)
};

// For panels of at most ROWS * WG_SIZE rows.
struct LuPanelVariant {
  Type T;
  uint ROWS, WIDE, WG_SIZE;
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    uint items = WIDE * (BLOCK + WIDE + 2) + WG_SIZE;
    return items * linalg_bytes(T) + WG_SIZE * 4;
  }
  KERNEL_VARIANT("linalg/lu_panel", LuPanelArgs, T, ROWS, WIDE, WG_SIZE, BLOCK)
};

// For panels of at most ROWS * LANES rows.
struct QrPanelVariant {
  Type T;
  uint ROWS, LANES, WIDE;
  bool STAGED;
  uint BLOCK = linalg_block;
  constexpr uint shared_memory() const {
    uint items = LANES * WIDE + (STAGED ? 2 * ROWS * LANES : 0);
    return items * linalg_bytes(T);
  }
  KERNEL_VARIANT(
      "linalg/qr_panel", QrPanelArgs, T, ROWS, LANES, WIDE, STAGED, BLOCK)
};

struct LuColumnVariant {
  Type T;
  bool START;
  uint BLOCK = linalg_block;
  KERNEL_VARIANT("linalg/lu_column", LuColumnArgs, T, START, BLOCK)
};

struct LuSwapVariant {
  Type T;
  uint BLOCK = linalg_block;
  KERNEL_VARIANT("linalg/lu_swap", LuSwapArgs, T, BLOCK)
};

struct JacobiVariant {
  Type T;
  uint MOST, LINES; // a multiple of 32; MOST or twice as many
  constexpr uint shared_memory() const {
    return MOST * (LINES + 1) * linalg_bytes(T) + 4;
  }
  KERNEL_VARIANT("linalg/jacobi", JacobiArgs, T, MOST, LINES)
};

struct StartVariant {
  Type T;
  bool SYMMETRIC;
  KERNEL_VARIANT("linalg/start", StartArgs, T, SYMMETRIC)
};

struct RoundVariant {
  Type T;
  uint WIDE = linalg_block; // columns of two blocks
  constexpr uint shared_memory() const {
    return WIDE * (2 * (WIDE + 1) + 1) * linalg_bytes(T) + 4;
  }
  KERNEL_VARIANT("linalg/round", RoundArgs, T, WIDE)
};

struct FinishVariant {
  Type T;
  bool SYMMETRIC, VECTORS;
  KERNEL_VARIANT("linalg/finish", FinishArgs, T, SYMMETRIC, VECTORS)
};

struct SignsVariant {
  Type T;
  bool LARGE = false;
  KERNEL_VARIANT("linalg/signs", SignsArgs, T, LARGE)
};
#endif

END_INTERFACE

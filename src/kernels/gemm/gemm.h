// Interfaces of dense products y = alpha * a b + beta * c of M x K and K x N
// matrices: gemm.comp, rows_coopmat.comp, gemm_fragments.comp,
// rows_skinny.comp, gemv.comp and gemv_axpy.comp.
#include "common/fragments.h"
#include "gemm/batch.h"
#include "gemm/skinny_tile.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <typename Index, typename Batch> // int32_t; int64_t if LARGE
#endif
struct GemmArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, b)
#if AXPBY
  PTR(T_PTR, c)
#endif
#if BATCH == BATCH_GATHER || BATCH == BATCH_SORTED
  PTR(Ptr_u32, lhs)
  PTR(Ptr_u32, rhs)
#endif
#if BATCH == BATCH_SORTED
  PTR(Ptr_u32, tiles) // sorted_tiles.h
#endif
  PTR(Y_PTR, y)
  uint M, N, K;
  uint m_tiles, n_tiles; // workgroups per matrix
  uint splits, k_split; // parts of k, and their length
  uint batches;
  uint transposed; // whether y is transposed (thin products)
  Index a_row, a_col, b_row, b_col, c_row, c_col;
  float alpha, beta;
  Batch batch; // last, so that GLSL and C++ agree on padding
};

#ifdef __cplusplus

// Fields common to all variants.
#define GEMM_FIELDS \
  bool AXPBY;       \
  uint BATCH;       \
  bool SPLIT, LARGE;
#define GEMM_NAMES AXPBY, BATCH, SPLIT, LARGE

// A_T: a has unit stride along rows. B_T: b has unit stride along k. VA, VB:
// aligned vector loads of a, b, none across an edge. AXPBY: alpha, beta and c
// apply. SPLIT: y holds float (or complex) partial sums, [split][batch][m][n].
// LARGE: offsets in a matrix are 64-bit.
struct TileVariant {
  Type T;
  uint BM, BN, TM, TN; // tile of y per workgroup and per invocation
  uint BK; // depth of a tile
  bool A_T, B_T, VA, VB;
  bool PREFETCH; // the next tiles are loaded into registers
  GEMM_FIELDS

  // Shared memory of gemm.comp and tile.glsl, in bytes.
  constexpr uint shared_memory() const {
    uint item = T == Type::c64 || T == Type::f64 ? 8 : 4;
    uint tiles = BK * (BM + BN + 32 / item);
    return (tiles + (PREFETCH ? 0 : BM * BN)) * item;
  }
  KERNEL_VARIANT(
      "gemm/gemm", GemmArgs, T, BM, BN, TM, TN, BK, A_T, B_T, VA, VB, PREFETCH,
      GEMM_NAMES)
};

struct CoopmatVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  bool A_T, B_T, VA, VB;
  GEMM_FIELDS
  MATRIX_VARIANT(
      "gemm/rows_coopmat", GemmArgs, BM, BN, WM, WN, A_T, B_T, VA, VB,
      GEMM_NAMES)
};

// b has unit stride along k, and a has it too, or with A_T along its rows. With
// Y_T, y is written transposed. Needs NVIDIA's element layout of matrices.
struct FragmentsVariant {
  Type T;
  uint SG;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  bool A_T, Y_T;
  GEMM_FIELDS
  FRAGMENT_MATRICES

  static constexpr uint depth = 32; // items of k per step

  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint a = A_T ? depth * (BM / 8 + 1) : BM * (depth / 8 + 1);
    return 2 * a * 16 + (EMULATED ? WM * WN * 2048 : 0);
  }
  KERNEL_VARIANT(
      "gemm/gemm_fragments", GemmArgs, T, SG, BM, BN, WM, WN, A_T, Y_T,
      GEMM_NAMES, FRAGMENT_NAMES)
};

// A few dozen rows; unit stride along k in a and b.
struct SkinnyVariant : SkinnyTile {
  Type T;
  GEMM_FIELDS
  COOPMAT_VARIANT("gemm/rows_skinny", GemmArgs, FM, FN, WN, WK, GEMM_NAMES)
};

// Thin products: n <= NV.
struct DotVariant {
  Type T;
  uint WG, ROWS, NV; // invocations and rows per workgroup
  bool VA, VB;
  GEMM_FIELDS
  KERNEL_VARIANT("gemm/gemv", GemmArgs, T, WG, ROWS, NV, VA, VB, GEMM_NAMES)
};

struct AxpyVariant {
  Type T;
  uint WG, LANES, NV; // invocations per workgroup; adjacent ones along rows
  bool VA;
  GEMM_FIELDS
  KERNEL_VARIANT("gemm/gemv_axpy", GemmArgs, T, WG, LANES, NV, VA, GEMM_NAMES)
};

#endif

END_INTERFACE

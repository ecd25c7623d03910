// Dense products y = alpha * a b + beta * c of m x k and k x n matrices, by
// gemm.comp, gemm_coopmat.comp, gemm_fragments.comp, gemm_skinny.comp,
// gemv.comp and gemv_axpy.comp.
#include "common/fragments.h"
#include "gemm/batch.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <typename Index, typename Batch> // int32_t, or int64_t if LARGE
#endif
struct GemmArgs {
  PTR(T_PTR, a)
  PTR(T_PTR, b)
#if AXPBY
  PTR(T_PTR, c)
#endif
#if BATCH == BATCH_GATHER
  PTR(Ptr_u32, lhs)
  PTR(Ptr_u32, rhs)
#endif
  PTR(Y_PTR, y)
  uint m, n, k;
  uint tiles_m, tiles_n; // workgroups a matrix
  uint splits, k_split; // of k, and k's in each
  uint batches;
  uint transposed; // y, of thin products
  Index a_row, a_col, b_row, b_col, c_row, c_col;
  float alpha, beta;
  Batch batch; // last: in GLSL nothing pads it
};

#ifdef __cplusplus

// What all of them say alike.
#define GEMM_FIELDS \
  bool AXPBY;       \
  uint BATCH;       \
  bool SPLIT, LARGE;
#define GEMM_NAMES AXPBY, BATCH, SPLIT, LARGE

// A_T: a's rows are the unit-stride direction. B_T: b's k is. VA, VB: aligned
// loads of several items of a, b, none of which straddles an edge. AXPBY: alpha
// and c take part. SPLIT: y is float (or complex) partial sums, laid out
// [split][batch][m][n]. LARGE: offsets inside a matrix have 64 bits.
struct TileVariant {
  Type T;
  uint BM, BN, TM, TN; // of y, a workgroup and an invocation
  uint BK; // k's of a tile
  bool A_T, B_T, VA, VB;
  bool PREFETCH; // the next tiles into registers
  GEMM_FIELDS

  // As gemm.comp and tile.glsl declare it.
  constexpr uint shared_memory() const {
    uint item = T == Type::c64 ? 8 : 4;
    uint tiles = BK * (BM + BN + 8);
    return (tiles + (PREFETCH ? 0 : BM * BN)) * item;
  }
  KERNEL_VARIANT(
      "gemm/gemm",
      T,
      BM,
      BN,
      TM,
      TN,
      BK,
      A_T,
      B_T,
      VA,
      VB,
      PREFETCH,
      GEMM_NAMES)
};

struct CoopmatVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // of y, a workgroup; subgroups along them
  bool A_T, B_T, VA, VB;
  GEMM_FIELDS
  MATRIX_VARIANT(
      "gemm/gemm_coopmat",
      BM,
      BN,
      WM,
      WN,
      A_T,
      B_T,
      VA,
      VB,
      GEMM_NAMES)
};

// a's rows and b's columns along k, in matrices whose elements lie as NVIDIA's.
struct FragmentsVariant {
  Type T;
  uint SG;
  uint BM, BN, WM, WN; // of y, a workgroup; subgroups along them
  GEMM_FIELDS
  FRAGMENT_MATRICES

  static constexpr uint depth = 32; // k's a step

  // As the kernel declares it.
  constexpr uint shared_memory() const {
    return 2 * BM * (depth / 8 + 1) * 16 + (EMULATED ? WM * WN * 2048 : 0);
  }
  KERNEL_VARIANT(
      "gemm/gemm_fragments",
      T,
      SG,
      BM,
      BN,
      WM,
      WN,
      GEMM_NAMES,
      FRAGMENT_NAMES)
};

// m of a few dozen, a's rows and b's columns along k.
struct SkinnyVariant {
  Type T;
  uint SG;
  uint FM, FN; // 16 x 16 fragments of a subgroup, along m and n
  uint WN, WK; // subgroups along n, and along k
  GEMM_FIELDS

  constexpr uint rows() const {
    return 16 * FM;
  }
  constexpr uint columns() const {
    return 16 * FN * WN;
  }
  // As the kernel declares it.
  constexpr uint shared_memory() const {
    uint a = 2 * (16 * FM * 3 + 4) * 16;
    uint b = 2 * (16 * FN * 3 + 4) * 16;
    return WK * (a + WN * (b + 1024));
  }
  COOPMAT_VARIANT("gemm/gemm_skinny", FM, FN, WN, WK, GEMM_NAMES)
};

// Of thin products: n <= NV.
struct DotVariant {
  Type T;
  uint WG, ROWS, NV; // invocations and rows a workgroup
  bool VA, VB;
  GEMM_FIELDS
  KERNEL_VARIANT("gemm/gemv", T, WG, ROWS, NV, VA, VB, GEMM_NAMES)
};

struct AxpyVariant {
  Type T;
  uint WG, LANES, NV; // invocations a workgroup, and side by side along rows
  bool VA;
  GEMM_FIELDS
  KERNEL_VARIANT("gemm/gemv_axpy", T, WG, LANES, NV, VA, GEMM_NAMES)
};

#endif

END_INTERFACE

// Quantized products: qmv, qvm, qmm, qmm_coopmat and qmm_sorted.
#ifndef QUANT_PRODUCT_H
#define QUANT_PRODUCT_H

#include "quant/formats.h"

// BATCH: how the matrices of each product are found.
#define BATCH_ONE 0 // there is one product
#define BATCH_STACK 1 // each operand has strides
#define BATCH_GATHER 2 // lhs names the matrix of x, rhs that of w
#define STACK_DIMS 8

// Up to so many outputs at a time qmv.comp adds up codes of a power of two bits
// in its faster way, which rounds otherwise.
#define QMV_FEW_OUTS 8

BEGIN_INTERFACE

// Strides of x, w, scales and biases, or of lhs and rhs; then the distances of
// the matrices that indices name.
struct ProductStack {
  int64_t strides[4][STACK_DIMS];
  int64_t x_matrix, w_matrix, scale_matrix, side_matrix;
  int shape[STACK_DIMS];
  int ndim;
  uint batch;
  uint x_matrices, w_matrices; // that indices may name
};

struct ProductArgs {
  PTR(T_PTR, x)
  WEIGHT_INPUTS
#if BATCH == BATCH_GATHER
  PTR(Ptr_u32, lhs)
  PTR(Ptr_u32, rhs)
#if SORTED
  PTR(Ptr_u32, tiles) // gemm/sorted_tiles.h
#endif
#endif
  PTR(T_PTR, y)
  int64_t x_row; // from one row of x to the next
  uint M, N, K;
  uint m_tiles, n_tiles, groups; // workgroups: along M, along N, in all
#if BATCH != BATCH_ONE
  ProductStack stack;
#endif
};

#ifdef __cplusplus
struct StackedProductArgs : ProductArgs {
  ProductStack stack;
};

struct ProductVariant : FormatVariant {
  int BATCH;
  bool operator==(const ProductVariant&) const = default;
};
#define PRODUCT_MEMBERS FORMAT_MEMBERS, BATCH

struct QmvVariant : ProductVariant {
  uint ROWS = 1; // of x a workgroup
  uint OUTS = 4; // outputs that share a load of x
  uint CHUNK = 32; // items of k that a lane takes at a time
  uint TURNS = 1; // chunks whose loads are under way together
  uint WG = 128;
  uint BLOCK = 16; // outputs a workgroup
  bool WHOLE_WORKGROUP = false; // works on the same outputs, not a subgroup
  bool VEC = true; // 16-byte loads of x and w
  // By matrix units (quant/qmv_matrix.glsl), for inputs of which type; lanes of
  // a subgroup, and room for items of x. Then CHUNK and OUTS are of no matter.
  bool COOPMAT = false, BF16_EXT = false, F16_EXT = false;
  uint SG = 0, X_ITEMS = 0;
  void use_matrices(uint subgroup) {
    COOPMAT = WHOLE_WORKGROUP = true;
    (T == Type::f16 ? F16_EXT : BF16_EXT) = true;
    SG = subgroup;
    OUTS = 16;
    CHUNK = GROUP / 4;
  }
  bool operator==(const QmvVariant&) const = default;
#define QMV_MEMBERS                                                         \
  T, PRODUCT_MEMBERS, ROWS, OUTS, CHUNK, TURNS, WG, BLOCK, WHOLE_WORKGROUP, \
      VEC, COOPMAT, BF16_EXT, F16_EXT, SG, X_ITEMS
  KERNEL_VARIANT("quant/qmv", QMV_MEMBERS)
};

struct QvmVariant : ProductVariant {
  uint ROWS = 1; // of x a workgroup
  uint TX = 16, TY = 16; // lanes along n and along k
  KERNEL_VARIANT("quant/qvm", T, PRODUCT_MEMBERS, ROWS, TX, TY)
};

struct QmmVariant : ProductVariant {
  bool TRANSPOSE, SORTED;
  uint BM = 64, BN = 64, TM = 4, TN = 4; // outputs a workgroup, an invocation
  KERNEL_VARIANT(
      "quant/qmm",
      T,
      PRODUCT_MEMBERS,
      TRANSPOSE,
      SORTED,
      BM,
      BN,
      TM,
      TN)
};

// Rows of x with sorted indices; w transposed.
struct QmmSortedVariant : ProductVariant {
  MatrixUnits units;
  uint BM, BN, WM, WN; // outputs a workgroup; subgroups along them
  uint BK; // of k in a tile

  // What the kernel declares at most; rows of eight items have 16 bytes.
  constexpr uint shared_memory() const {
    uint groups = uint(GROUP) < BK ? BK / uint(GROUP) : 1;
    uint tiles = (BM + BN) * (BK / 8 + 1) * 16;
    return tiles + groups * (BN * 8 + BM * 4) +
        WM * WN * units.shape.m * units.shape.n * 4;
  }
  MATRIX_VARIANT("quant/qmm_sorted", PRODUCT_MEMBERS, BM, BN, WM, WN, BK)
};

struct QmmCoopmatVariant : ProductVariant {
  MatrixUnits units;
  bool TRANSPOSE, SORTED;
  uint BM, BN, WM, WN; // outputs a workgroup; subgroups along them
  MATRIX_VARIANT(
      "quant/qmm_coopmat",
      PRODUCT_MEMBERS,
      TRANSPOSE,
      SORTED,
      BM,
      BN,
      WM,
      WN)
};
#endif

END_INTERFACE

#endif

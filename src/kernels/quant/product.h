// Interfaces of quantized products: qmv, qvm, qmm, and of
// gemm/rows_coopmat and gemm/rows_skinny.
#pragma once

#include "gemm/skinny_tile.h"
#include "quant/formats.h"

// BATCH: addressing of the matrices of each product.
#define BATCH_ONE 0 // one product
#define BATCH_STACK 1 // strides for each operand
#define BATCH_GATHER 2 // lhs indexes matrices of x, rhs those of w
#define STACK_DIMS 8

// Largest OUTS for which qmv.comp uses its faster, differently rounded sum for
// codes of 2, 4 or 8 bits.
#define QMV_FEW_OUTS 8

BEGIN_INTERFACE

// Strides of x, w, scales and biases, or of lhs and rhs; then the distances
// between consecutive matrices.
struct ProductStack {
  int64_t strides[4][STACK_DIMS];
  int64_t x_matrix, w_matrix, scale_matrix, side_matrix;
  int shape[STACK_DIMS];
  int ndim;
  uint batch;
  uint x_matrices, w_matrices; // bounds of lhs and rhs
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
  int64_t x_row; // stride between rows of x
  uint M, N, K;
  uint m_tiles, n_tiles, groups; // workgroups along M, along N and in total
#if SPLIT
  uint k_split; // length of the parts of k
#endif
#if BATCH != BATCH_ONE
  ProductStack stack;
#endif
};

#ifdef __cplusplus
struct SplitProductArgs : ProductArgs {
  uint k_split;
};
struct StackedProductArgs : ProductArgs {
  ProductStack stack;
};

struct ProductVariant : FormatVariant {
  int BATCH;
  bool operator==(const ProductVariant&) const = default;
};
#define PRODUCT_MEMBERS FORMAT_MEMBERS, BATCH

struct QmvVariant : ProductVariant {
  uint ROWS = 1; // rows of x per workgroup
  uint OUTS = 4; // outputs that share a load of x
  uint CHUNK = 32; // items of k per lane and step
  uint TURNS = 1; // steps whose loads are in flight together
  uint WG = 128;
  uint BLOCK = 16; // outputs per workgroup
  bool WHOLE_WORKGROUP = false; // outputs are split over the workgroup
  bool VEC = true; // 16-byte loads of x and w
  // INT_DOT: integer dot products (quant/x_digits.glsl), with K in ROW_ITEMS.
  bool INT_DOT = false;
  uint ROW_ITEMS = 0;
  // COOPMAT: cooperative matrices (quant/qmv_matrix.glsl), bfloat16 or float16
  // x; CHUNK and OUTS are unused.
  bool COOPMAT = false, BF16_EXT = false, F16_EXT = false;
  uint SG = 0;
  void use_matrices(uint subgroup) {
    COOPMAT = WHOLE_WORKGROUP = true;
    (T == Type::f16 ? F16_EXT : BF16_EXT) = true;
    SG = subgroup;
    OUTS = 16;
    CHUNK = GROUP / 4;
  }
  // Shared memory of x_digits.glsl, in bytes: per item three digits, per chunk
  // of 32 items a scale and a sum.
  static constexpr uint digit_bytes(uint k) {
    return k / 32 * (3 * 32 + 8);
  }
  bool operator==(const QmvVariant&) const = default;
#define QMV_MEMBERS                                                         \
  T, PRODUCT_MEMBERS, ROWS, OUTS, CHUNK, TURNS, WG, BLOCK, WHOLE_WORKGROUP, \
      VEC, INT_DOT, ROW_ITEMS, COOPMAT, BF16_EXT, F16_EXT, SG
  KERNEL_VARIANT("quant/qmv", ProductArgs, QMV_MEMBERS)
};

struct QvmVariant : ProductVariant {
  uint ROWS = 1; // rows of x per workgroup
  uint TX = 16, TY = 16; // lanes along n and along k
  KERNEL_VARIANT("quant/qvm", ProductArgs, T, PRODUCT_MEMBERS, ROWS, TX, TY)
};

struct QmmVariant : ProductVariant {
  bool TRANSPOSE, SORTED;
  uint BM = 64, BN = 64, TM = 4, TN = 4; // outputs per workgroup, invocation
  bool VEC = false; // 16-byte loads; K is a multiple of 32, and w transposed
  KERNEL_VARIANT(
      "quant/qmm", ProductArgs, T, PRODUCT_MEMBERS, TRANSPOSE, SORTED, BM, BN,
      TM, TN, VEC)
};

struct QmmCoopmatVariant : ProductVariant {
  MatrixUnits units;
  // Codes enter the product, else weights rounded to 16 bits. With
  // units.halves x is packed (quant/half_rows.h).
  bool CODES;
  bool TRANSPOSE, FINITE_FIRST;
  bool SORTED; // rows of x by matrix index
  bool SPLIT; // y holds float partial sums, [part][M][N]
  uint BM, BN, WM, WN; // outputs per workgroup; subgroups along each axis
  uint BK = 32; // depth of a tile

  // Shared memory of the kernel, in bytes; eight items take 16.
  constexpr uint shared_memory() const {
    uint w = TRANSPOSE ? BN * (BK / 8 + 1) : BK * (BN / 8 + 1);
    uint groups = !CODES ? 0 : uint(GROUP) < BK ? BK / uint(GROUP) : 1;
    uint row = units.halves ? 8 : SIDE == SIDE_BIASES ? 4 : 0;
    return (BM * (BK / 8 + 1) + w) * 16 + groups * (BN * 8 + BM * row) +
        WM * WN * units.shape.m * units.shape.n * 4;
  }
  MATRIX_VARIANT(
      "gemm/rows_coopmat", ProductArgs, PRODUCT_MEMBERS, CODES, TRANSPOSE,
      FINITE_FIRST, SORTED, SPLIT, BM, BN, WM, WN, BK)
};

// A few dozen rows, w transposed.
struct QmmSkinnyVariant : ProductVariant, SkinnyTile {
  uint DEPTH; // units of k prefetched in registers

  constexpr uint shared_memory() const {
    uint groups = GROUP < 64 ? 64 / GROUP : 1;
    return SkinnyTile::shared_memory(groups * 16 * FN * 8);
  }
  COOPMAT_VARIANT(
      "gemm/rows_skinny", ProductArgs, PRODUCT_MEMBERS, FM, FN, WN, WK, DEPTH)
};
#endif

END_INTERFACE

// Convolutions as products of matrices whose first one is never made: y (rows x
// outputs of a group) = a b, where row r of a are the items of x under the taps
// of w at place r of y, and b's columns are w's outputs. By
// conv_fragments.comp, conv_coopmat.comp and conv_tile.comp.
#ifndef CONV_PRODUCT_H
#define CONV_PRODUCT_H

#include "common/fragments.h"
#include "common/interface.h"

// y has items of T, or is float parts of the sums.
#ifndef Y_PTR
#define Y_PTR T_PTR
#define Y_SIZE T_SIZE
#endif

BEGIN_INTERFACE

struct ConvProductArgs { // axes are d, h, w
  PTR(T_PTR, x)
  PTR(T_PTR, w) // row-contiguous
  PTR(Y_PTR, y)
  int64_t x_n, x_c, x_s[3];
  int x_size[3], w_size[3], y_size[3];
  int stride[3], pad[3], w_dilation[3], x_dilation[3];
  uint rows, outputs, group_outputs, channels, groups;
  uint depth; // taps x channels: k of the product
  uint tiles_m, tiles_n; // of a group
  uint splits, k_split; // of k, and k's in each
  uint flip;
};

#ifdef __cplusplus

// AXES: the last of d, h, w exist. DILATED: x is. VA: channels are read several
// at a time (eight by matrix units, else four), VB: so is w, VY: so is y
// written. LARGE: offsets have 64 bits.
struct ConvMatrixVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // of y, a workgroup; subgroups along them
  uint BK; // of a tile
  uint AXES;
  bool DILATED, VA, VB, VY, LARGE;
  uint WRAPS; // taps that BK channels may pass, if VA

  // As the kernel declares it.
  constexpr uint shared_memory() const {
    return (BM + BN) * (BK / 8 + 1) * 16 +
        WM * WN * units.shape.m * units.shape.n * 4 + BM * 8;
  }
  MATRIX_VARIANT(
      "conv/conv_coopmat",
      BM,
      BN,
      WM,
      WN,
      BK,
      AXES,
      DILATED,
      VA,
      VB,
      VY,
      LARGE,
      WRAPS)
};

// Of each tap there are whole steps of channels, in matrices whose elements lie
// as NVIDIA's. SPLIT: y is float parts of the sums, [split][place][output].
struct ConvFragmentsVariant {
  Type T;
  uint SG;
  uint BM, BN, WM, WN; // of y, a workgroup; subgroups along them
  uint AXES;
  bool DILATED, SPLIT, LARGE;
  FRAGMENT_MATRICES

  static constexpr uint step = 32; // k's
  static constexpr uint MOST_TAPS = 128;

  // As the kernel declares it.
  constexpr uint shared_memory() const {
    uint place = LARGE ? 12 : 8;
    return 2 * BM * (step / 8 + 1) * 16 + (EMULATED ? WM * WN * 2048 : 0) +
        (BM + MOST_TAPS) * place;
  }
  KERNEL_VARIANT(
      "conv/conv_fragments",
      T,
      SG,
      BM,
      BN,
      WM,
      WN,
      AXES,
      DILATED,
      SPLIT,
      LARGE,
      MOST_TAPS,
      FRAGMENT_NAMES)
};

struct ConvTileVariant {
  Type T;
  uint BM, BN, TM, TN; // of y, a workgroup and an invocation
  uint AXES;
  bool DILATED, VA, VB;
  bool PREFETCH; // the next tiles into registers
  bool LARGE;
  KERNEL_VARIANT(
      "conv/conv_tile",
      T,
      BM,
      BN,
      TM,
      TN,
      AXES,
      DILATED,
      VA,
      VB,
      PREFETCH,
      LARGE)
};

#endif

END_INTERFACE

#endif

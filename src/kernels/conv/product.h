// Interfaces of convolutions as implicit matrix products (im2col without the
// matrix): y (rows x outputs of a group) = a b. Row r of a holds the items of x
// under the taps of w at position r of y; columns of b are w's outputs. Used by
// conv_fragments.comp, conv_coopmat.comp and conv_tile.comp.
#pragma once

#include "common/fragments.h"
#include "common/interface.h"

// y has items of T, or float partial sums with SPLIT.
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
  uint tiles_m, tiles_n; // tiles of a group
  uint splits, k_split; // parts of k, and their length
  uint flip;
};

#ifdef __cplusplus

// AXES: number of spatial axes. DILATED: x is dilated. VA, VB, VY: vector
// accesses to x's channels, w and y (eight items by matrix units, else four).
// LARGE: offsets are 64-bit.
struct ConvMatrixVariant {
  Type T;
  MatrixUnits units;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  uint BK; // depth of a tile
  uint AXES;
  bool DILATED, VA, VB, VY, LARGE;
  uint WRAPS; // taps that BK channels may cross, if VA

  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    return (BM + BN) * (BK / 8 + 1) * 16 +
        WM * WN * units.shape.m * units.shape.n * 4 + BM * (LARGE ? 12 : 8);
  }
  MATRIX_VARIANT(
      "conv/conv_coopmat", ConvProductArgs, BM, BN, WM, WN, BK, AXES, DILATED,
      VA, VB, VY, LARGE, WRAPS)
};

// Channels are a multiple of `step`; needs NVIDIA's element layout of matrices.
// SPLIT: y holds float partial sums, [split][position][output].
struct ConvFragmentsVariant {
  Type T;
  uint SG;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  uint AXES;
  bool DILATED, SPLIT, LARGE;
  FRAGMENT_MATRICES

  static constexpr uint step = 32; // items of k per step
  static constexpr uint MOST_TAPS = 128;

  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint place = LARGE ? 12 : 8;
    return 2 * BM * (step / 8 + 1) * 16 + (EMULATED ? WM * WN * 2048 : 0) +
        (BM + MOST_TAPS) * place;
  }
  KERNEL_VARIANT(
      "conv/conv_fragments", ConvProductArgs, T, SG, BM, BN, WM, WN, AXES,
      DILATED, SPLIT, LARGE, MOST_TAPS, FRAGMENT_NAMES)
};

struct ConvTileVariant {
  Type T;
  uint BM, BN, TM, TN; // tile of y per workgroup and per invocation
  uint AXES;
  bool DILATED, VA, VB;
  bool PREFETCH; // the next tiles are loaded into registers
  bool LARGE;
  KERNEL_VARIANT(
      "conv/conv_tile", ConvProductArgs, T, BM, BN, TM, TN, AXES, DILATED, VA,
      VB, PREFETCH, LARGE)
};

#endif

END_INTERFACE

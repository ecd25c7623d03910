// Storage formats of quantized weights: the single table for host code, kernels
// and tests. A new format is one row of it.
#pragma once

#include "common/interface.h"

// CODE: type of a code.
#define CODE_INTEGER 0
#define CODE_E2M1 1
#define CODE_E4M3 2
// SCALE: storage type of a group's scale.
#define SCALE_AS_T 0 // the type T of the items
#define SCALE_E8M0 1 // a power of two
#define SCALE_E4M3 2
// SIDE: operand in addition to codes and scales.
#define SIDE_NONE 0
#define SIDE_BIASES 1 // one per group
#define SIDE_GLOBAL 2 // one scale for the whole matrix

// Pointers of a quantized matrix.
#if SIDE == SIDE_BIASES
#define SIDE_INPUT PTR(T_PTR, biases)
#elif SIDE == SIDE_GLOBAL
#define SIDE_INPUT PTR(Ptr_f32, global_scale)
#else
#define SIDE_INPUT
#endif
#define WEIGHT_INPUTS    \
  PTR(Ptr_u32, w)        \
  PTR(SCALE_PTR, scales) \
  SIDE_INPUT

#ifdef __cplusplus
BEGIN_INTERFACE

struct QuantFormat {
  int bits, group; // bits per code; items per scale
  int code, scale; // CODE_*, SCALE_*
  bool bias;
};

struct QuantMode {
  int bits[8], groups[4]; // supported values, padded with zeros
  int code, scale;
  bool bias;

  constexpr QuantFormat format(int bits, int group) const {
    return {bits, group, code, scale, bias};
  }
};

// Same order as MLX's QuantizationMode: affine, mxfp4, mxfp8, nvfp4.
constexpr QuantMode quant_modes[] = {
    {{1, 2, 3, 4, 5, 6, 8}, {32, 64, 128}, CODE_INTEGER, SCALE_AS_T, true},
    {{4}, {32}, CODE_E2M1, SCALE_E8M0, false},
    {{8}, {32}, CODE_E4M3, SCALE_E8M0, false},
    {{4}, {16}, CODE_E2M1, SCALE_E4M3, false}};

// Defines common to all kernels of quantized items. `side`: there is an operand
// in addition to codes and scales.
struct FormatVariant {
  FormatVariant(Type type, const QuantFormat& f, bool side)
      : T(type), BITS(f.bits), GROUP(f.group), CODE(f.code), SCALE(f.scale) {
    SIDE = f.bias ? SIDE_BIASES : side ? SIDE_GLOBAL : SIDE_NONE;
  }
  Type T;
  int BITS, GROUP, CODE, SCALE, SIDE;
  bool operator==(const FormatVariant&) const = default;
};
#define FORMAT_MEMBERS BITS, GROUP, CODE, SCALE, SIDE

END_INTERFACE
#endif

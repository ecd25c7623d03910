// Variant members for matrices of known element layout with inputs of type T
// (common/matrix_elements.glsl): cooperative matrices, or emulation by floats
// in shared memory, with which tests check indices on devices without them.
#pragma once

#ifdef __cplusplus
#define FRAGMENT_MATRICES                                                    \
  bool COOPMAT = false, BF16_EXT = false, F16_EXT = false, EMULATED = false; \
  void use_matrices(bool emulated) {                                         \
    EMULATED = emulated;                                                     \
    COOPMAT = !emulated;                                                     \
    F16_EXT = COOPMAT && T == Type::f16;                                     \
    BF16_EXT = COOPMAT && T == Type::bf16;                                   \
  }
#define FRAGMENT_NAMES COOPMAT, BF16_EXT, F16_EXT, EMULATED

#endif

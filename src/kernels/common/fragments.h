// Members of a variant for inputs of type T whose matrices' elements the kernel
// knows (common/matrix_elements.glsl): cooperative matrices of which type, or
// matrices made of floats in shared memory, for tests of the indices where
// there are none.
#ifndef FRAGMENTS_H
#define FRAGMENTS_H

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

#endif

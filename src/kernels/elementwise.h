// Layouts and arguments shared by elementwise kernels and fused graphs
// (jit/emit.h). The arguments follow the pointers; common/elementwise.glsl has
// the loops.
#pragma once

#include "common/interface.h"

// FORM selects how a variant iterates over items.
// DENSE: all arrays have one dense layout, or an operand is a scalar.
#define FORM_DENSE 0
// STRIDED: results are row-contiguous; operands have up to 4 strided
// dimensions.
#define FORM_STRIDED 1
// STRIDED16: as STRIDED, with up to 16 dimensions.
#define FORM_STRIDED16 2
// DENSE4: dense and aligned, so that each access takes four items.
#define FORM_DENSE4 3
// DENSE_MANY: DENSE4 with several accesses in flight per invocation, which
// small item types need to reach the memory bandwidth.
#define FORM_DENSE_MANY 4

// Accesses in flight per invocation of DENSE_MANY, and the item count from
// which it is used; smaller arrays would leave cores idle.
#define MANY_FOURS 4u
#define MANY_ITEMS (1u << 23)

// Items of a row per invocation of a strided form.
#define STRIDED_WORK 4u

#ifndef __cplusplus
#define FOURS \
  (FORM == FORM_DENSE4 ? 1u : FORM == FORM_DENSE_MANY ? MANY_FOURS : 0u)
#define DENSE (FORM != FORM_STRIDED && FORM != FORM_STRIDED16)
#define DIMS (FORM == FORM_STRIDED ? 4 : 16)
#if DENSE
#define Items DenseItems
#else
#define Items StridedItems
#endif
#endif

BEGIN_INTERFACE

#ifdef __cplusplus
template <int OPERANDS>
#endif
struct DenseItems {
  uint64_t n;
#if defined(__cplusplus) || STEPS
  uint step[OPERANDS]; // 0 broadcasts a scalar
#endif
};

#ifdef __cplusplus
template <int OPERANDS, int DIMS>
#endif
struct StridedItems {
  uint64_t rows; // each has `last` items
  uint last;
  int ndim;
  int shape[DIMS];
  int64_t strides[OPERANDS][DIMS];
};

#ifdef __cplusplus
struct UnaryVariant {
  int FORM;
  Type IN, OUT;
  const char* OP; // a function of common/unary_ops.glsl
  bool LARGE;
  TAKES(StridedItems)
  KERNEL_VARIANT("unary", DenseItems, FORM, IN, OUT, OP, LARGE)
};

struct BinaryVariant {
  int FORM;
  Type IN, OUT;
  const char* OP; // a function of common/binary_ops.glsl
  bool REMAINDER; // adds Remainder as a second result to FloorDivide
  bool LARGE;
  TAKES(StridedItems)
  KERNEL_VARIANT("binary", DenseItems, FORM, IN, OUT, OP, REMAINDER, LARGE)
};

struct TernaryVariant {
  int FORM;
  Type C, T;
  const char* OP; // a function of common/ternary_ops.glsl
  bool LARGE;
  TAKES(StridedItems)
  KERNEL_VARIANT("ternary", DenseItems, FORM, C, T, OP, LARGE)
};
#endif

END_INTERFACE

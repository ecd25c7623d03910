// What elementwise kernels and fused graphs (jit/emit.h) share: their forms and
// the arguments that follow the pointers. common/elementwise.glsl has the
// loops.
#ifndef KERNELS_ELEMENTWISE_H
#define KERNELS_ELEMENTWISE_H

#include "common/interface.h"

// FORM, how a variant walks its items: all arrays have the same dense layout
// (or an operand is one value),
#define FORM_DENSE 0
// results are row-contiguous and operands have up to 4 dimensions of any
// stride,
#define FORM_STRIDED 1
// or up to 16 of them,
#define FORM_STRIDED16 2
// or dense, and aligned so that accesses take four items,
#define FORM_DENSE4 3
// of which each invocation has several under way: fours of small items are
// short, and memory gives all it can only if much is asked for at once.
#define FORM_DENSE_MANY 4

// Fours of an invocation of that form, and from how many items on it is taken:
// of fewer, cores would be left without work.
#define MANY_FOURS 4u
#define MANY_ITEMS (1u << 23)

// Items of a row that an invocation of a strided form takes.
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
  uint step[OPERANDS]; // 0: one value for all items
#endif
};

#ifdef __cplusplus
template <int OPERANDS, int DIMS>
#endif
struct StridedItems {
  uint64_t rows; // of `last` items
  uint last;
  int ndim;
  int shape[DIMS];
  int64_t strides[OPERANDS][DIMS];
};

#ifdef __cplusplus
struct UnaryVariant {
  int FORM;
  Type IN, OUT;
  const char* OP; // of common/unary_ops.glsl
  bool LARGE;
  KERNEL_VARIANT("unary", FORM, IN, OUT, OP, LARGE)
};

struct BinaryVariant {
  int FORM;
  Type IN, OUT;
  const char* OP; // of common/binary_ops.glsl
  bool REMAINDER; // a second result: Remainder beside FloorDivide
  bool LARGE;
  KERNEL_VARIANT("binary", FORM, IN, OUT, OP, REMAINDER, LARGE)
};

struct TernaryVariant {
  int FORM;
  Type C, T;
  const char* OP; // of common/ternary_ops.glsl
  bool LARGE;
  KERNEL_VARIANT("ternary", FORM, C, T, OP, LARGE)
};
#endif

END_INTERFACE

#endif

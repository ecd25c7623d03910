// The forms of elementwise kernels (common/elementwise.glsl has their loops).
//
// FORM 0: operands and results have the same dense layout, or an operand is one
// value (step 0); FORM 3: and take accesses of four items. FORM 1 and 2:
// results are row-contiguous, operands have up to 4 or 16 dimensions of any
// stride.
#ifndef FORMS_GLSL
#define FORMS_GLSL

#include "common/index.glsl"
#include "common/vector.glsl"

#define DENSE (FORM == 0 || FORM == 3)
#define DIMS (FORM == 1 ? 4 : 16)

// Arguments of forms 1 and 2, but for the strides: A.s<x> of operand x.
#define STRIDED_ARGS uint64_t rows; uint last; int ndim; int shape[DIMS];

// Operand x in a row: where it starts, and its item c there.
#define ROW_OPERAND(x) Index base_##x, step_##x;
#define FIND_ROW(x, row)                                                      \
  OFFSET(base_##x, row, A.shape, A.s##x, A.ndim - 1);                         \
  step_##x = Index(A.s##x[A.ndim - 1]);
#define ROW_ITEM(x, c) load(A.x, base_##x + Index(c) * step_##x)

#endif

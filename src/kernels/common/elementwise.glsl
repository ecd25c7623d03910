// Loops, layouts and accesses of elementwise kernels and fused graphs, by FORM
// (elementwise.h). A kernel defines
//   EACH_INPUT(F, S)  F(k, VALUE, PTR, name) for operand k of OPERANDS, and
//                     S(k, VALUE, PTR, name) for a scalar
//   EACH_RESULT(F)    F(k, VALUE, PTR, name)
//   STEPS             1: dense forms read operand k with A.items.step[k]
// includes this file, and then defines the computation of item i:
//   void compute(UIndex i, VALUE input..., out VALUE result...)
#pragma once

#include "common/index.glsl"
#include "common/dense.h"
#include "common/vector.glsl"
#include "elementwise.h"

#define POINTER_(k, VALUE, PTR, x) PTR x;
struct ElementwiseArgs {
  EACH_INPUT(POINTER_, POINTER_)
  EACH_RESULT(POINTER_)
  Items items;
};
#define ARGS_BLOCK ElementwiseArgs
#include "common/args.glsl"

layout(local_size_x = DENSE_GROUP) in;

#define IN_PARAMETER_(k, VALUE, PTR, x) , VALUE x
#define OUT_PARAMETER_(k, VALUE, PTR, x) , out VALUE x
void compute(
    UIndex i EACH_INPUT(IN_PARAMETER_, IN_PARAMETER_)
        EACH_RESULT(OUT_PARAMETER_));

#define NOTHING_(k, VALUE, PTR, x)
#define DECLARE_(k, VALUE, PTR, x) VALUE x;
#define PASS_(k, VALUE, PTR, x) , x
#define LOAD_ONE_(k, VALUE, PTR, x) VALUE x = load(A.x, 0);
#define STORE_(k, VALUE, PTR, x) store(A.x, i, x);
// Computes an item whose inputs are declared by LOAD. All loads come first,
// because a result may share memory with an input.
#define MAKE_ITEM_(LOAD)                                                      \
  EACH_INPUT(LOAD, LOAD_ONE_)                                                 \
  EACH_RESULT(DECLARE_)                                                       \
  compute(i EACH_INPUT(PASS_, PASS_) EACH_RESULT(PASS_));                     \
  EACH_RESULT(STORE_)

#if DENSE
#if STEPS
#define STEP_(k) A.items.step[k]
#else
#define STEP_(k) 1u
#endif
#define LOAD_DENSE_(k, VALUE, PTR, x) VALUE x = load(A.x, i * STEP_(k));
void item(UIndex i) {
  MAKE_ITEM_(LOAD_DENSE_)
}

#if FORM != FORM_DENSE
#define LOAD4_(k, VALUE, PTR, x)                                              \
  VALUE x##_4[FOURS][4];                                                      \
  if (STEP_(k) == 0u) {                                                       \
    VALUE x = load(A.x, 0);                                                   \
    EACH_FOUR x##_4[f] = VALUE[4](x, x, x, x);                                \
  } else {                                                                    \
    EACH_FOUR x##_4[f] = LOAD_FOUR(PTR, A.x, four + f * DENSE_GROUP);         \
  }
#define DECLARE4_(k, VALUE, PTR, x) VALUE x##_4[FOURS][4];
#define TAKE_(k, VALUE, PTR, x) VALUE x = x##_4[f][lane];
#define PUT_(k, VALUE, PTR, x) x##_4[f][lane] = x;
#define STORE4_(k, VALUE, PTR, x)                                             \
  EACH_FOUR STORE_FOUR(PTR, A.x, four + f * DENSE_GROUP, x##_4[f]);
#define EACH_FOUR [[unroll]] for (uint f = 0u; f < FOURS; ++f)
// Computes FOURS groups of four items, DENSE_GROUP groups apart, from group
// `four` on.
void some_fours(UIndex four) {
  EACH_INPUT(LOAD4_, LOAD_ONE_)
  EACH_RESULT(DECLARE4_)
#if NUMBERS_FIRST
  numbers_seen = 0.0;
  numbers_only = true;
#endif
  EACH_FOUR {
    [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
      EACH_INPUT(TAKE_, NOTHING_)
      EACH_RESULT(DECLARE_)
      UIndex i = 4u * (four + f * DENSE_GROUP) + lane;
      compute(i EACH_INPUT(PASS_, PASS_) EACH_RESULT(PASS_));
      EACH_RESULT(PUT_)
    }
  }
#if NUMBERS_FIRST
  numbers_only = false;
  if (is_nan(numbers_seen)) {
    [[dont_unroll]] for (uint k = 0u; k < 4u * FOURS; ++k) {
      item(4u * (four + k / 4u * DENSE_GROUP) + k % 4u);
    }
    return;
  }
#endif
  EACH_RESULT(STORE4_)
}
#endif

void main() {
  UIndex n = UIndex(A.items.n);
#if FORM == FORM_DENSE_MANY
  // Full workgroups first, then workgroups for the remaining items.
  const uint group_items = 4u * MANY_FOURS * DENSE_GROUP;
  UIndex groups = n / group_items;
  UIndex group = UIndex(group_index());
  uint t = gl_LocalInvocationIndex;
  if (group < groups) {
    some_fours(group * (MANY_FOURS * DENSE_GROUP) + t);
  } else {
    UIndex i = groups * group_items + (group - groups) * DENSE_GROUP + t;
    if (i < n) {
      item(i);
    }
  }
#elif FORM == FORM_DENSE
  UIndex stride = dense_stride(n);
  for (UIndex i = flat_index(); i < n; i += stride) {
    item(i);
  }
#else
  // Groups of four first, then the remaining items.
  UIndex fours = n / 4u;
  UIndex units = fours + (n & 3u);
  UIndex stride = dense_stride(units);
  for (UIndex u = flat_index(); u < units; u += stride) {
    if (u < fours) {
      some_fours(u);
    } else {
      item(u + 3u * fours);
    }
  }
#endif
}

#else // strided
#define FIND_ROW_(k, VALUE, PTR, x)                                           \
  Index row_##x = Index(0);                                                   \
  Index step_##x = Index(A.items.strides[k][A.items.ndim - 1]);
#define ADD_AXIS_(k, VALUE, PTR, x)                                           \
  row_##x += here * Index(A.items.strides[k][d]);
#define LOAD_STRIDED_(k, VALUE, PTR, x)                                       \
  VALUE x = load(A.x, row_##x + Index(column) * step_##x);

// An invocation takes STRIDED_WORK items of a row, per_row apart, so that
// adjacent invocations access adjacent items.
void main() {
  uint last = A.items.last;
  uint per_row = (last + STRIDED_WORK - 1u) / STRIDED_WORK;
  UIndex t = flat_index();
  UIndex row = t / UIndex(per_row);
  if (row < UIndex(A.items.rows)) {
    EACH_INPUT(FIND_ROW_, NOTHING_)
    UIndex rest = row;
    for (int d = A.items.ndim - 2; d >= 0; --d) {
      Index here =
          Index(take_axis(rest, UIndex(uint(A.items.shape[d]))));
      EACH_INPUT(ADD_AXIS_, NOTHING_)
    }
    uint column = uint(t - row * UIndex(per_row));
    for (; column < last; column += per_row) {
      UIndex i = row * UIndex(last) + UIndex(column);
      MAKE_ITEM_(LOAD_STRIDED_)
    }
  }
}
#endif

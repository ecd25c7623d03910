// variants: FORM=0,1 IN=f32,i8 OUT=f32 OP=DivMod; FORM=2 IN=u64 OUT=u64 OP=DivMod LARGE=1
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/index.glsl"
#include "common/binary_ops.glsl"

// As binary.comp, with two outputs.
#if FORM == 0
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y0; OUT_PTR y1; uint64_t n; uint a_step;        \
  uint b_step;
#else
#define DIMS (FORM == 1 ? 4 : 16)
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y0; OUT_PTR y1; uint64_t rows; uint last;       \
  int ndim; int shape[DIMS]; int64_t sa[DIMS]; int64_t sb[DIMS];
#endif
#include "common/args.glsl"

#define DivMod0 FloorDivide
#define DivMod1 Remainder
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

layout(local_size_x = 256) in;

#if FORM == 0
void main() {
  UIndex n = UIndex(A.n);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex i = flat_index(); i < n; i += step) {
    IN a = load(A.a, i * A.a_step);
    IN b = load(A.b, i * A.b_step);
    store(A.y0, i, OUT_CAST(JOIN(OP, 0)(a, b)));
    store(A.y1, i, OUT_CAST(JOIN(OP, 1)(a, b)));
  }
}
#else
void main() {
  uint per_row = (A.last + STRIDED_WORK - 1u) / STRIDED_WORK;
  UIndex t = flat_index();
  UIndex row = t / UIndex(per_row);
  if (row < UIndex(A.rows)) {
    Index base_a;
    Index base_b;
    OFFSET(base_a, row, A.shape, A.sa, A.ndim - 1);
    OFFSET(base_b, row, A.shape, A.sb, A.ndim - 1);
    Index step_a = Index(A.sa[A.ndim - 1]);
    Index step_b = Index(A.sb[A.ndim - 1]);
    UIndex out_base = row * UIndex(A.last);
    for (uint c = uint(t - row * UIndex(per_row)); c < A.last; c += per_row) {
      IN a = load(A.a, base_a + Index(c) * step_a);
      IN b = load(A.b, base_b + Index(c) * step_b);
      UIndex i = out_base + UIndex(c);
      store(A.y0, i, OUT_CAST(JOIN(OP, 0)(a, b)));
      store(A.y1, i, OUT_CAST(JOIN(OP, 1)(a, b)));
    }
  }
}
#endif

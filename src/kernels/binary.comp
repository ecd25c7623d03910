// variants: FORM=0,1 IN=f32 OUT=f32 OP=Add,Power,Remainder; FORM=0 IN=f32,bf16,c64 OUT=bool OP=Less,NaNEqual; FORM=1,2 IN=i8,u64,bool OUT=i32 OP=Multiply,FloorDivide; FORM=0,2 IN=f16 OUT=f16 OP=LogAddExp LARGE=1; FORM=3 IN=f16,i8,u64 OUT=bool OP=Less; FORM=3 IN=c64,bf16 OUT=c64 OP=Multiply LARGE=1
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/index.glsl"
#include "common/binary_ops.glsl"
#include "common/vector.glsl"

// FORM 0: a, b and y have the same dense layout, or an operand is one value
// (step 0); FORM 3: and take accesses of four items. FORM 1 and 2: y is
// row-contiguous, a and b have up to 4 or 16 dimensions of any stride.
#define DENSE (FORM == 0 || FORM == 3)
#if DENSE
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y; uint64_t n; uint a_step; uint b_step;
#else
#define DIMS (FORM == 1 ? 4 : 16)
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y; uint64_t rows; uint last; int ndim;          \
  int shape[DIMS]; int64_t sa[DIMS]; int64_t sb[DIMS];
#endif
#include "common/args.glsl"

layout(local_size_x = 256) in;

#if FORM == 3
IN[4] splat(IN x) {
  return IN[4](x, x, x, x);
}

// Units: the quads, then the items left over.
void main() {
  UIndex quads = UIndex(A.n / 4u);
  UIndex units = quads + UIndex(A.n & 3u);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex u = flat_index(); u < units; u += step) {
    if (u < quads) {
      IN a[4] = A.a_step == 0u ? splat(load(A.a, 0)) : LOAD4(IN_PTR, A.a, u);
      IN b[4] = A.b_step == 0u ? splat(load(A.b, 0)) : LOAD4(IN_PTR, A.b, u);
      OUT y[4];
      for (int k = 0; k < 4; ++k) {
        y[k] = OUT_CAST(OP(a[k], b[k]));
      }
      STORE4(OUT_PTR, A.y, u, y);
    } else {
      UIndex i = u + 3u * quads;
      IN a = load(A.a, i * A.a_step);
      IN b = load(A.b, i * A.b_step);
      store(A.y, i, OUT_CAST(OP(a, b)));
    }
  }
}
#elif FORM == 0
void main() {
  UIndex n = UIndex(A.n);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex i = flat_index(); i < n; i += step) {
    IN a = load(A.a, i * A.a_step);
    IN b = load(A.b, i * A.b_step);
    store(A.y, i, OUT_CAST(OP(a, b)));
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
      store(A.y, out_base + UIndex(c), OUT_CAST(OP(a, b)));
    }
  }
}
#endif

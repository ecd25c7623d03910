// variants: FORM=0,1 IN=f32 OUT=f32 OP=Add,Power,Remainder; FORM=0 IN=f32,bf16,c64 OUT=bool OP=Less,NaNEqual; FORM=1,2 IN=i8,u64,bool OUT=i32 OP=Multiply,FloorDivide; FORM=0,2 IN=f16 OUT=f16 OP=LogAddExp LARGE=1
#include "common/types.glsl"
#include "common/index.glsl"
#include "common/binary_ops.glsl"

// FORM 0: a, b and y have the same dense layout, or an operand is one value
// (step 0). FORM 1 and 2: y is row-contiguous, a and b have up to 4 or 16
// dimensions of any stride.
#if FORM == 0
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

#if FORM == 0
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

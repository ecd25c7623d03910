// variants: FORM=0,1 IN=f32 OUT=f32 OP=Exp,Sqrt,Round; FORM=0 IN=bf16,f16 OUT=bf16 OP=Sin,Tanh,Sigmoid; FORM=1,2 IN=i8,u64 OUT=i8 OP=Abs,Square; FORM=0 IN=c64 OUT=c64 OP=ArcSin,Tan; FORM=0,2 IN=f32 OUT=f32 OP=Erf LARGE=1; FORM=3 IN=bf16,u8,i64,c64 OUT=bf16 OP=Square
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/index.glsl"
#include "common/unary_ops.glsl"
#include "common/vector.glsl"

// FORM 0: x and y have the same dense layout; FORM 3: and take accesses of
// four items. FORM 1 and 2: y is row-contiguous, x has up to 4 or 16 dimensions
// of any stride.
#define DENSE (FORM == 0 || FORM == 3)
#if DENSE
#define ARGS IN_PTR x; OUT_PTR y; uint64_t n;
#else
#define DIMS (FORM == 1 ? 4 : 16)
#define ARGS                                                                  \
  IN_PTR x; OUT_PTR y; uint64_t rows; uint last; int ndim;                    \
  int shape[DIMS]; int64_t sx[DIMS];
#endif
#include "common/args.glsl"

layout(local_size_x = 256) in;

#if FORM == 3
// Units: the quads, then the items left over.
void main() {
  UIndex quads = UIndex(A.n / 4u);
  UIndex units = quads + UIndex(A.n & 3u);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex u = flat_index(); u < units; u += step) {
    if (u < quads) {
      IN x[4] = LOAD4(IN_PTR, A.x, u);
      OUT y[4];
      for (int k = 0; k < 4; ++k) {
        y[k] = OUT_CAST(OP(x[k]));
      }
      STORE4(OUT_PTR, A.y, u, y);
    } else {
      UIndex i = u + 3u * quads;
      store(A.y, i, OUT_CAST(OP(load(A.x, i))));
    }
  }
}
#elif FORM == 0
void main() {
  UIndex n = UIndex(A.n);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex i = flat_index(); i < n; i += step) {
    store(A.y, i, OUT_CAST(OP(load(A.x, i))));
  }
}
#else
// An invocation takes STRIDED_WORK items of a row, spread so that neighbours
// stay neighbours.
void main() {
  uint per_row = (A.last + STRIDED_WORK - 1u) / STRIDED_WORK;
  UIndex t = flat_index();
  UIndex row = t / UIndex(per_row);
  if (row < UIndex(A.rows)) {
    Index base;
    OFFSET(base, row, A.shape, A.sx, A.ndim - 1);
    Index step = Index(A.sx[A.ndim - 1]);
    UIndex out_base = row * UIndex(A.last);
    for (uint c = uint(t - row * UIndex(per_row)); c < A.last; c += per_row) {
      store(
          A.y,
          out_base + UIndex(c),
          OUT_CAST(OP(load(A.x, base + Index(c) * step))));
    }
  }
}
#endif

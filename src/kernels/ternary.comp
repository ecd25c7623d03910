// variants: FORM=0,1,2 C=bool T=f32,bf16 OP=Select; FORM=0,1 C=bool T=u8,i64,c64,bool OP=Select; FORM=0,2 C=bool T=f16 OP=Select LARGE=1; FORM=3 C=bool T=f32,u8,bf16 OP=Select
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/index.glsl"
#include "common/ternary_ops.glsl"
#include "common/vector.glsl"

// Forms as in binary.comp.
#define DENSE (FORM == 0 || FORM == 3)
#if DENSE
#define ARGS                                                                  \
  C_PTR a; T_PTR b; T_PTR c; T_PTR y; uint64_t n; uint a_step; uint b_step;   \
  uint c_step;
#else
#define DIMS (FORM == 1 ? 4 : 16)
#define ARGS                                                                  \
  C_PTR a; T_PTR b; T_PTR c; T_PTR y; uint64_t rows; uint last; int ndim;     \
  int shape[DIMS]; int64_t sa[DIMS]; int64_t sb[DIMS]; int64_t sc[DIMS];
#endif
#include "common/args.glsl"

layout(local_size_x = 256) in;

#if FORM == 3
T[4] splat(T x) {
  return T[4](x, x, x, x);
}
C[4] splat_condition(C x) {
  return C[4](x, x, x, x);
}

void main() {
  UIndex quads = UIndex(A.n / 4u);
  UIndex units = quads + UIndex(A.n & 3u);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex u = flat_index(); u < units; u += step) {
    if (u < quads) {
      C a[4] =
          A.a_step == 0u ? splat_condition(load(A.a, 0)) : LOAD4(C_PTR, A.a, u);
      T b[4] = A.b_step == 0u ? splat(load(A.b, 0)) : LOAD4(T_PTR, A.b, u);
      T c[4] = A.c_step == 0u ? splat(load(A.c, 0)) : LOAD4(T_PTR, A.c, u);
      T y[4];
      for (int k = 0; k < 4; ++k) {
        y[k] = OP(a[k], b[k], c[k]);
      }
      STORE4(T_PTR, A.y, u, y);
    } else {
      UIndex i = u + 3u * quads;
      C a = load(A.a, i * A.a_step);
      T b = load(A.b, i * A.b_step);
      T c = load(A.c, i * A.c_step);
      store(A.y, i, OP(a, b, c));
    }
  }
}
#elif FORM == 0
void main() {
  UIndex n = UIndex(A.n);
  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex i = flat_index(); i < n; i += step) {
    C a = load(A.a, i * A.a_step);
    T b = load(A.b, i * A.b_step);
    T c = load(A.c, i * A.c_step);
    store(A.y, i, OP(a, b, c));
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
    Index base_c;
    OFFSET(base_a, row, A.shape, A.sa, A.ndim - 1);
    OFFSET(base_b, row, A.shape, A.sb, A.ndim - 1);
    OFFSET(base_c, row, A.shape, A.sc, A.ndim - 1);
    Index step_a = Index(A.sa[A.ndim - 1]);
    Index step_b = Index(A.sb[A.ndim - 1]);
    Index step_c = Index(A.sc[A.ndim - 1]);
    UIndex out_base = row * UIndex(A.last);
    for (uint i = uint(t - row * UIndex(per_row)); i < A.last; i += per_row) {
      C a = load(A.a, base_a + Index(i) * step_a);
      T b = load(A.b, base_b + Index(i) * step_b);
      T c = load(A.c, base_c + Index(i) * step_c);
      store(A.y, out_base + UIndex(i), OP(a, b, c));
    }
  }
}
#endif

// variants: T=f32,f16,bf16,c64 AXPBY=0,1 ND=0 GATHER=0; T=f32 AXPBY=1 ND=1 GATHER=0
//
// Adds the partial products of a split matrix product, [split][batch][m][n],
// and finishes y = alpha * sum + beta * c.
#include "common/types.glsl"
#include "gemm/batch.glsl"

#if T_KIND == KIND_COMPLEX
#define Acc vec2
#define PART_PTR Ptr_c64
#else
#define Acc float
#define PART_PTR Ptr_f32
#endif

#if AXPBY
#define C_POINTER T_PTR c;
#else
#define C_POINTER
#endif

#define ARGS                                                                  \
  PART_PTR parts; C_POINTER T_PTR y;                                          \
  uint m; uint n; uint splits; uint batches; int64_t c_row; int64_t c_col;    \
  float alpha; float beta; BATCH_ARGS
#include "common/args.glsl"

layout(local_size_x = 128) in;

void main() {
  uint64_t i = thread_index64();
  uint64_t matrix = uint64_t(A.m) * uint64_t(A.n);
  uint64_t total = matrix * uint64_t(A.batches);
  if (i < total) {
    Acc sum = Acc(0.0);
    for (uint s = 0; s < A.splits; ++s) {
      sum += load(A.parts, uint64_t(s) * total + i);
    }
#if AXPBY
    uint batch = uint(i / matrix);
    uint64_t rest = i - uint64_t(batch) * matrix;
    uint r = uint(rest / uint64_t(A.n));
    uint c = uint(rest - uint64_t(r) * uint64_t(A.n));
    int64_t ao, bo, co;
    BATCH_OFFSETS(batch, ao, bo, co)
    co += int64_t(r) * A.c_row + int64_t(c) * A.c_col;
    sum = A.alpha * sum + A.beta * load(A.c, co);
#endif
    store(A.y, i, sum);
  }
}

// variants: T=f32,f16,bf16,c64,i8,u32,i64,u64; T=f32,u8 LARGE=1
#include "common/types.glsl"
#include "common/index.glsl"

// Integers count in 64 bits and wrap; floats round once.
#if T_KIND == KIND_FLOAT || T_KIND == KIND_COMPLEX
#define Step float
#else
#define Step int64_t
#endif
#define ARGS T_PTR y; Step start; Step step; uint64_t n;
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex n = UIndex(A.n);
  UIndex stride = UIndex(group_count()) * gl_WorkGroupSize.x;
  for (UIndex i = flat_index(); i < n; i += stride) {
    precise Step v = A.start + Step(i) * A.step;
    store(A.y, i, T_CAST(v));
  }
}

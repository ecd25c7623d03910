// variants: T=f32,f16,bf16 DV=128 SINKS=0,1 LSE=0; T=f32 DV=80 SINKS=0 LSE=0; T=f32 DV=64 SINKS=0,1 LSE=1
//
// Joins the partial results of a split decode: one workgroup a row.
#define WG_SIZE 128
#define MASK 0
#include "common/types.glsl"
#include "attention/mask.glsl"

#define ARGS                                                                  \
  Ptr_f32 parts; SINKS_POINTER T_PTR y; LSE_POINTER                           \
  uint rows; uint heads; uint splits; uint queries;
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;
#include "common/subgroup.glsl"

void main() {
  uint row = group_index();
  // Uniform over the workgroup.
  if (row < A.rows) {
    uint t = gl_LocalInvocationIndex;
    uint64_t at = uint64_t(row) * A.splits * (DV + 2);
    float m = ABSENT;
    for (uint s = t; s < A.splits; s += WG_SIZE) {
      m = max(m, load(A.parts, at + s * (DV + 2) + DV));
    }
    m = workgroup_max(m);
    float total = 0.0;
    for (uint s = t; s < A.splits; s += WG_SIZE) {
      uint64_t part = at + s * (DV + 2) + DV;
      total += load(A.parts, part + 1) * exp2_diff(load(A.parts, part), m);
    }
    total = workgroup_sum(total);
    float keep = 1.0;
    float m_new = m;
#if SINKS
    float sink = load(A.sinks, row % A.heads) * LOG2E;
    m_new = max(m, sink);
    keep = exp2_diff(m, m_new);
    total = total * keep + exp2(sink - m_new);
#endif
#if LSE
    if (t == 0) {
      uint head = row % A.heads;
      uint query = row / A.heads % A.queries;
      uint batch = row / A.heads / A.queries;
      store(
          A.lse,
          (uint64_t(batch) * A.heads + head) * A.queries + query,
          natural_lse(m_new, total));
    }
#endif
    for (uint d = t; d < DV; d += WG_SIZE) {
      float x = 0.0;
      for (uint s = 0; s < A.splits; ++s) {
        uint64_t part = at + s * (DV + 2);
        x += load(A.parts, part + d) *
            exp2_diff(load(A.parts, part + DV), m);
      }
      store(A.y, uint64_t(row) * DV + d,
          total == 0.0 ? 0.0 : x * keep / total);
    }
  }
}

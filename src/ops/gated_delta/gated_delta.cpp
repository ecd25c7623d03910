#include <algorithm>

#include "ops/attention/operands.h"
#include "ops/gated_delta/gated_delta.h"
#include "ops/gated_delta/plan.h"
#include "ops/layout.h"

namespace mlx::core {

namespace vulkan {

bool in_fours(const array& a) {
  bool fits = by_fours(a);
  for (int d = 0; d < a.ndim() - 1; ++d) {
    fits = fits && a.strides(d) % 4 == 0;
  }
  return fits;
}

namespace {

template <int N>
void fill(int64_t (&to)[N], const array& a) {
  std::copy_n(a.strides().begin(), std::min(N, int(a.ndim())), to);
}

} // namespace

void gated_delta(
    StreamEncoder& enc,
    const GatedDelta& d,
    array& y,
    array& new_state) {
  if (new_state.size() == 0) {
    return;
  }
  const array& q = d.q;
  const array& k = d.k;
  const array& v = d.v;
  const array& h = d.state;
  GatedDeltaArgs p{};
  fill(p.q_s, q);
  fill(p.k_s, k);
  fill(p.v_s, v);
  fill(p.g_s, d.g);
  fill(p.beta_s, d.beta);
  p.steps = q.shape(1);
  p.heads = v.shape(2);
  p.repeat = p.heads / q.shape(2);
  p.dv = v.shape(3);
  uint32_t dk = q.shape(3);
  GatedDeltaProblem problem{
      .type = type_of(y),
      .gate_type = type_of(d.g),
      .steps = p.steps,
      .key_dim = dk,
      .vector_gates = d.g.ndim() == 4,
      .aligned = in_fours(q) && in_fours(k) && h.offset() % 16 == 0 &&
          new_state.offset() % 16 == 0,
      .counted = d.count.has_value()};
  auto plan = plan_gated_delta(enc.caps(), problem);
  p.rows = new_state.size() / dk;
  enc.dispatch(
      plan,
      {q, k, v, d.g, d.beta, h, d.count ? *d.count : h},
      {y, new_state},
      p,
      linear(p.rows * plan.LANES, 128),
      {.flops = 8.0 * new_state.size() * p.steps});
}

} // namespace vulkan
} // namespace mlx::core

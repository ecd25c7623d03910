#include <algorithm>
#include <sstream>

#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "kernels/gated_delta.h"
#include "ops/attention/operands.h"
#include "ops/gated_delta.h"
#include "ops/layout.h"
#include "vk/caps.h"

namespace mlx::core {
namespace vulkan {

bool fours_apart(const array& a) {
  bool fits = a.offset() % (4 * a.itemsize()) == 0;
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
    const array& q,
    const array& k,
    const array& v,
    const array& g,
    const array& beta,
    const array& h,
    array& out,
    array& state) {
  GatedDeltaArgs p{};
  fill(p.q_s, q);
  fill(p.k_s, k);
  fill(p.v_s, v);
  fill(p.g_s, g);
  fill(p.beta_s, beta);
  int dk = q.shape(3);
  p.rows = state.size() / dk;
  p.steps = q.shape(1);
  p.heads = v.shape(2);
  p.repeat = p.heads / q.shape(2);
  p.dv = v.shape(3);

  // Few steps: more lanes a row, to have the state sooner. A team within a
  // subgroup needs no barrier.
  uint32_t widest = enc.caps().min_subgroup_size;
  uint32_t wanted = p.steps <= 8 && dk % 128 == 0 ? 32 : 8;
  uint32_t lanes = std::max(std::min(wanted, widest), 4u);
  bool vec = fours_apart(q) && fours_apart(k) && h.offset() % 16 == 0 &&
      state.offset() % 16 == 0;
  auto& kernel = enc.kernel(GatedDeltaVariant{
      .T = type_of(out),
      .DK = static_cast<uint32_t>(dk),
      .LANES = lanes,
      .GATES = static_cast<uint32_t>(g.ndim() == 4 ? dk : 1),
      .VEC = vec});
  enc.dispatch(
      kernel,
      {q, k, v, g, beta, h},
      {out, state},
      p,
      linear(p.rows * lanes, 128),
      {.flops = 8.0 * state.size() * p.steps});
}

} // namespace vulkan

namespace fast {

using namespace vulkan;

// Without a mask, which the primitive is not given; wider than Metal's list of
// heads. A key's row must divide among the lanes of a team.
bool GatedDeltaUpdate::use_fallback(
    const int Hk,
    const int Dk,
    const int Hv,
    const int Dv,
    const bool has_mask,
    Stream s) {
  bool sizes = Dk % 32 == 0 && Dk > 0 && Dk <= 256 && Hk > 0 && Hv % Hk == 0;
  return s.device == mlx::core::Device::cpu || has_mask || !sizes;
}

void GatedDeltaUpdate::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  array& out = outputs[0];
  array& state = outputs[1];
  if (!issubdtype(out.dtype(), floating)) {
    std::ostringstream msg;
    msg << "[gated_delta_update] The Vulkan backend takes floating point "
        << "queries, not " << out.dtype() << "; cast them first.";
    throw std::invalid_argument(msg.str());
  }
  auto& enc = encoder(stream());
  array q = unit_last(inputs[0], enc);
  array k = unit_last(inputs[1], enc);
  const array& v = inputs[2];
  const array& g = inputs[3];
  const array& beta = inputs[4];
  out.set_data(allocator::malloc(out.nbytes()));
  donate_or_alloc(inputs[5], state);
  if (state.size() == 0) {
    return;
  }
  array h = row_contiguous(inputs[5], enc);
  gated_delta(enc, q, k, v, g, beta, h, out, state);
}

} // namespace fast
} // namespace mlx::core

#include <sstream>

#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "ops/attention/operands.h"
#include "ops/gated_delta/gated_delta.h"
#include "ops/gated_delta/plan.h"
#include "ops/layout.h"

namespace mlx::core::fast {

using namespace vulkan;

// Calls with a mask fall back, because a mask is no input of this primitive.
bool GatedDeltaUpdate::use_fallback(
    const int Hk,
    const int Dk,
    const int Hv,
    const int Dv,
    const bool has_mask,
    Stream s) {
  bool sizes = takes_gated_delta(Dk) && Hk > 0 && Hv % Hk == 0;
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
  out.set_data(allocator::malloc(out.nbytes()));
  donate_or_alloc(inputs[5], state);
  GatedDelta d{
      unit_last(inputs[0], enc),
      unit_last(inputs[1], enc),
      inputs[2],
      inputs[3],
      inputs[4],
      row_contiguous(inputs[5], enc),
      std::nullopt};
  gated_delta(enc, d, out, state);
}

} // namespace mlx::core::fast

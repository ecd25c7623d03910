// Functions of MLX whose parameters differ between versions.
#include "mlx/fast_primitives.h"
#include "mlx/fence.h"
#include "mlx/ops.h"

#include "backend/fence.h"
#include "ops/attention/sdpa.h"
#include "overrides/gather_qmm.h"

namespace mlx::core {

namespace {
vulkan::FenceState& state_of(const std::shared_ptr<void>& fence) {
  return *static_cast<vulkan::FenceState*>(fence.get());
}
} // namespace

Fence::Fence(Stream s) {
  fence_ = std::make_shared<vulkan::FenceState>(s);
}

#if MLX_FENCE_VALUES
uint32_t Fence::update(Stream s, const array& x, bool cross_device) {
  return vulkan::update_fence(state_of(fence_), s, x, cross_device);
}

void Fence::wait(Stream s, const array& x, uint32_t value) {
  vulkan::wait_for_fence(state_of(fence_), s, x, value);
}
#else
void Fence::update(Stream s, const array& x, bool cross_device) {
  vulkan::update_fence(state_of(fence_), s, x, cross_device);
}

void Fence::wait(Stream s, const array& x) {
  auto& f = state_of(fence_);
  vulkan::wait_for_fence(f, s, x, f.count);
}
#endif

bool fast::ScaledDotProductAttention::use_fallback(
    const array& q,
    const array& k,
    const array& v,
    bool /* has_mask */,
    bool has_arr_mask,
    bool /* do_causal */,
#if MLX_SDPA_SINKS
    bool has_sinks,
#endif
    bool is_training,
    bool output_logsumexp,
#if MLX_SDPA_FORCE_FUSED
    bool force_fused,
#endif
    Stream s) {
#if !MLX_SDPA_SINKS
  // Sinks would get no gradient, so that training always decomposes.
  bool has_sinks = true;
#endif
#if !MLX_SDPA_FORCE_FUSED
  bool force_fused = false;
#endif
  return vulkan::decomposes_attention(
      {.q = q,
       .k = k,
       .v = v,
       .has_array_mask = has_arr_mask,
       .has_sinks = has_sinks,
       .is_training = is_training,
       .output_logsumexp = output_logsumexp,
       .force_fused = force_fused,
       .stream = s});
}

decltype(gather_qmm) gather_qmm_of_mlx;

array gather_qmm(
    const array& x,
    const array& w,
    const array& scales,
    const std::optional<array>& biases,
    std::optional<array> lhs_indices,
    std::optional<array> rhs_indices,
    bool transpose,
    std::optional<int> group_size,
    std::optional<int> bits,
    const std::string& mode,
#if MLX_GATHER_QMM_SCALE
    const std::optional<array>& global_scale,
#endif
    bool sorted_indices,
    StreamOrDevice s) {
  if (!lhs_indices) {
    lhs_indices = vulkan::left_indices(x, rhs_indices, sorted_indices);
  }
  return gather_qmm_of_mlx(
      x,
      w,
      scales,
      biases,
      std::move(lhs_indices),
      std::move(rhs_indices),
      transpose,
      group_size,
      bits,
      mode,
#if MLX_GATHER_QMM_SCALE
      global_scale,
#endif
      sorted_indices,
      s);
}

} // namespace mlx::core

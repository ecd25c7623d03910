#include "kernels/arange.h"
#include "mlx/dtype_utils.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace {

// The host writes a few items, as for mx.gather_mm's default indices: a
// dispatch costs more. The memory is new and mapped (TestHooks::small_buffer in
// vk/config.h), so nothing is waited for.
constexpr size_t most_host_bytes = 1024;

template <typename Step>
void launch(array& out, Step start, Step step, Stream s) {
  using namespace vulkan;
  auto& enc = encoder(s);
  ArangeVariant variant{.T = type_of(out), .LARGE = needs_large_index(out)};
  ArangeArgs<Step> args{start, step, out.size()};
  enc.dispatch(variant, {}, {out}, args, dense_grid(out.size()));
}

} // namespace

void Arange::eval_gpu(const std::vector<array>&, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  dispatch_all_types(out.dtype(), [&](auto tag) {
    using T = MLX_GET_TYPE(tag);
    // Computes the step in the dtype: the second item minus the first.
    if constexpr (std::is_same_v<T, bool>) {
      throw std::runtime_error(
          "[arange] The dtype bool is not supported; use an integer dtype.");
    } else if constexpr (std::is_integral_v<T>) {
      auto first = static_cast<int64_t>(static_cast<T>(start_));
      auto second = static_cast<int64_t>(static_cast<T>(start_ + step_));
      if (out.nbytes() <= most_host_bytes) {
        T* y = out.data<T>();
        for (size_t i = 0; i < out.size(); ++i) {
          y[i] = static_cast<T>(first + int64_t(i) * (second - first));
        }
      } else {
        launch<int64_t>(out, first, second - first, stream());
      }
    } else if constexpr (std::is_same_v<T, complex64_t>) {
      auto first = static_cast<float>(start_);
      auto second = static_cast<float>(start_ + step_);
      launch<float>(out, first, second - first, stream());
    } else {
      using Step = std::conditional_t<std::is_same_v<T, double>, double, float>;
      auto first = static_cast<T>(start_);
      auto second = static_cast<T>(start_ + step_);
      launch<Step>(
          out,
          static_cast<Step>(first),
          static_cast<Step>(static_cast<T>(second - first)),
          stream());
    }
  });
}

} // namespace mlx::core

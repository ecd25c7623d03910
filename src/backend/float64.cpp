#include "backend/float64.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "mlx/distributed/primitives.h"
#include "mlx/fast_primitives.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

template <typename... Primitives>
bool is_one_of(const Primitive& p) {
  return ((typeid(p) == typeid(Primitives)) || ...);
}

// Those whose kernels compute in float32.
bool lacks_kernel(const Primitive& p) {
  using namespace distributed;
  return is_one_of<
      AllReduce,
      BlockMaskedMM,
      Convolution,
      FFT,
      GatherQMM,
      Hadamard,
      LogSumExp,
      QuantizedMatmul,
      ReduceScatter,
      SegmentedMM,
      Softmax>(p);
}

bool any_float64(const std::vector<array>& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](auto& a) {
    return a.dtype() == float64;
  });
}

} // namespace

void require_float64(Primitive& primitive) {
  std::string name = primitive.name();
  if (!device().caps().shader_float64) {
    throw std::invalid_argument(
        "[vulkan] " + name + ": float64 is not supported on the GPU, because " +
        device().caps().name +
        " has no shaderFloat64. Use float32, or pass stream=mx.cpu.");
  }
  if (dynamic_cast<fast::Custom*>(&primitive)) {
    throw std::invalid_argument(
        "[vulkan] " + name +
        ": float64 is not supported on the GPU by fused operations. Use "
        "float32, or pass stream=mx.cpu.");
  }
}

bool lacks_float64_kernel(
    const Primitive& primitive,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  return (any_float64(outputs) || any_float64(inputs)) &&
      lacks_kernel(primitive);
}

} // namespace mlx::core::vulkan

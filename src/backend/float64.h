// float64 on GPU streams: on devices with shaderFloat64.
#pragma once

#include <vector>

#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// Throws std::invalid_argument, naming the primitive of a GPU stream, if it
// cannot take or make float64 arrays: the device has no float64, or the
// primitive is a fused one (mx.fast), which MLX's CPU does not have either.
void require_float64(Primitive& primitive);

// Whether the primitive takes or makes float64 arrays and has no kernel that
// does; then it runs on the CPU (on_cpu.h).
bool lacks_float64_kernel(
    const Primitive& primitive,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs);

} // namespace mlx::core::vulkan

// What fast::metal_kernel() asks of the kernels that it makes.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "mlx/array.h"

#include "ops/custom/plan.h"

namespace mlx::core::fast {
class CustomKernel;
}

namespace mlx::core::vulkan {

// Buffers that a kernel takes: inputs, of those with dimensions also shape,
// strides and ndim where its body names them, outputs.
size_t custom_kernel_arguments(
    const std::vector<array>& inputs,
    const std::vector<std::tuple<bool, bool, bool>>& shape_infos,
    size_t outputs);

// The GLSL that a device of `caps` runs for it in its full threadgroups; empty
// for an empty grid. Throws what evaluating it would.
std::string custom_kernel_glsl(
    const fast::CustomKernel& primitive,
    size_t arguments,
    const Caps& caps);

} // namespace mlx::core::vulkan

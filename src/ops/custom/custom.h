// Functions of custom kernels used by fast::metal_kernel().
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

// Number of a kernel's buffers: inputs, outputs, and the shape, strides and
// ndim of inputs if the body names them.
size_t custom_kernel_arguments(
    const std::vector<array>& inputs,
    const std::vector<std::tuple<bool, bool, bool>>& shape_infos,
    size_t outputs);

// GLSL of the kernel for its full threadgroups on a device of `caps`; empty for
// an empty grid. Throws the errors that its evaluation throws.
std::string custom_kernel_glsl(
    const fast::CustomKernel& primitive,
    size_t arguments,
    const Caps& caps);

} // namespace mlx::core::vulkan

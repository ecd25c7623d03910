// Elementwise operations of two operands.
#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::vulkan {

// Operations that rules join with a neighbour (ops/records.h).
enum class Known { No, Add, Multiply, Divide };

// out = op(a, b), of the function in kernels/common/binary_ops.glsl; allocates
// out or donates an operand's memory to it.
void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s,
    Known known = Known::No);

} // namespace mlx::core::vulkan

// Elementwise operations of two operands.
#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::vulkan {

// Operations that rules can join with a neighbour (ops/records.h).
enum class Known { No, Add, Multiply, Divide };

// out = op(a, b), a function of kernels/common/binary_ops.glsl; allocates out
// or donates an operand's memory to it.
void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s,
    Known known = Known::No);

} // namespace mlx::core::vulkan

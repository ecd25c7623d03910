// What a traced step leaves to each step: updates and views of caches, masks,
// and attention over them. Each builds what mlx-lm's Python would build.
#pragma once

#include <string>
#include <vector>

#include "mlx/fast.h"
#include "ops/traced/traced_step.h"

namespace mlx::core::vulkan {

using Scalars = std::vector<fast::ScalarArg>;

// Adds a part of a traced step to its graph; `part` is one of:
//
//   given      () [index, open] -> an input of `shape` and `type`
//   position   () [slot] -> its int32
//   put        (cache, update) [slot] -> the cache with `update` at that place
//              of axis -2
//   take       (cache) [slot] -> its first places of axis -2
//   causal     ([left_padding]) [slot, n, window, shift] -> mlx-lm's causal
//   mask
//              of n queries after that offset, rolled by the position in slot
//              `shift`; window 0, shift -1: none
//   attend     (q, k, v, [mask], [sinks]) [scale, causal, mask, sinks]
//   expand_dims, swapaxes, matmul, quantized_matmul, add, multiply, divide,
//   tanh, where, softmax
//              (operands) [open, MLX's other arguments] -> MLX's function;
//              open: whether the result's length changes from step to step
//
// Throws std::invalid_argument for anything else.
array late(
    const std::string& part,
    const std::vector<array>& inputs,
    const Scalars& scalars,
    const Shape& shape,
    Dtype type,
    Stream stream);

} // namespace mlx::core::vulkan

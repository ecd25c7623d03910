// Primitives without a kernel: they run on the CPU, in the order of their GPU
// stream. Counted, named, and an error under MLX_VK_FALLBACK=deny.
#pragma once

#include <vector>

#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// Encodes a primitive of a GPU stream with MLX's CPU kernel, on this thread's
// default CPU stream: it starts after what the GPU stream has encoded so far,
// and what that encodes next starts after it. Does not wait. An error of the
// kernel fails the GPU stream's later work, as an error of any CPU stream does.
// `outputs` get their memory here. Throws std::runtime_error, naming primitive
// and shapes, if fallbacks are denied. Threads: the one that uses the GPU
// stream.
void run_on_cpu(
    Primitive& primitive,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);

} // namespace mlx::core::vulkan

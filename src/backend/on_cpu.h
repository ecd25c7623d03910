// Primitives without a kernel: they run on the CPU, in the order of their GPU
// stream. Counted, named, and an error under MLX_VK_FALLBACK=deny.
#pragma once

#include <vector>

#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// The default CPU stream of this thread, for the twin of a GPU primitive.
Stream cpu_twin_stream();

// Encodes `twin`, a primitive of cpu_twin_stream(), in the place of a primitive
// of `stream`: it starts after what the stream has encoded so far, and what the
// stream encodes next starts after it. Does not wait. An error of the twin
// fails the stream's later work, as an error of any CPU stream does. `outputs`
// get their memory here. Throws std::runtime_error, naming twin and shapes, if
// fallbacks are denied. Threads: the one that uses `stream`.
void run_on_cpu(
    Primitive& twin,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Stream stream);
// The same for a primitive itself, which is of a CPU stream meanwhile.
void run_itself_on_cpu(
    Primitive& primitive,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);

} // namespace mlx::core::vulkan

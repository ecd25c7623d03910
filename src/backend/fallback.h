// Operations that are decomposed into others while the graph is built although
// MLX's Metal backend runs them as one kernel, and operations of GPU streams
// that run on the CPU: counted, named, and an error under MLX_VK_FALLBACK=deny.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mlx::core::vulkan {

// Counts one, from its use_fallback(). Throws std::runtime_error, naming the
// operation, under MLX_VK_FALLBACK=deny.
void count_decomposition(const std::string& name);
// Counts one that runs on the CPU. `call` names it with its dtype and shape.
void count_on_cpu(const std::string& name, const std::string& call);

struct FallbackCount {
  std::string name;
  uint64_t calls;
};
// All counts since the process started, highest first.
std::vector<FallbackCount> fallback_counts();

} // namespace mlx::core::vulkan

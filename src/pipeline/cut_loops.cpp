#include "pipeline/cut_loops.h"

#include <stdexcept>
#include <utility>

namespace mlx::core::vulkan {

CutLoops::CutLoops(std::shared_ptr<Memory> memory, VkDeviceAddress address)
    : memory_(std::move(memory)), address_(address) {
  *memory_ = {0, {1, 2, 2}, {1, 1, 0}};
}

uint32_t CutLoops::add_kernel(
    const std::string& title,
    const std::string& loops) {
  std::lock_guard lock(mutex_);
  messages_.push_back(
      title + ": in one thread its loops (" + loops +
      ") turn more than 65,533 times together. This software device ends them "
      "there, so that the results would be wrong. Give a thread less to do, or "
      "unroll the innermost loop (`#pragma unroll` with a constant count).");
  return static_cast<uint32_t>(messages_.size());
}

void CutLoops::check() {
  uint32_t kernel = std::exchange(memory_->kernel, 0);
  if (kernel) {
    std::lock_guard lock(mutex_);
    throw std::runtime_error(messages_.at(kernel - 1));
  }
}

} // namespace mlx::core::vulkan

// Detects loops of custom kernels that a software device ends early.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

namespace mlx::core::vulkan {

// Custom kernels on software devices, always: llvmpipe ends the loops of an
// invocation after 65,535 turns of all of them together, and goes on as if they
// were over. Such kernels end with a loop that shows it
// (kernels/common/whole_loops.glsl).
class CutLoops {
 public:
  // Memory that they read and write.
  struct Memory {
    uint32_t kernel, next[3], cut[3];
  };
  // `memory` is mapped, and has `address` on the device.
  CutLoops(std::shared_ptr<Memory> memory, VkDeviceAddress address);
  CutLoops(const CutLoops&) = delete;
  CutLoops& operator=(const CutLoops&) = delete;

  VkDeviceAddress address() const {
    return address_;
  }
  // The number that a kernel reports as. `title` and `loops` are for the
  // message. Any thread.
  uint32_t add_kernel(const std::string& title, const std::string& loops);
  // Throws std::runtime_error if a kernel has reported since the last call.
  // None may run meanwhile.
  void check();

 private:
  std::shared_ptr<Memory> memory_;
  VkDeviceAddress address_;
  std::mutex mutex_;
  std::vector<std::string> messages_; // under mutex_
};

} // namespace mlx::core::vulkan

// Detects loops of custom kernels that a software device ends early.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

namespace mlx::core::vulkan {

// All custom kernels on software devices are checked: llvmpipe ends the loops
// of an invocation after 65,535 iterations in total and continues behind them.
// Such kernels therefore end with a loop that detects this
// (kernels/common/whole_loops.glsl).
class CutLoops {
 public:
  // Memory that these loops read and write.
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
  // The number by which a kernel reports. `title` and `loops` are for the
  // message. Any thread.
  uint32_t add_kernel(const std::string& title, const std::string& loops);
  // Throws std::runtime_error if a kernel has reported since the last call. No
  // such kernel may be running.
  void check();

 private:
  std::shared_ptr<Memory> memory_;
  VkDeviceAddress address_;
  std::mutex mutex_;
  std::vector<std::string> messages_; // under mutex_
};

} // namespace mlx::core::vulkan

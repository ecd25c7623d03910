// MLX_VK_DEBUG=loops: kernels count the turns of their BOUNDED_WHILE loops
// (kernels/common/loops.glsl), and one that goes beyond the bound it states is
// an error of its batch. A driver may end an endless loop in silence (llvmpipe
// does) or never.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <vulkan/vulkan.h>

#include "vk/caps.h"

namespace mlx::core::vulkan {

// Where a source has a BOUNDED_WHILE.
struct SourceLoop {
  std::string file; // relative to src/kernels
  uint32_t line; // from 1
  bool operator==(const SourceLoop&) const = default;
};
// Those of `text`, which is named `file`, and of all that it includes.
std::vector<SourceLoop> source_loops(
    const std::string& file,
    std::string_view text);

// One mapped word that kernels write: 20 bits for the kernel, from 1, 12 for
// the line, 32 for the bound; 0 is no report. Lives while kernels may run.
class LoopReport {
 public:
  // `word`: mapped memory, whose address on the device is `address`.
  LoopReport(
      std::shared_ptr<uint64_t> word,
      VkDeviceAddress address,
      const Caps& caps);
  LoopReport(const LoopReport&) = delete;
  LoopReport& operator=(const LoopReport&) = delete;

  // LOOP_LIMIT, see loops.glsl.
  uint32_t limit() const {
    return limit_;
  }

  // What a kernel is compiled with: constants 0, 1 and 2 of loops.glsl.
  struct Constants {
    uint64_t address;
    uint32_t kernel;
    // Refers to this object.
    VkSpecializationInfo info() const;
  };
  // `name` is for messages; `file` and `text` are its source. Any thread.
  Constants add_kernel(
      const std::string& name,
      const std::string& file,
      std::string_view text);

  // Throws std::runtime_error, naming kernel and loop, if a loop has gone
  // beyond its bound since the last call. No kernel may run meanwhile.
  void check();

 private:
  struct Entry {
    std::string name;
    std::vector<SourceLoop> loops;
  };

  std::shared_ptr<uint64_t> word_;
  VkDeviceAddress address_;
  uint32_t limit_;
  std::mutex mutex_;
  std::vector<Entry> kernels_; // under mutex_
};

} // namespace mlx::core::vulkan

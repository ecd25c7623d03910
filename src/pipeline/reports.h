// Reports of kernels in debug modes (kernels/common/report.glsl). A report is
// an error of its batch.
//
// MLX_VK_DEBUG=loops: kernels count the turns of their BOUNDED_WHILE loops
// (kernels/common/loops.glsl), and report one that goes beyond the bound it
// states. A driver may end an endless loop in silence (llvmpipe does) or never.
//
// MLX_VK_DEBUG=bounds: kernels report an index from data that is outside of its
// axis (kernels/common/bounds.glsl).
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

// The position of a BOUNDED_WHILE in a source.
struct SourceLoop {
  std::string file; // relative to src/kernels
  uint32_t line; // from 1
  bool operator==(const SourceLoop&) const = default;
};
// The loops of `text`, named `file`, and of all that it includes.
std::vector<SourceLoop> source_loops(
    const std::string& file,
    std::string_view text);

// The words that kernels write, in mapped memory. Kernels count from 1; 0 is no
// report.
struct ReportMemory {
  // A loop that exceeded its bound: 20 bits for the kernel, 12 for the line, 32
  // for the bound.
  uint64_t loop;
  // The first index outside of its axis.
  uint32_t index_kernel, index_signed;
  uint64_t index, position; // the index's own flat position
  uint64_t size; // items of its axis
  // Line and bytes of an access in a translated Metal kernel, else 0; the
  // line's highest bit: in the header. `index` is then the byte offset from the
  // array of argument `position`, which has `size` bytes.
  uint32_t line, bytes;
};
// Includes scratch memory for accesses outside of arrays, up to a struct.
constexpr size_t report_bytes = 64 + (64 << 10);
static_assert(sizeof(ReportMemory) <= 64);

enum class Reports : uint8_t { Loops = 1, Bounds = 2, Both = 3 };

// Lives while kernels may run.
class KernelReports {
 public:
  // `memory`: mapped memory, whose address on the device is `address`.
  KernelReports(
      Reports kinds,
      std::shared_ptr<ReportMemory> memory,
      VkDeviceAddress address,
      const Caps& caps);
  KernelReports(const KernelReports&) = delete;
  KernelReports& operator=(const KernelReports&) = delete;

  bool loops() const {
    return uint8_t(kinds_) & uint8_t(Reports::Loops);
  }
  bool bounds() const {
    return uint8_t(kinds_) & uint8_t(Reports::Bounds);
  }

  // LOOP_LIMIT, see loops.glsl.
  uint32_t limit() const {
    return limit_;
  }

  // Specialization constants 0, 1 and 2 of report.glsl.
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

  // Throws std::runtime_error if a kernel has reported something since the last
  // call, naming the kernel and `call`, the requested operation. No kernel may
  // run meanwhile.
  void check(std::string_view call = {});

 private:
  struct Entry {
    std::string name;
    std::vector<std::string> arguments; // of a translated Metal kernel
    std::vector<SourceLoop> loops;
  };

  Entry find(uint32_t kernel);
  [[noreturn]] void fail_loop(uint64_t word);
  [[noreturn]] void fail_index(const ReportMemory& m, std::string_view call);
  [[noreturn]] void fail_access(const ReportMemory& m, std::string_view call);

  Reports kinds_;
  std::shared_ptr<ReportMemory> memory_;
  VkDeviceAddress address_;
  uint32_t limit_;
  std::mutex mutex_;
  std::vector<Entry> kernels_; // under mutex_
};

} // namespace mlx::core::vulkan

#include "pipeline/loops.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "pipeline/sources.h"

namespace mlx::core::vulkan {

namespace {

// llvmpipe ends all loops of an invocation after 65,535 turns. It runs some
// hundred invocations at once, which is what compare-and-swap loops may need.
constexpr uint32_t software_limit = 1 << 15;
// The largest GPUs run about 300,000 invocations at once.
constexpr uint32_t gpu_limit = 1 << 20;

void find_loops(
    const std::string& file,
    std::string_view text,
    std::vector<SourceLoop>& out) {
  for (uint32_t line = 1; !text.empty(); ++line) {
    auto end = std::min(text.find('\n'), text.size());
    auto one = text.substr(0, end);
    auto at = one.find("BOUNDED_WHILE(");
    // Neither its definition nor a comment.
    if (at != one.npos &&
        one.substr(0, at).find_first_not_of(' ') == one.npos) {
      out.push_back({file, line});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

} // namespace

std::vector<SourceLoop> source_loops(
    const std::string& file,
    std::string_view text) {
  std::vector<SourceLoop> out;
  find_loops(file, text, out);
  for (auto& [name, body] : included_sources(text)) {
    find_loops(name, body, out);
  }
  return out;
}

LoopReport::LoopReport(
    std::shared_ptr<uint64_t> word,
    VkDeviceAddress address,
    const Caps& caps)
    : word_(std::move(word)),
      address_(address),
      limit_(caps.software() ? software_limit : gpu_limit) {
  std::memset(word_.get(), 0, sizeof(uint64_t));
}

VkSpecializationInfo LoopReport::Constants::info() const {
  static constexpr VkSpecializationMapEntry entries[] = {
      {0, 0, 4}, // a little-endian address: the low half is first
      {1, 4, 4},
      {2, offsetof(Constants, kernel), 4},
  };
  return {3, entries, sizeof(Constants), this};
}

LoopReport::Constants LoopReport::add_kernel(
    const std::string& name,
    const std::string& file,
    std::string_view text) {
  auto loops = source_loops(file, text);
  std::lock_guard lock(mutex_);
  kernels_.push_back({name, std::move(loops)});
  return {address_, static_cast<uint32_t>(kernels_.size())};
}

void LoopReport::check() {
  uint64_t word = 0;
  std::memcpy(&word, word_.get(), sizeof word);
  if (word == 0) {
    return;
  }
  std::memset(word_.get(), 0, sizeof word);
  auto kernel = static_cast<uint32_t>(word) >> 12;
  auto line = static_cast<uint32_t>(word) & 0xfff;
  std::string name = "an unknown kernel", where;
  {
    std::lock_guard lock(mutex_);
    if (kernel - 1 < kernels_.size()) {
      auto& entry = kernels_[kernel - 1];
      name = entry.name;
      // A line alone may be that of a loop in several files.
      for (auto& loop : entry.loops) {
        if (loop.line == line) {
          where += (where.empty() ? "" : " or ") + loop.file + ':' +
              std::to_string(line);
        }
      }
    }
  }
  throw std::runtime_error(
      "[vulkan] MLX_VK_DEBUG=loops: in the kernel " + name + ", the loop at " +
      (where.empty() ? "line " + std::to_string(line) : where) +
      " went beyond its bound of " + std::to_string(word >> 32) +
      " turns and was ended, so that the results of its batch are wrong. "
      "Without this mode it could run for ever: please report it with the "
      "shapes and dtypes of the call.");
}

} // namespace mlx::core::vulkan

#include "pipeline/reports.h"

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
    // Skips the definition of the macro, and comments.
    if (at != one.npos &&
        one.substr(0, at).find_first_not_of(' ') == one.npos) {
      out.push_back({file, line});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Parses the lines "  uint64_t a0; // name" in which the translation of a Metal
// kernel lists its arguments (msl/output.cpp).
std::vector<std::string> argument_names(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    std::string start = "  uint64_t a" + std::to_string(names.size()) + "; // ";
    auto at = text.find(start);
    if (at == text.npos) {
      return names;
    }
    text.remove_prefix(at + start.size());
    names.emplace_back(text.substr(0, text.find('\n')));
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

KernelReports::KernelReports(
    Reports kinds,
    std::shared_ptr<ReportMemory> memory,
    VkDeviceAddress address,
    const Caps& caps)
    : kinds_(kinds),
      memory_(std::move(memory)),
      address_(address),
      limit_(caps.software() ? software_limit : gpu_limit) {
  std::memset(memory_.get(), 0, sizeof(ReportMemory));
}

VkSpecializationInfo KernelReports::Constants::info() const {
  static constexpr VkSpecializationMapEntry entries[] = {
      {0, 0, 4}, // a little-endian address: the low half is first
      {1, 4, 4},
      {2, offsetof(Constants, kernel), 4},
  };
  return {3, entries, sizeof(Constants), this};
}

KernelReports::Constants KernelReports::add_kernel(
    const std::string& name,
    const std::string& file,
    std::string_view text) {
  auto loops = source_loops(file, text);
  std::lock_guard lock(mutex_);
  kernels_.push_back({name, argument_names(text), std::move(loops)});
  return {address_, static_cast<uint32_t>(kernels_.size())};
}

void KernelReports::check(std::string_view call) {
  ReportMemory m;
  std::memcpy(&m, memory_.get(), sizeof m);
  if (m.loop == 0 && m.index_kernel == 0) {
    return;
  }
  std::memset(memory_.get(), 0, sizeof m);
  if (m.index_kernel && m.line) {
    fail_access(m, call);
  }
  if (m.index_kernel) {
    fail_index(m, call);
  }
  fail_loop(m.loop);
}

KernelReports::Entry KernelReports::find(uint32_t kernel) {
  std::lock_guard lock(mutex_);
  return kernel - 1 < kernels_.size() ? kernels_[kernel - 1]
                                      : Entry{"an unknown kernel", {}, {}};
}

void KernelReports::fail_loop(uint64_t word) {
  auto kernel = find(static_cast<uint32_t>(word) >> 12);
  auto line = static_cast<uint32_t>(word) & 0xfff;
  std::string where;
  for (auto& loop : kernel.loops) { // of several files at this line
    if (loop.line == line) {
      where += (where.empty() ? "" : " or ") + loop.file + ':' +
          std::to_string(line);
    }
  }
  throw std::runtime_error(
      "[vulkan] MLX_VK_DEBUG=loops: in the kernel " + kernel.name +
      ", the loop at " +
      (where.empty() ? "line " + std::to_string(line) : where) +
      " went beyond its bound of " + std::to_string(word >> 32) +
      " turns and was ended, so that the results of its batch are wrong. "
      "Without this mode it could run for ever: please report it with the "
      "shapes and dtypes of the call.");
}

void KernelReports::fail_access(const ReportMemory& m, std::string_view call) {
  auto kernel = find(m.index_kernel);
  auto& names = kernel.arguments;
  std::string array = m.position < names.size()
      ? "`" + names[m.position] + "`"
      : "argument " + std::to_string(m.position);
  bool in_header = m.line >> 31;
  throw std::runtime_error(
      "[vulkan] MLX_VK_DEBUG=bounds: in " +
      (call.empty() ? "a batch" : std::string(call)) + ", line " +
      std::to_string(m.line & 0x7fffffff) + " of the " +
      (in_header ? "header" : "body") + " of " + kernel.name +
      " reads or writes " + std::to_string(m.bytes) + " bytes at byte " +
      std::to_string(static_cast<int64_t>(m.index)) + " of " + array +
      ", which ends at byte " + std::to_string(m.size) +
      ". Without this mode it would use other arrays' memory, or nobody's.");
}

void KernelReports::fail_index(const ReportMemory& m, std::string_view call) {
  std::string kernel = find(m.index_kernel).name;
  std::string index = m.index_signed
      ? std::to_string(static_cast<int64_t>(m.index))
      : std::to_string(m.index);
  std::string text = "[vulkan] MLX_VK_DEBUG=bounds: in " +
      (call.empty() ? "a batch" : std::string(call)) + ", the index " + index +
      " at position " + std::to_string(m.position) +
      " of its indices is outside of an axis of " + std::to_string(m.size) +
      " items (kernel " + kernel +
      "). Without this mode such a read gives 0 and such a write is dropped.";
  throw std::runtime_error(text);
}

} // namespace mlx::core::vulkan

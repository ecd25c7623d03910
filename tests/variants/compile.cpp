#include "variants/compile.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "pipeline/sources.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace fs = std::filesystem;

namespace {

KernelCode stored(const KernelSource& source, DiskCache* cache) {
  auto code = load_or_compile(source, cache);
  if (cache) {
    store_code(*cache, code);
  }
  return code;
}

} // namespace

KernelCode compile_kernel(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    DiskCache* cache) {
  return stored(kernel_source(file, defines, args_in_memory, global), cache);
}

KernelCode compile_source(
    std::string_view name,
    const std::string& text,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    DiskCache* cache) {
  return stored(
      kernel_source(name, defines, args_in_memory, global, &text), cache);
}

std::vector<std::string> kernel_files() {
  std::set<std::string> names;
  for (size_t i = 0; i < embedded_source_count; ++i) {
    names.insert(embedded_sources[i].name);
  }
  if (auto& path = config().kernel_path; !path.empty()) {
    for (auto& file : fs::recursive_directory_iterator(path)) {
      names.insert(fs::relative(file.path(), path).generic_string());
    }
  }
  std::erase_if(names, [](auto& n) { return !n.ends_with(".comp"); });
  return {names.begin(), names.end()};
}

bool has_capability(const Reflection& r, uint32_t capability) {
  return std::binary_search(
      r.capabilities.begin(), r.capabilities.end(), capability);
}

} // namespace mlx::core::vulkan

#include "variants/compile.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <set>
#include <thread>

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

std::vector<CompiledVariant> compile_all(std::span<const AnyVariant> variants) {
  std::vector<CompiledVariant> all(variants.size());
  std::atomic<size_t> next = 0;
  auto compile = [&] {
    for (size_t i; (i = next++) < all.size();) {
      try {
        all[i].code = compile_kernel(variants[i].file, variants[i].defines);
      } catch (const std::exception& e) {
        all[i].error = e.what();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back(compile);
  }
  compile();
  threads.clear();
  return all;
}

const std::vector<CompiledVariant>& compiled_variants() {
  static const auto all = compile_all(all_variants().all());
  return all;
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

#include "pipeline/library.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>

#include "pipeline/compiler.h"
#include "pipeline/disk_cache.h"
#include "pipeline/hash.h"
#include "pipeline/sources.h"

namespace mlx::core::vulkan {

namespace {

// A cache entry: one word, 1 for arguments in memory, then the module.
std::optional<KernelCode> decode(std::span<const std::byte> bytes) {
  if (bytes.size() % 4 != 0 || bytes.size() < 8) {
    return {};
  }
  KernelCode code;
  uint32_t in_memory = 0;
  std::memcpy(&in_memory, bytes.data(), 4);
  code.args_in_memory = in_memory == 1;
  code.spirv.resize(bytes.size() / 4 - 1);
  std::memcpy(code.spirv.data(), bytes.data() + 4, bytes.size() - 4);
  try {
    code.reflection = reflect(code.spirv, code.args_in_memory);
  } catch (const std::exception&) {
    return {};
  }
  return code;
}

void store(DiskCache& cache, const std::string& key, const KernelCode& code) {
  std::vector<std::byte> bytes((code.spirv.size() + 1) * 4);
  uint32_t in_memory = code.args_in_memory;
  std::memcpy(bytes.data(), &in_memory, 4);
  std::memcpy(bytes.data() + 4, code.spirv.data(), bytes.size() - 4);
  cache.put(key, bytes);
}

std::string cache_key(std::string_view source) {
  Hasher h;
  h.add(compiler_version());
  h.add(source);
  char key[48];
  std::snprintf(
      key,
      sizeof key,
      "spv-%016llx%016llx",
      static_cast<unsigned long long>(h.a()),
      static_cast<unsigned long long>(h.b()));
  return key;
}

KernelCode compile(
    const std::string& file,
    const std::string& text,
    std::string_view name,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    DiskCache* cache) {
  auto globals = to_defines(global);
  auto head = [&](bool in_memory) {
    return prologue(
        define_block(defines, in_memory) + define_block(globals, false));
  };
  std::string variant = log_name(name, defines);
  std::string key;
  if (cache && cache->enabled()) {
    key = cache_key(head(args_in_memory) + with_includes(text));
    if (auto bytes = cache->get(key)) {
      if (auto code = decode(*bytes)) {
        ++compile_counters().disk_hits;
        code->name = std::move(variant);
        return std::move(*code);
      }
    }
  }

  auto start = std::chrono::steady_clock::now();
  KernelCode code;
  auto build = [&](bool in_memory) {
    ++compile_counters().compilations;
    code.spirv = compile_glsl(file, variant, head(in_memory), text);
    code.reflection = reflect(code.spirv, in_memory);
    code.args_in_memory = in_memory;
  };
  build(args_in_memory);
  if (!args_in_memory && code.reflection.args_size > max_push_args) {
    build(true);
  }
  compile_counters().compile_ns +=
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count();
  code.name = std::move(variant);
  if (!key.empty()) {
    store(*cache, key, code);
  }
  return code;
}

} // namespace

CompileCounters& compile_counters() {
  static CompileCounters counters;
  return counters;
}

KernelCode compile_kernel(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    DiskCache* cache) {
  auto path = source_name(file);
  auto text = read_source(path);
  if (!text) {
    throw std::invalid_argument(
        "[vulkan] There is no kernel source src/kernels/" + path + ".");
  }
  return compile(path, *text, file, defines, args_in_memory, global, cache);
}

KernelCode compile_source(
    std::string_view name,
    const std::string& text,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    DiskCache* cache) {
  return compile(
      std::string(name), text, name, defines, args_in_memory, global, cache);
}

} // namespace mlx::core::vulkan

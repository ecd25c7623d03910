#include "pipeline/library.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "pipeline/compiler.h"
#include "pipeline/disk_cache.h"
#include "pipeline/hash.h"
#include "pipeline/shipped.h"
#include "pipeline/sources.h"
#include "vk/config.h"

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

std::string cache_key(std::string_view source) {
  Hasher h;
  h.add(compiler_version());
  h.add(source);
  return "spv-" + hexadecimal(h.a()) + hexadecimal(h.b());
}

std::string head(const KernelSource& source, bool in_memory) {
  return prologue(define_block({}, in_memory) + source.defines);
}

// Files whose arguments exceeded the push constants when last compiled.
std::mutex large_mutex;
std::set<std::string> large_files;

bool had_large_args(const std::string& file) {
  std::lock_guard lock(large_mutex);
  return large_files.count(file) > 0;
}

void note_args(const std::string& file, bool large) {
  std::lock_guard lock(large_mutex);
  if (large) {
    large_files.insert(file);
  } else {
    large_files.erase(file);
  }
}

} // namespace

CompileCounters& compile_counters() {
  static CompileCounters counters;
  return counters;
}

KernelSource kernel_source(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    const std::string* text) {
  auto path = text ? std::string(file) : source_name(file);
  auto source = text ? *text : read_source(path);
  if (!source) {
    throw std::invalid_argument(
        "[vulkan] There is no kernel source src/kernels/" + path + ".");
  }
  return {
      path,
      log_name(file, defines),
      std::move(*source),
      define_block(defines, false) + define_block(to_defines(global), false),
      args_in_memory};
}

KernelCode load_or_compile(const KernelSource& source, DiskCache* cache) {
  auto key = cache_key(
      head(source, source.args_in_memory) + with_includes(source.text));
  auto loaded = [&](KernelCode& code, std::atomic<uint64_t>& hits) {
    ++hits;
    code.name = source.name;
    code.cache_key = key;
    code.loaded = true;
    return std::move(code);
  };
  if (auto code = decode(find_shipped(key))) {
    return loaded(*code, compile_counters().shipped_hits);
  }
  auto bytes = cache ? cache->get(key) : std::nullopt;
  if (auto code = bytes ? decode(*bytes) : std::nullopt) {
    return loaded(*code, compile_counters().disk_hits);
  }

  auto start = std::chrono::steady_clock::now();
  KernelCode code;
  auto build = [&](bool in_memory) {
    ++compile_counters().compilations;
    if (config().debug_cache) {
      std::fprintf(
          stderr,
          "[mlx-vulkan] kernel cache: compiles %s\n",
          source.name.c_str());
    }
    code.spirv = compile_glsl(
        source.file, source.name, head(source, in_memory), source.text);
    code.reflection = reflect(code.spirv, in_memory);
    if (code.reflection.bindings) {
      throw CompileError(
          source.file,
          source.name,
          "ERROR: a buffer, image or sampler with a binding, which nothing "
          "would be bound to: kernels have addresses of arrays.");
    }
    code.args_in_memory = in_memory;
  };
  // A file's variants mostly have the same arguments, so that the first tells
  // of the others, which are compiled once.
  bool large = source.args_in_memory || had_large_args(source.file);
  build(large);
  bool exceeds = code.reflection.args_size > max_push_args;
  if (!source.args_in_memory && large != exceeds) {
    build(exceeds);
  }
  note_args(source.file, exceeds);
  compile_counters().compile_ns +=
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count();
  code.name = source.name;
  code.cache_key = std::move(key);
  return code;
}

std::vector<std::byte> entry_of(const KernelCode& code) {
  std::vector<std::byte> bytes((code.spirv.size() + 1) * 4);
  uint32_t in_memory = code.args_in_memory;
  std::memcpy(bytes.data(), &in_memory, 4);
  std::memcpy(bytes.data() + 4, code.spirv.data(), bytes.size() - 4);
  return bytes;
}

void store_code(DiskCache& cache, const KernelCode& code) {
  if (!code.loaded) {
    cache.put(code.cache_key, entry_of(code));
  }
}

} // namespace mlx::core::vulkan

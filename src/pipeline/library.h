// SPIR-V of kernel variants, from the disk cache or glslang. Thread-safe. Free
// of Vulkan calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/key.h"
#include "pipeline/reflect.h"

namespace mlx::core::vulkan {

class DiskCache;

// Size of push constants that every Vulkan device supports.
constexpr uint32_t max_push_args = 128;

// Everything that a variant is compiled from, owned.
struct KernelSource {
  std::string file; // names the text in messages
  std::string name; // log_name()
  std::string text;
  std::string defines; // define_block() of the variant and of the globals
  bool args_in_memory = false;
};

struct KernelCode {
  std::string name; // log_name()
  std::vector<uint32_t> spirv;
  Reflection reflection;
  bool args_in_memory = false;
  std::string cache_key;
  bool loaded = false; // and not compiled
};

// Counters of this process.
struct CompileCounters {
  std::atomic<uint64_t> compilations{0}; // glslang runs
  std::atomic<uint64_t> translations{0}; // of Metal kernels to GLSL
  std::atomic<uint64_t> shipped_hits{0}, disk_hits{0};
  std::atomic<uint64_t> compile_ns{0}; // in glslang, summed over threads
  std::atomic<uint64_t> pipelines{0};
  std::atomic<uint64_t> pipeline_ns{0}; // in the driver, summed over threads
  std::atomic<uint64_t> wait_ns{0}; // batches' waits for their kernels
};
CompileCounters& compile_counters();

// The source of src/kernels/<file>.comp, or generated GLSL, if `text` is given,
// for which `file` is a name in logs and messages. `global` defines follow the
// variant's. Throws std::invalid_argument for an unknown file.
KernelSource kernel_source(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& global,
    const std::string* text = nullptr);

// Loads code that the library ships or that the disk cache has, or compiles it,
// without storing the result. Throws CompileError. `cache` may be null.
KernelCode load_or_compile(const KernelSource& source, DiskCache* cache);
// Stores code that load_or_compile() compiled.
void store_code(DiskCache& cache, const KernelCode& code);
// A cache's entry of the code.
std::vector<std::byte> entry_of(const KernelCode& code);

} // namespace mlx::core::vulkan

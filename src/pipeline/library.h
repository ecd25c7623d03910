// Kernel variants as SPIR-V: disk cache, else glslang. Thread-safe. Free of
// Vulkan calls.
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

// The push constants that every Vulkan device has.
constexpr uint32_t max_push_args = 128;

struct KernelCode {
  std::string name; // log_name()
  std::vector<uint32_t> spirv;
  Reflection reflection;
  bool args_in_memory = false;
};

// Counters of this process.
struct CompileCounters {
  std::atomic<uint64_t> compilations{0}; // glslang runs
  std::atomic<uint64_t> disk_hits{0};
  std::atomic<uint64_t> compile_ns{0};
};
CompileCounters& compile_counters();

// The code of src/kernels/<file>.comp. Its arguments go to memory if they
// do not fit the push constants, or always with `args_in_memory`. `global`
// names follow the defines. Throws CompileError, or std::invalid_argument for
// an unknown file. `cache` may be null.
KernelCode compile_kernel(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory = false,
    const NamedValues& global = {},
    DiskCache* cache = nullptr);

// The same for GLSL made at run time; `name` is for logs and messages.
KernelCode compile_source(
    std::string_view name,
    const std::string& text,
    std::span<const Define> defines,
    bool args_in_memory = false,
    const NamedValues& global = {},
    DiskCache* cache = nullptr);

} // namespace mlx::core::vulkan

// Kernels as code, and short forms of what the library does with lists of
// defines.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/key.h"
#include "pipeline/library.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

// Code of src/kernels/<file>.comp. Arguments are in memory if they exceed the
// push constants, or always with `args_in_memory`. `global` defines follow the
// variant's. Throws CompileError, or std::invalid_argument for an unknown file.
// `cache` may be null.
KernelCode compile_kernel(
    std::string_view file,
    std::span<const Define> defines,
    bool args_in_memory = false,
    const NamedValues& global = {},
    DiskCache* cache = nullptr);

// The same for generated GLSL; `name` is for logs and messages.
KernelCode compile_source(
    std::string_view name,
    const std::string& text,
    std::span<const Define> defines,
    bool args_in_memory = false,
    const NamedValues& global = {},
    DiskCache* cache = nullptr);

struct CompiledVariant {
  KernelCode code;
  std::string error; // empty if it compiled
};

// In the order of `variants`, on all cores.
std::vector<CompiledVariant> compile_all(std::span<const AnyVariant> variants);

// Those of all_variants(), compiled once.
const std::vector<CompiledVariant>& compiled_variants();

// Names of all .comp files, sorted.
std::vector<std::string> kernel_files();

bool has_capability(const Reflection& r, uint32_t capability);

// With defines in braces.
using Defines = std::initializer_list<Define>;
inline std::span<const Define> span_of(Defines defines) {
  return {defines.begin(), defines.size()};
}
inline KernelHash
hash_of(std::string_view file, Defines defines, bool args_in_memory) {
  return hash_of(file, span_of(defines), args_in_memory);
}
inline std::string log_name(std::string_view file, Defines defines) {
  return log_name(file, span_of(defines));
}
inline std::string define_block(Defines defines, bool args_in_memory) {
  return define_block(span_of(defines), args_in_memory);
}

} // namespace mlx::core::vulkan

// Properties of a SPIR-V module, read from the module itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlx::core::vulkan {

struct Reflection {
  uint32_t local_size[3] = {1, 1, 1};
  // Size of the argument block in bytes: the push constants, or the block in
  // memory to which the pushed address points. Scalar layout, without trailing
  // padding.
  uint32_t args_size = 0;
  uint32_t push_size = 0;
  uint32_t shared_size = 0; // bytes of shared variables
  std::vector<uint32_t> capabilities; // sorted, unique
  bool bindings = false; // has descriptor bindings
};

// Throws std::runtime_error for a module that this compiler cannot have
// produced (bad header, truncated, no compute entry point).
Reflection reflect(std::span<const uint32_t> spirv, bool args_in_memory);

// Words before the first instruction of a module.
constexpr size_t spirv_header = 5;

// Whether the words are at least these, begin with SPIR-V's magic number, and
// consist of whole instructions.
bool is_spirv(std::span<const uint32_t> spirv);

} // namespace mlx::core::vulkan

// What the host must know about a SPIR-V module, read from the module itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mlx::core::vulkan {

struct Reflection {
  uint32_t local_size[3] = {1, 1, 1};
  // Bytes of the argument block: the push constants, or with arguments in
  // memory the block that the pushed address points to. Scalar layout, without
  // padding at the end.
  uint32_t args_size = 0;
  uint32_t push_size = 0;
  uint32_t shared_size = 0; // bytes of shared variables
  std::vector<uint32_t> capabilities; // sorted, unique
  bool bindings = false; // has variables of descriptor sets

  bool has_capability(uint32_t c) const;
};

// Throws std::runtime_error if the module is not one of ours (bad header,
// truncated, no compute entry point).
Reflection reflect(std::span<const uint32_t> spirv, bool args_in_memory);

// True for 5 words or more that begin with SPIR-V's magic number and whose
// instructions tile the module exactly.
bool is_spirv(std::span<const uint32_t> spirv);

} // namespace mlx::core::vulkan

// Properties of GPUs that Vulkan does not report: registers, the driver's
// default subgroup size, and compute units where no extension counts them. Pure
// tables, with the source of each number.
#pragma once

#include <cstdint>
#include <string_view>

namespace mlx::core::vulkan {

struct GpuClass {
  const char* name;
  uint32_t vendor; // as the driver reports it; 0: any
  std::string_view device; // substring of its name; "": any
  uint32_t min_subgroup; // smallest size that the driver may choose; 0: any
  // 32-bit registers per lane in the narrowest subgroups; 0: unknown.
  uint32_t registers;
  // 32-bit values that a lane of a decode kernel may keep live without
  // spilling: the maximum that `make test-drivers` compiled without spills.
  uint32_t held_values;
  // Additional values per masked score, for its address; 0 if uniform values
  // have registers of their own.
  uint32_t mask_values;
  // Additional values of a joined product (qmv_fused.comp): for its additions,
  // and for the addresses of one of several matrices if x is not in shared
  // memory.
  uint32_t joined_values, several_values;
  // Subgroup size if a kernel requests none; 0: the reported size.
  uint32_t lanes;
};

// The class of a device, or a conservative default if no row matches.
const GpuClass&
gpu_class(uint32_t vendor, std::string_view device, uint32_t min_subgroup);

// Compute units by PCI device ID (Intel) or by name (Apple, Qualcomm); 0:
// unknown.
uint32_t
cores_by_table(uint32_t vendor, uint32_t device_id, std::string_view device);

} // namespace mlx::core::vulkan

// What the plans know of a GPU that Vulkan does not tell: registers, the
// subgroup size that a driver takes when a kernel names none, and compute units
// where no extension counts them. Tables, with the source of each number; pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace mlx::core::vulkan {

struct GpuClass {
  const char* name;
  uint32_t vendor; // as the driver reports it; 0: any
  std::string_view device; // part of its name; "": any
  uint32_t min_subgroup; // least that the driver may choose; 0: any
  // 32-bit registers a lane, in the narrowest subgroups; 0: not known.
  uint32_t registers;
  // 32-bit values that a lane of a decode kernel may hold for long, so that
  // nothing spills: the most that `make test-drivers` saw compile without.
  uint32_t held_values;
  // More of them for each score that a mask is read for: its address. 0 where
  // what is the same in all lanes has registers of its own.
  uint32_t mask_values;
  // More of them for a joined product (qmv_fused.comp): for its additions, and
  // for the addresses of one of several matrices, if x is in no shared memory.
  uint32_t joined_values, several_values;
  // Lanes of a subgroup where a kernel names no size; 0: what the driver
  // reports as its size.
  uint32_t lanes;
};

// The class of a device; a cautious one for those that no row names.
const GpuClass&
gpu_class(uint32_t vendor, std::string_view device, uint32_t min_subgroup);

// Compute units by PCI device ID (Intel) or by name (Apple, Qualcomm); 0: not
// known.
uint32_t
cores_by_table(uint32_t vendor, uint32_t device_id, std::string_view device);

} // namespace mlx::core::vulkan

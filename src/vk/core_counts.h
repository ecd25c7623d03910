// Compute units where no extension counts them. Pure tables, with the source of
// each number.
#pragma once

#include <cstdint>
#include <string_view>

namespace mlx::core::vulkan {

// Compute units by PCI device ID (Intel) or by name (Apple, Qualcomm); 0:
// unknown.
uint32_t
cores_by_table(uint32_t vendor, uint32_t device_id, std::string_view device);

} // namespace mlx::core::vulkan

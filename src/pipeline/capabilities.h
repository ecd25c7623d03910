// SPIR-V's capabilities, and those that a device created by this backend has
// (vk/features.h, runtime/device.cpp). Free of MLX.
#pragma once

#include <cstdint>
#include <string>

#include "vk/caps.h"

namespace mlx::core::vulkan {

// "Int8", "CooperativeMatrixKHR", ... or the number of an unknown one.
std::string capability_name(uint32_t capability);

// Whether modules may declare the capability; false for one that is never
// enabled.
bool offers(const Caps& caps, uint32_t capability);

} // namespace mlx::core::vulkan

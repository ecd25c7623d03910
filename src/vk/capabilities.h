// SPIR-V's capabilities, and which of them the device has that this backend
// makes (vk/features.h, runtime/device.cpp). Free of MLX.
#pragma once

#include <cstdint>
#include <string>

#include "vk/caps.h"

namespace mlx::core::vulkan {

// "Int8", "CooperativeMatrixKHR", ... or the number.
std::string capability_name(uint32_t capability);

// Whether modules may declare it: what is not known here is not enabled either.
bool offers(const Caps& caps, uint32_t capability);

} // namespace mlx::core::vulkan

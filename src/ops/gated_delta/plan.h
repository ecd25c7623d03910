// Choice of the gated delta kernel's variant: a pure function of a device
// snapshot and the shape. Free of MLX and Vulkan.
#pragma once

#include <cstdint>

#include "kernels/gated_delta.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

struct GatedDeltaProblem {
  Type type = Type::f32, gate_type = Type::f32;
  uint32_t steps = 1, key_dim = 128;
  bool vector_gates = false; // one gate per item of a key row
  bool aligned = true; // q, k and the states are aligned to four items
  bool counted = false; // as in GatedDeltaVariant
};

// Whether key rows divide evenly among the lanes of a team.
constexpr bool takes_gated_delta(int key_dim) {
  return key_dim > 0 && key_dim <= 256 && key_dim % 32 == 0;
}

GatedDeltaVariant plan_gated_delta(
    const Caps& caps,
    const GatedDeltaProblem& p);

} // namespace mlx::core::vulkan

// The element types of kernels. Free of MLX.
#pragma once

#include <cstdint>

namespace mlx::core::vulkan {

// In the order of kernels/common/types.glsl. float64 does not exist on the GPU.
enum class Type : uint8_t {
  bool_,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  c64,
};

} // namespace mlx::core::vulkan

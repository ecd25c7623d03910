// Element types of kernels, one row each. Free of MLX.
#pragma once

#include <cstdint>

// X(enumerator, name in kernels, result type of load(), KIND_..., bytes per
// item). common/types.glsl defines the storage. f64 is of devices that have it
// (Caps::shader_float64), and kernels have it if a variant names it.
#define MLXVK_TYPES(X)           \
  X(bool_, bool, bool, BOOL, 1)  \
  X(u8, u8, uint8_t, UINT, 1)    \
  X(u16, u16, uint16_t, UINT, 2) \
  X(u32, u32, uint32_t, UINT, 4) \
  X(u64, u64, uint64_t, UINT, 8) \
  X(i8, i8, int8_t, INT, 1)      \
  X(i16, i16, int16_t, INT, 2)   \
  X(i32, i32, int32_t, INT, 4)   \
  X(i64, i64, int64_t, INT, 8)   \
  X(f16, f16, float, FLOAT, 2)   \
  X(bf16, bf16, float, FLOAT, 2) \
  X(f32, f32, float, FLOAT, 4)   \
  X(f64, f64, double, FLOAT, 8)  \
  X(c64, c64, vec2, COMPLEX, 8)

namespace mlx::core::vulkan {

#define MLXVK_ENUMERATOR(type, ...) type,
enum class Type : uint8_t { MLXVK_TYPES(MLXVK_ENUMERATOR) };
#undef MLXVK_ENUMERATOR

} // namespace mlx::core::vulkan

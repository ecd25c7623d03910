// mx.load and mx.save_gguf for GGUF versions 2 and 3, after the format
// description in ggml's gguf.md. Replaces MLX's reader, whose dependency
// gguflib is not available as a pinned source.
//
// F32, F16, BF16, I8, I16 and I32 tensors load unchanged. Q4_0, Q4_1 and Q8_0
// load losslessly as MLX's affine quantization with group size 32: `x.weight`
// (uint32), `x.scales` and `x.biases` (float16). Every length and offset is
// checked against the file before use.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "mlx/io.h"

namespace mlx::core::gguf {

constexpr uint32_t magic = 0x46554747; // "GGUF"
constexpr uint64_t default_alignment = 32;

// Metadata value types of GGUF.
enum class ValueType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

// GGML tensor types that MLX supports.
enum class TensorType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q8_0 = 8,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  bf16 = 30
};

constexpr std::pair<TensorType, Dtype> plain_types[] = {
    {TensorType::f32, float32},
    {TensorType::f16, float16},
    {TensorType::bf16, bfloat16},
    {TensorType::i8, int8},
    {TensorType::i16, int16},
    {TensorType::i32, int32}};

[[noreturn]] inline void fail(const std::string& message) {
  throw std::runtime_error(
      "[load_gguf] " + message + ". The file may be incomplete or corrupt.");
}

// Calls f(value of the number's C++ type, its dtype). GGUF's float64 becomes
// float32, because MLX's GPU backends have no float64.
template <typename F>
auto visit_number(ValueType type, F&& f) {
  switch (type) {
#define NUMBER(value, type, dtype) \
  case ValueType::value:           \
    return f(type(), dtype);
    NUMBER(u8, uint8_t, uint8)
    NUMBER(i8, int8_t, int8)
    NUMBER(u16, uint16_t, uint16)
    NUMBER(i16, int16_t, int16)
    NUMBER(u32, uint32_t, uint32)
    NUMBER(i32, int32_t, int32)
    NUMBER(u64, uint64_t, uint64)
    NUMBER(i64, int64_t, int64)
    NUMBER(f32, float, float32)
    NUMBER(f64, double, float32)
    NUMBER(boolean, uint8_t, bool_)
#undef NUMBER
    default:
      fail("Metadata of an unknown type " + std::to_string(uint32_t(type)));
  }
}

} // namespace mlx::core::gguf

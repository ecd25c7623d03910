// Choice of the cooperative matrix shape among those that a device lists; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mlx::core::vulkan {

// C (M x N) = A (M x K) times B (K x N), in subgroup scope.
struct MatrixShape {
  uint32_t m = 16, n = 16, k = 16;
  bool operator==(const MatrixShape&) const = default;

  // The shape required by kernels that know the element layout.
  constexpr bool usual() const {
    return m == 16 && n == 16 && k == 16;
  }
  std::string text() const; // "8x16x16"
};

// Parses "8x16x16".
std::optional<MatrixShape> parse_matrix_shape(std::string_view text);

// A shape and its subgroup size, as part of a kernel's variant.
struct MatrixUnits {
  uint32_t lanes = 0; // subgroup size; 0: no matrix units
  MatrixShape shape;
  bool emulated = false; // float emulation in shared memory (test hook)
  bool halves = false; // f16 matrices for bf16 operands (gemm/half_items.glsl)
  bool operator==(const MatrixUnits&) const = default;
};

struct MatrixChoice {
  std::optional<MatrixShape> shape;
  std::string why; // if there is no shape, for the user
};

// Prefers 16x16x16, then the shape with the most products whose sides are 8 or
// 16, because kernels split tiles into pieces of 16 and move 8 items at a time.
// Ties prefer the longer K, then N, which need fewer loads and stores.
// `listed`: shapes of one input type with float32 sums and subgroup scope.
MatrixChoice choose_matrix(std::span<const MatrixShape> listed);

} // namespace mlx::core::vulkan

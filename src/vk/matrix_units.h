// Which cooperative matrices kernels use: a pure choice among the shapes that a
// device lists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mlx::core::vulkan {

// C of M x N items is A of M x K times B of K x N, a subgroup each.
struct MatrixShape {
  uint32_t m = 16, n = 16, k = 16;
  bool operator==(const MatrixShape&) const = default;

  // What kernels that know where elements lie take for granted.
  constexpr bool usual() const {
    return m == 16 && n == 16 && k == 16;
  }
  std::string text() const; // "8x16x16"
};

// "8x16x16".
std::optional<MatrixShape> parse_matrix_shape(std::string_view text);

// A shape in subgroups of so many lanes; what a kernel's variant has of it.
struct MatrixUnits {
  uint32_t lanes = 0; // 0: there are none
  MatrixShape shape;
  bool emulated = false; // by floats in shared memory (test hook)
  bool halves = false; // of f16, for operands of bf16 (gemm/half_items.glsl)
  bool operator==(const MatrixUnits&) const = default;
};

struct MatrixChoice {
  std::optional<MatrixShape> shape;
  std::string why; // if there is none, for the user
};

// 16x16x16 where it is listed. Else the shape of the most products whose sides
// are 8 or 16: kernels cut their tiles into pieces of 16 and move 8 items at a
// time. Of several the one with the longer K, then N, which take fewer loads
// and stores. `listed`: those of one type of input, float32 sums and subgroup
// scope.
MatrixChoice choose_matrix(std::span<const MatrixShape> listed);

} // namespace mlx::core::vulkan

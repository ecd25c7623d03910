// Which kernel, tile and split a matrix product takes: a pure function of a
// device snapshot and the operands' shape and strides. Free of MLX and Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/sorted.h"
#include "kernels/gemm/sorted_tiles.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

// Strides in elements of a matrix's rows and columns.
struct MatrixStrides {
  int64_t row = 0;
  int64_t col = 0;

  MatrixStrides transposed() const {
    return {col, row};
  }
};

// y (m x n) = alpha * a (m x k) b (k x n) + beta * c, `batches` times.
struct GemmProblem {
  Type type = Type::f32;
  uint32_t m = 0, n = 0, k = 0;
  uint64_t batches = 1;
  MatrixStrides a, b, c;
  // Every matrix of the operand starts at a multiple of 16 bytes.
  bool a_aligned = false, b_aligned = false;
  // alpha and c take part; gather has no form for it.
  bool axpby = false;
  uint32_t batch = BATCH_EVEN;
  bool may_split = true; // over k, for speed
  // Rows from which matrix units take few of them; -1: from where that measured
  // faster (docs/lab/2026-11-22-few-rows.md), 0: never. A user's own number has
  // software devices emulate matrices, for tests.
  int skinny_rows = -1;

  // The same as y^T = alpha * b^T a^T + beta * c^T.
  void transpose();
};

struct GemmPlan {
  std::variant<
      TileVariant,
      CoopmatVariant,
      FragmentsVariant,
      SkinnyVariant,
      DotVariant,
      AxpyVariant>
      variant;
  // The product as the kernel makes it: a thin one has at least as many rows as
  // columns, and is transposed for that.
  GemmProblem problem;
  bool transposed = false;
  uint32_t tiles_m = 0, tiles_n = 0; // workgroups a matrix
  uint32_t splits = 1;
  uint32_t k_split = 0; // k's per split
  bool large = false; // offsets inside a matrix need 64 bits

  uint64_t groups() const {
    return uint64_t(tiles_m) * tiles_n * splits * problem.batches;
  }
};

GemmPlan plan_gemm(const Caps& caps, const GemmProblem& problem);

// The kernel that finds the tiles of so many rows with sorted indices, and how
// many there are at most: each matrix may end one before it is full.
SortedTilesVariant plan_sorted_tiles(const Caps& caps, uint32_t rows);
uint32_t most_sorted_tiles(uint64_t rows, uint64_t matrices, uint32_t height);

// Rows that take one of several k x n matrices each.
struct SortedProblem {
  Type type = Type::f32;
  uint32_t rows = 0, matrices = 0, n = 0, k = 0;
  bool b_transposed = false; // b's k is the unit-stride direction
  bool aligned = false; // 16-byte loads of a and b are possible
};

struct SortedPlan {
  GemmSortedVariant variant;
  uint32_t m_tiles = 0, n_tiles = 0; // workgroups, of rows at most
};

// Nothing where products row by row are better, or all there is.
std::optional<SortedPlan> plan_sorted_gemm(
    const Caps& caps,
    const SortedProblem& problem);

} // namespace mlx::core::vulkan

// Choice of kernel, tile and split of a matrix product: a pure function of a
// device snapshot and the operands' shapes and strides. Free of MLX and Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/sorted_tiles.h"
#include "ops/candidates.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// Strides of a matrix's rows and columns, in elements.
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
  // Whether every matrix of the operand is aligned to 16 bytes.
  bool a_aligned = false, b_aligned = false;
  // alpha, beta and c apply; not supported with BATCH_GATHER.
  bool axpby = false;
  uint32_t batch = BATCH_EVEN;
  bool may_split = true; // over k, for speed

  // Rewrites the problem as y^T = alpha * b^T a^T + beta * c^T.
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
  // The problem as the kernel solves it: a thin product is transposed to have
  // at least as many rows as columns.
  GemmProblem problem;
  bool transposed = false;
  uint32_t tiles_m = 0, tiles_n = 0; // workgroups per matrix
  uint32_t splits = 1;
  uint32_t k_split = 0; // k's per split
  bool large = false; // offsets inside a matrix need 64 bits

  uint64_t groups() const {
    return uint64_t(tiles_m) * tiles_n * splits * problem.batches;
  }
  // For the estimate of run time (runtime/work.h). If every tile of bfloat16 on
  // f16 matrices must be recomputed, the run takes 20 times as long.
  double flops() const {
    auto* v = std::get_if<CoopmatVariant>(&variant);
    double most = v && v->units.halves ? 20 : 1;
    auto& p = problem;
    return most * 2.0 * p.m * p.n * p.k * double(p.batches);
  }
};

GemmPlan plan_gemm(const Target& gpu, const GemmProblem& problem);
// Others that the device can run; `wanted`: only of this name.
std::vector<Named<GemmPlan>> gemm_candidates(
    const Target& gpu,
    const GemmProblem& problem,
    const PlanName* wanted = nullptr);

// Kernel that finds the tiles of `rows` rows with sorted indices, and an upper
// bound of their count: each matrix may end with a partial tile.
SortedTilesVariant plan_sorted_tiles(const Target& gpu, uint32_t rows);
uint32_t most_sorted_tiles(uint64_t rows, uint64_t matrices, uint32_t height);

// A problem of BATCH_SORTED: m rows, each multiplied by one of `matrices`.
// Empty if products row by row are faster or the only choice.
std::optional<GemmPlan> plan_sorted_gemm(
    const Target& gpu,
    const GemmProblem& problem,
    uint32_t matrices);

} // namespace mlx::core::vulkan

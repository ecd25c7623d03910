// Choice of a quantized product's kernel and tile: a pure function of a shape
// and a device snapshot, tested without a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/quant/product.h"
#include "kernels/quant/qmm_dot.h"
#include "kernels/quant/qmm_fragments.h"
#include "kernels/quant/qmm_tall.h"
#include "ops/candidates.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

struct QuantShape {
  ProductVariant common; // type, format, addressing of matrices
  uint32_t m = 1, n = 1, k = 1; // sizes of one product
  uint64_t batch = 1;
  bool transpose = true; // w is (n, k)
  bool aligned = true; // 16-byte loads of x and w are possible
  bool x_aligned = true; // of x; its rows are whole loads
  bool sides_aligned = true; // scales and biases are aligned too
  bool may_split = true; // k into parts that are summed in a second dispatch
  // Rows of a sorted stack, one product each: m is 1, batch the row count.
  bool sorted = false;
  uint32_t matrices = 1;
};

struct QuantPlan {
  std::variant<
      QmvVariant, // w transposed, few rows
      QmmFragmentsVariant, // w transposed, a few dozen rows
      QmmSkinnyVariant,
      QmmTallVariant, // w transposed, dozens of rows and more
      QmmDotVariant, // x rounded to bytes
      QvmVariant, // w not transposed, few rows
      QmmVariant, // tiles
      QmmCoopmatVariant> // tiles with matrix units
      kernel;
  bool sorted = false; // tiles take rows of all products
  uint32_t tile_height = 0; // rows per tile, if sorted
  // Workgroups along m and n; parts of k, and their length if several.
  uint32_t m_tiles = 1, n_tiles = 1;
  uint32_t splits = 1, k_split = 0;
  const char* why = ""; // reason why no faster path is used
};

QuantPlan plan_quant(const Target& gpu, const QuantShape& shape);
// Others that the device can run, also to dequantize first (none); `wanted`:
// only of this name.
std::vector<Named<std::optional<QuantPlan>>> quant_candidates(
    const Target& gpu,
    const QuantShape& shape,
    const PlanName* wanted = nullptr);

// Whether to dequantize w first, into at most 256 MiB, and run a dense product
// (docs/lab/2026-11-22-matrix-units.md).
bool dequantizes_first(const Target& gpu, const QuantShape& shape);
// None: w is dequantized first.
inline std::optional<QuantPlan> plan_or_dequantize(
    const Target& gpu,
    const QuantShape& shape) {
  return dequantizes_first(gpu, shape) ? std::nullopt
                                       : std::optional(plan_quant(gpu, shape));
}

// Invocations of quantize.comp that share a group: 32 integers each.
uint32_t quantize_lanes(const Target& gpu, const FormatVariant& format);

} // namespace mlx::core::vulkan

#include "policy/policy.h"

namespace mlx::core::vulkan {

// Devices whose kernels run on the CPU, with what tests of the GPUs' kernels
// need. Numbers are lavapipe's. Compilers for CPUs spill to memory that is in
// their cache; merge sort is faster (docs/lab/2026-11-23-sorting.md); barriers
// are slow, so that 3,200 heads took twice as long.
Policy software_policy(const Caps&) {
  return {
      .name = "software",
      .held_values = 1 << 16,
      .serial = true,
      .timed_tiles = true,
      .dot_row = true, // with the threshold of a test
      .code_parts = 2, // for tests
      .vecmat_lanes = 4,
      .row_groups = 0,
      .gpu_tiles = false,
      .decode_lanes = 8,
      .decode_by_width = true, // tests see the forms of few registers
      .quads_items = 128, // tests see both forms
      .rank_comparisons = 1 << 18,
      .counted_items = 0,
      .radix_items = 0,
      .radix_words = 0,
      .scan_alone = 1024,
      .rotated_heads = 128,
      .gemm = {.split_parts = 1}};
}

} // namespace mlx::core::vulkan

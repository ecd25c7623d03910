#include "policy/policy.h"

namespace mlx::core::vulkan {

// Devices whose kernels run on the CPU, with what tests of the GPUs' kernels
// need. Numbers are lavapipe's.
Policy software_policy(const Caps&) {
  Policy p{.name = "software"};
  // Compilers for CPUs spill to memory that is in their cache.
  p.held_values = 1 << 16;
  p.serial = p.timed_tiles = true;
  p.gpu_tiles = false;
  p.vecmat_lanes = 4;
  p.row_groups = 0;
  p.gemm.split_parts = 1;
  p.decode_lanes = 8;
  // Merge sort is faster (docs/lab/2026-11-23-sorting.md).
  p.radix_items = p.radix_words = 0;
  p.counted_items = 0;
  p.rank_comparisons = 1 << 18;
  p.scan_alone = 1024;
  // Barriers are slow: 3,200 heads took twice as long.
  p.rotated_heads = 128;
  // Tests see the forms of devices with few registers, both forms of QUADS, and
  // parts of k.
  p.decode_by_width = true;
  p.quads_items = 128;
  p.sorted_parts = 2;
  p.dot_row = true; // with the threshold of a test
  return p;
}

} // namespace mlx::core::vulkan

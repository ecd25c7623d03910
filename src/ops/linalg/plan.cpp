#include "ops/linalg/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

uint32_t qr_panel_rows(const Caps& caps) {
  return 32 * std::min(caps.max_workgroup_size, 512u);
}

uint32_t block_columns(uint32_t columns) {
  return (columns < 4096 ? 1 : 16) * linalg_block;
}

uint32_t lu_panel_rows(const Caps& caps) {
  return 4 * std::min(caps.max_workgroup_size, 1024u);
}

LuPanelVariant lu_panel_variant(Type t, uint32_t rows, const Caps& caps) {
  LuPanelVariant v{.T = t, .ROWS = 1, .WG_SIZE = 64};
  while (v.ROWS * v.WG_SIZE < rows) {
    (8 * v.WG_SIZE <= lu_panel_rows(caps) ? v.WG_SIZE : v.ROWS) *= 2;
  }
  v.WIDE = 64 / linalg_bytes(t) / v.ROWS; // 16 registers
  return v;
}

QrPanelVariant qr_panel_variant(Type t, uint32_t rows, const Target& gpu) {
  QrPanelVariant v{.T = t, .ROWS = 16, .LANES = 4, .STAGED = true};
  uint32_t held = gpu.policy.few_registers() ? 16 : 32;
  uint32_t lanes = qr_panel_rows(gpu.caps) / 32;
  while (v.ROWS * v.LANES < rows) {
    (v.ROWS < held || v.LANES == lanes ? v.ROWS : v.LANES) *= 2;
  }
  v.WIDE = std::min(lanes / v.LANES, linalg_block);
  v.STAGED = v.shared_memory() <= gpu.caps.shared_memory;
  return v;
}

uint32_t qr_panel_columns(Type t, uint32_t rows, const Target& gpu) {
  // Applying an earlier column's reflector takes 2 us on an H200, a product
  // for the others of a block some 35.
  return std::min(4 * qr_panel_variant(t, rows, gpu).WIDE, linalg_block);
}

uint32_t qr_part(uint32_t rows, uint32_t columns) {
  uint32_t part = std::max(1024u, 2 * columns);
  return rows / 4 >= part ? part : rows;
}

bool merges_end(uint32_t columns, const Policy& policy) {
  return columns <= policy.most_iterations / 40; // turns; 25 were seen
}

JacobiVariant jacobi_variant(Type t, uint32_t columns, bool stacked) {
  uint32_t most = columns <= 32 ? 32 : 64;
  return {.T = t, .MOST = most, .LINES = stacked ? 2 * most : most};
}

RoundVariant round_variant(Type t, const Caps& caps) {
  RoundVariant v{t};
  if (v.shared_memory() > caps.shared_memory) {
    v.WIDE /= 2;
  }
  return v;
}

bool is_small(Type t, uint32_t columns, bool stacked, const Caps& caps) {
  auto bytes = jacobi_variant(t, columns, stacked).shared_memory();
  return columns <= 64 && bytes <= caps.shared_memory;
}

bool fills(uint32_t rows, uint32_t count, const Target& gpu) {
  return uint64_t(rows) * count >= 128 * uint64_t(gpu.cores());
}

ReduceProductVariant reduce_product_variant(Type t, bool many) {
  return many ? ReduceProductVariant{.T = t, .ROWS = 8, .LANES = 64, .FEW = 2}
              : ReduceProductVariant{.T = t, .ROWS = 2, .LANES = 128, .FEW = 4};
}

} // namespace mlx::core::vulkan

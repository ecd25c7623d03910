#include "ops/linalg/plan.h"

#include "vk/integers.h"

namespace mlx::core::vulkan {

LuPanelVariant lu_panel_variant(uint32_t rows, const Caps& caps) {
  LuPanelVariant small{.ROWS = 64, .WG_SIZE = 64};
  LuPanelVariant large{.ROWS = 224, .WG_SIZE = 256};
  if (rows <= small.ROWS) {
    return small;
  }
  if (rows > large.ROWS || caps.shared_memory < large.shared_memory()) {
    large.ROWS = 0;
  }
  return large;
}

QrPanelVariant qr_panel_variant(uint32_t rows, const Caps& caps) {
  QrPanelVariant small{.ROWS = 64, .WG_SIZE = 64};
  QrPanelVariant large{.ROWS = 128, .WG_SIZE = 128};
  if (rows <= small.ROWS) {
    return small;
  }
  if (rows <= large.ROWS && caps.shared_memory >= large.shared_memory()) {
    return large;
  }
  return {.ROWS = 0, .WG_SIZE = 256};
}

bool panels_end(uint32_t rows, const Policy& policy) {
  uint32_t loops = linalg_block * 4; // over every 256th row
  return ceil_div(rows, 256u) <= policy.most_iterations / loops;
}

uint32_t jacobi_rows(const Caps& caps) {
  JacobiVariant large{.MOST = 64, .SYMMETRIC = false, .VECTORS = true};
  return caps.shared_memory >= large.shared_memory() ? 64 : 32;
}

} // namespace mlx::core::vulkan

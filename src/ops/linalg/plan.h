// Which kernels of linear algebra a device takes. Pure, free of MLX.
#pragma once

#include "kernels/linalg/linalg.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// For a block column of so many rows.
LuPanelVariant lu_panel_variant(uint32_t rows, const Caps& caps);
QrPanelVariant qr_panel_variant(uint32_t rows, const Caps& caps);

// Whether the panels' loops end as they should: llvmpipe cuts long ones.
bool panels_end(uint32_t rows, const Policy& policy);

// The most rows of a matrix in shared memory of jacobi.comp: 32 or 64.
uint32_t jacobi_rows(const Caps& caps);

} // namespace mlx::core::vulkan

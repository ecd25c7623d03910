// Which kernels of linear algebra a device takes. Pure, free of MLX.
#pragma once

#include "kernels/linalg/tridiagonal.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// For a block column of so many rows. Those of LU with more than lu_rows() take
// long to compile.
uint32_t lu_rows(const Caps& caps);
LuPanelVariant lu_panel_variant(Type t, uint32_t rows, const Caps& caps);
QrPanelVariant qr_panel_variant(Type t, uint32_t rows, const Caps& caps);

// Whether the panels' loops end as they should: llvmpipe cuts long ones.
bool panels_end(uint32_t rows, const Policy& policy);
// The same of merge.comp's for so many columns.
bool merges_end(uint32_t columns, const Policy& policy);

// For eigenvalues, or if `stacked` singular vectors, of matrices that
// jacobi.comp holds in shared memory; whether it does.
JacobiVariant jacobi_variant(Type t, uint32_t columns, bool stacked);
bool is_small(Type t, uint32_t columns, bool stacked, const Caps& caps);
// For other matrices.
RoundVariant round_variant(Type t, const Caps& caps);

// For `count` matrices of so many rows.
ReduceProductVariant reduce_product_variant(
    Type t,
    uint32_t rows,
    uint32_t count,
    const Target& gpu);

} // namespace mlx::core::vulkan

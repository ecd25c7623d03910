// Which kernels of linear algebra a device takes. Pure, free of MLX.
#pragma once

#include "kernels/linalg/tridiagonal.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// Columns of the blocks of so many, which are made of panels.
uint32_t block_columns(uint32_t columns);

// The most rows of a panel that one workgroup factors. LU has another kernel
// for more.
uint32_t lu_panel_rows(const Caps& caps);
uint32_t qr_panel_rows(const Caps& caps);
LuPanelVariant lu_panel_variant(Type t, uint32_t rows, const Caps& caps);
QrPanelVariant qr_panel_variant(Type t, uint32_t rows, const Target& gpu);

// Columns of such a panel of QR.
uint32_t qr_panel_columns(Type t, uint32_t rows, const Target& gpu);

// A matrix of many rows is factored in parts of so many; others are whole.
uint32_t qr_part(uint32_t rows, uint32_t columns);

// Whether merge.comp's loops end as they should: llvmpipe cuts long ones.
bool merges_end(uint32_t columns, const Policy& policy);

// For eigenvalues, or if `stacked` singular vectors, of matrices that
// jacobi.comp holds in shared memory; whether it does.
JacobiVariant jacobi_variant(Type t, uint32_t columns, bool stacked);
bool is_small(Type t, uint32_t columns, bool stacked, const Caps& caps);
// For other matrices.
RoundVariant round_variant(Type t, const Caps& caps);

// True if `count` matrices fill the device, an invocation per row. Otherwise
// latency counts more than work.
bool fills(uint32_t rows, uint32_t count, const Target& gpu);
ReduceProductVariant reduce_product_variant(Type t, bool many);

} // namespace mlx::core::vulkan

// Eigenvalues of symmetric matrices, of which the lower triangle is read.
#pragma once

#include "ops/linalg/blocks.h"

namespace mlx::core::vulkan {

// For square x: writes s, and if they are given the vectors y (not of symmetric
// matrices) and v; kernels/linalg/linalg.h. For few columns, and many matrices.
void run_jacobi(
    const Matrices& x,
    bool symmetric,
    const array& s,
    const Matrices* y,
    const Matrices* v,
    StreamEncoder& enc);

// For symmetric x of many columns: writes s, and if it is given v, row-major.
void run_tridiagonal(
    const Matrices& x,
    const array& s,
    const Matrices* v,
    StreamEncoder& enc);

} // namespace mlx::core::vulkan

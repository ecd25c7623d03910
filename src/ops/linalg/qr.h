// QR by blocks of Householder reflectors.
#pragma once

#include <vector>

#include "ops/linalg/blocks.h"

namespace mlx::core::vulkan {

// q = (I - v t v^T) of each block, first to last; v begins at row `first`.
struct Reflectors {
  uint32_t first;
  Matrices v, t;
};

// Writes r, min(rows, cols) x cols, whose lower triangle must be zero. r's
// diagonal has LAPACK's signs.
std::vector<Reflectors>
factor_qr(const Matrices& a, const Matrices& r, StreamEncoder& enc);

// Writes the first columns of q, or of q times the identity with `corner` in
// its upper left corner, to `out`, which is row-major.
void form_q(
    const std::vector<Reflectors>& reflectors,
    const Matrices& out,
    StreamEncoder& enc,
    const Matrices* corner = nullptr);

} // namespace mlx::core::vulkan

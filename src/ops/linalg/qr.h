// QR by blocks of Householder reflectors.
#pragma once

#include <memory>
#include <vector>

#include "ops/linalg/blocks.h"

namespace mlx::core::vulkan {

// The product, first to last, of I - v t v^T, where t^-1 is the upper triangle
// of `products`, v^T v, with a unit diagonal (Joffrain et al., Accumulating
// Householder transformations, revisited, 2006). v begins at row `first`.
struct Reflectors {
  uint32_t first;
  Matrices v, products;
};

// Factors of a, or of parts of its rows in a batch and of the stack of their r
// (TSQR; Demmel, Grigori, Hoemmen & Langou, Communication-optimal parallel and
// sequential QR and LU factorizations, 2012).
struct Qr {
  std::vector<Reflectors> reflectors;
  uint32_t part; // rows
  std::unique_ptr<Qr> stack;
};

// Whether there is a kernel for matrices of this size; `whole` as below.
bool has_qr(uint32_t rows, uint32_t columns, bool whole, const Caps& caps);

// Writes r, min(rows, cols) x cols, whose lower triangle must be zero. r's
// diagonal has LAPACK's signs, but of matrices in parts. With `whole` a is not
// taken in parts, and form_q() can write more columns than a has.
Qr factor_qr(
    const Matrices& a,
    const Matrices& r,
    StreamEncoder& enc,
    bool whole = false);

// Writes the first columns of q, or of q times the identity with `corner` in
// its upper left corner, to `out`, which is row-major.
void form_q(
    const Qr& qr,
    const Matrices& out,
    StreamEncoder& enc,
    const Matrices* corner = nullptr);

} // namespace mlx::core::vulkan

// Matrix product for the primitives, with operands of any strides, in one
// dispatch (two with split k).
#pragma once

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// y = alpha * a b + beta * c over collapsed batch dimensions.
struct GemmCall {
  const array& a;
  const array& b;
  const array* c = nullptr;
  float alpha = 1, beta = 0;
  // Index arrays, in the shape of the batch, that select the matrices of a and
  // b.
  const array* lhs = nullptr;
  const array* rhs = nullptr;
};

// Writes `out`, which must be allocated and row-contiguous. a, b, c and out
// must not be empty except along k.
void run_gemm(StreamEncoder& enc, const GemmCall& call, array& out);

// Writes the sum of `parts`, float32 (splits, ...) with out's items in each, to
// `out`, which must be allocated.
void sum_parts(
    StreamEncoder& enc,
    const array& parts,
    uint32_t splits,
    array& out);

// Products of rows with sorted matrix indices, as in the experts of a prompt:
// each row uses the matrix of its index, and equal indices are adjacent.
//
// Tile boundaries, at most `height` rows of one index each: uint32 (rows + 2),
// kernels/gemm/sorted_tiles.h. `rhs` is row-contiguous uint32.
array sorted_tiles(StreamEncoder& enc, const array& rhs, uint32_t height);

// Writes `out`, which must be allocated, as run_gemm() does. Returns false and
// does nothing for types, layouts and devices without matrix units for them,
// and if each matrix has few rows. `call` has indices, with equal values of
// call.rhs adjacent.
bool run_sorted_gemm(StreamEncoder& enc, const GemmCall& call, array& out);

} // namespace mlx::core::vulkan

// The matrix product as the primitives use it: operands in place, whatever
// their strides, one dispatch (two when k is split).
#pragma once

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// y = alpha * a b + beta * c over collapsed batch dimensions.
struct GemmCall {
  const char* name; // of the MLX call, for messages
  const array& a;
  const array& b;
  const array* c = nullptr;
  float alpha = 1, beta = 0;
  // Index arrays choosing the matrices of a and b, of the batch's shape.
  const array* lhs = nullptr;
  const array* rhs = nullptr;
};

// Writes `out`, which has memory and is row-contiguous. Neither a, b, c nor
// out may be empty except along k.
void run_gemm(StreamEncoder& enc, const GemmCall& call, array& out);

// Throws std::invalid_argument, naming the call, if a product of a and b takes
// more workgroups than there may be.
void check_groups(
    const char* name,
    const array& a,
    const array& b,
    uint64_t groups);

} // namespace mlx::core::vulkan

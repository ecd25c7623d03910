// Arrays as rows along a contiguous last axis: the host side of
// kernels/common/rows.glsl.
#pragma once

#include "backend/stream_encoder.h"
#include "kernels/rows.h"
#include "ops/rows/plan.h"

namespace mlx::core::vulkan {

struct Rows {
  array x;
  RowArgs args;
  // The rows fill x's memory without holes, in some order of the other axes,
  // and are walked in memory order: an output of x's strides fits.
  bool dense = false;
  // Asked before `x` shared the array's handle.
  bool donatable = false;

  // Every row starts at a multiple of four items, of which it holds a multiple.
  bool vector4() const;
};

// Copies only what cannot be walked so. With `memory_order` a dense array is
// walked in the order of its memory, else rows come in logical order.
Rows rows_of(const array& a, StreamEncoder& enc, bool memory_order);

// Memory for an output of the rows' shape: dense rows keep their strides, and
// their buffer if it can be donated; else the output is row-contiguous.
void alloc_rows(const Rows& rows, const array& in, array& out);

// Throws std::runtime_error, naming `op`, unless `out` is of a float type.
void check_floating(const array& out, const char* op);

// True if the first item starts at a multiple of four.
inline bool aligned4(const array& a) {
  return a.offset() % (4 * a.itemsize()) == 0;
}

// Workgroups for teams of `lanes` (WG_SIZE in rows.glsl).
Grid row_grid(uint64_t rows, int lanes);

} // namespace mlx::core::vulkan

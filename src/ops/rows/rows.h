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
  // Rows fill x's memory without gaps, in some order of the other axes, and are
  // visited in memory order, so an output may have x's strides.
  bool dense = false;
  // Evaluated before `x` shared the array's handle.
  bool donatable = false;

  // Whether rows are aligned to four items and hold a multiple of four.
  bool vector4() const;
};

// Copies only layouts that RowArgs cannot express. With `memory_order` a dense
// array is visited in memory order, otherwise rows are in logical order.
Rows rows_of(const array& a, StreamEncoder& enc, bool memory_order);

// Allocates an output of the rows' shape: dense rows keep their strides, and
// their buffer if donatable; otherwise the output is row-contiguous.
void alloc_rows(const Rows& rows, const array& in, array& out);

// Throws std::runtime_error, naming `op`, unless `out` is of a float type.
void check_floating(const array& out, const char* op);

// Sorts rows along the last axis of `in` into `out`, which must be allocated;
// with `arg`, positions (uint32). Returns false, without recording, if a merge
// sort is used: short rows, 64-bit keys, no fixed subgroup size.
bool radix_sort(StreamEncoder& enc, const array& in, array& out, bool arg);

// Workgroups for teams of `lanes` (WG_SIZE in rows.glsl).
Grid row_grid(uint64_t rows, int lanes);

} // namespace mlx::core::vulkan

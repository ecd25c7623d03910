// Arrays as rows along a contiguous last axis: the host side of
// kernels/common/rows.glsl.
#pragma once

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// Row r starts (r / inner) * outer_stride + (r % inner) * inner_stride
// elements after the first item of `x`.
struct Rows {
  array x;
  uint64_t count;
  uint32_t length;
  uint32_t inner = 1;
  int64_t outer_stride = 0, inner_stride = 0;
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

struct RowParams { // ROW_ARGS
  explicit RowParams(const Rows& r)
      : rows(r.count),
        outer_stride(r.outer_stride),
        inner_stride(r.inner_stride),
        inner(r.inner),
        length(r.length) {}

  uint64_t rows;
  int64_t outer_stride, inner_stride;
  uint32_t inner, length;
};

// Invocations for a row, and four-item chunks each keeps in registers (0: too
// many). Short rows share a workgroup.
struct RowTeam {
  int lanes;
  int chunks;
};
RowTeam row_team(uint64_t rows, uint32_t length, int most_chunks = 8);

// Workgroups for teams of `lanes` (WG_SIZE in rows.glsl).
Grid row_grid(uint64_t rows, int lanes);

} // namespace mlx::core::vulkan

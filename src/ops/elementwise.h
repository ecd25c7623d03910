// Unary, binary and ternary operations on the GPU: the primitives' own
// eval_gpu, and for primitives that need one as a step.
//
// `op` names a function of common/unary_ops.glsl and friends. The forms that
// allocate choose the output's layout and donate inputs as MLX's CPU backend
// does; the in-place forms write into an output that has data already, dense
// like the inputs or row-contiguous.
#pragma once

#include <algorithm>

#include "ops/layout.h"

namespace mlx::core::vulkan {

void unary_op(const array& in, array& out, const char* op, Stream s);
void unary_op_inplace(const array& in, array& out, const char* op, Stream s);

void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s);
void binary_op_inplace(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s);

void ternary_op(
    const array& a,
    const array& b,
    const array& c,
    array& out,
    const char* op,
    Stream s);

// Items of a row that an invocation of a strided kernel takes; STRIDED_WORK in
// common/index.glsl.
constexpr uint32_t strided_work = 4;
constexpr uint32_t elementwise_group = 256;

// The argument block of FORM 1 (D = 4) and FORM 2 (D = 16) for N operands.
template <int N, int D>
struct StridedBlock {
  uint64_t rows;
  uint32_t last;
  int32_t ndim;
  int32_t shape[D] = {};
  int64_t strides[N][D] = {};
};

template <int N, int D>
StridedBlock<N, D> strided_block(
    const Shape& shape,
    const std::vector<Strides>& strides,
    uint64_t size) {
  StridedBlock<N, D> p;
  p.ndim = static_cast<int32_t>(shape.size());
  p.last = p.ndim == 0 ? 1 : shape.back();
  p.rows = size / p.last;
  if (p.ndim == 0) {
    p.ndim = 1;
    p.shape[0] = 1;
    return p;
  }
  for (int d = 0; d < p.ndim; ++d) {
    p.shape[d] = shape[d];
    for (int n = 0; n < N; ++n) {
      p.strides[n][d] = strides[n][d];
    }
  }
  return p;
}

inline Grid strided_grid(uint64_t rows, uint32_t last) {
  uint64_t per_row = (uint64_t(last) + strided_work - 1) / strided_work;
  return linear(rows * per_row, elementwise_group);
}

// Whether the array's items can be accessed four at a time
// (common/vector.glsl); buffers themselves are aligned to 16 bytes and more.
inline bool quad_aligned(const array& a) {
  return a.offset() % std::min<int64_t>(16, 4 * a.itemsize()) == 0;
}

// The dense form of a kernel: 3 takes four items at a time, 0 one.
template <typename... Arrays>
int dense_form(const Arrays&... arrays) {
  return (quad_aligned(arrays) && ...) ? 3 : 0;
}

// Enough groups to fill any GPU; invocations loop over the rest.
inline Grid dense_grid(uint64_t items, int form = 0) {
  uint64_t units = form == 3 ? items / 4 + items % 4 : items;
  uint64_t groups = (units + elementwise_group - 1) / elementwise_group;
  return linear(std::min<uint64_t>(groups, 65535));
}

template <typename... Arrays>
bool any_large(const Arrays&... arrays) {
  return (needs_large_index(arrays) || ...);
}

} // namespace mlx::core::vulkan

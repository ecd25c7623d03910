// Descriptions of dispatches for the rewrites (runtime/descriptor.h); empty if
// the dispatch has another form.
#pragma once

#include <algorithm>

#include "backend/stream_encoder.h"
#include "kernels/gather_scatter_axis.h"

namespace mlx::core::vulkan {

// Heads of D items; strides of the first operand and of the output.
struct HeadAxis {
  int64_t extent = 1, in = 0, out = 0;
};
inline Heads heads_of(int64_t D, const HeadAxis (&axes)[3], size_t item_size) {
  Heads h{.D = static_cast<uint32_t>(D)};
  int64_t in = D, out = D; // items that each reaches
  for (int i = 0; i < 3; ++i) {
    auto& a = axes[i];
    if (a.extent > 1) {
      in += std::abs(a.in) * (a.extent - 1);
      out += std::abs(a.out) * (a.extent - 1);
      h.axes[i] = {int(a.extent), int(a.in), int(a.out)};
    }
  }
  bool fit = std::max(in, out) * int64_t(item_size) <= INT32_MAX;
  return fit ? h : Heads{};
}

// The rows of a shape, unless there are more than three other axes.
inline Heads heads_of(
    const Shape& shape,
    const Strides& in,
    const Strides& out,
    size_t item_size) {
  HeadAxis axes[3];
  int last = static_cast<int>(shape.size()) - 1, n = 3;
  for (int d = last; d-- > 0;) {
    if (shape[d] != 1 && --n >= 0) {
      axes[n] = {shape[d], in[d], out[d]};
    }
  }
  bool rows = last >= 0 && n >= 0 && in[last] == 1 && out[last] == 1;
  return rows ? heads_of(shape[last], axes, item_size) : Heads{};
}

// A product or a quotient whose second operand has one value per row.
inline Descriptor per_row(const array& a, const array& b, bool divides) {
  if (b.data_size() == 1 && a.size() > 1 && a.size() <= INT32_MAX &&
      a.data_size() == a.size()) {
    auto all = static_cast<uint32_t>(a.size());
    return PerRowRecord{type_of(a), divides, 1, all};
  }
  uint32_t n = a.ndim() ? a.shape(-1) : 1;
  if (n == 1 || b.strides(-1) != 0 || !a.flags().row_contiguous ||
      a.size() > INT32_MAX) {
    return {};
  }
  int64_t rows = 1;
  for (int d = a.ndim() - 2; d >= 0; --d) {
    if (a.shape(d) != 1 && b.strides(d) != rows) {
      return {};
    }
    rows *= a.shape(d);
  }
  return PerRowRecord{type_of(a), divides, static_cast<uint32_t>(rows), n};
}

// A mask of attention's scores, which have four or five axes; `out` takes the
// memory of the scores.
inline Descriptor mask_record(
    const array& mask,
    int mask_operand,
    const array& scores,
    const array& out,
    bool adds) {
  int n = out.ndim();
  if (n < MaskRecord::axes - 1 || n > MaskRecord::axes ||
      mask.ndim() != out.ndim() || !scores.flags().row_contiguous ||
      scores.size() != out.size() ||
      scores.data_shared_ptr() != out.data_shared_ptr()) {
    return {};
  }
  MaskRecord m{type_of(out), adds, static_cast<uint8_t>(mask_operand)};
  m.ndim = static_cast<uint8_t>(n);
  for (int d = 0; d < n; ++d) {
    m.shape[d] = mask.shape(d);
    m.strides[d] = mask.strides(d);
  }
  return m;
}

// A GatherAxis that selects items of dense rows.
template <int NDIM>
Descriptor take_of(const AxisArgs<NDIM, 0>& a, Type index, const array& src) {
  uint32_t n = a.axis_size, k = a.index_size;
  bool one = a.shape[0] == 1;
  bool rows = a.ndim <= 1 && a.post == 1 && index == Type::u32 &&
      a.axis_strides[0] == 1 && a.axis_strides[1] == 1 &&
      (one || (a.strides[0][0] == n && a.strides[1][0] >= 0));
  if (!rows || a.count != uint64_t(a.shape[0]) * k) {
    return {};
  }
  auto pitch = one ? n : static_cast<uint32_t>(a.strides[1][0]);
  auto item = static_cast<uint32_t>(src.itemsize());
  return TakeRecord{item, a.shape[0], n, k, pitch};
}

} // namespace mlx::core::vulkan

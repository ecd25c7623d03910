// Launches of elementwise kernels (kernels/elementwise.h).
#pragma once

#include <algorithm>
#include <array>

#include "backend/stream_encoder.h"
#include "kernels/common/dense.h"
#include "kernels/elementwise.h"
#include "ops/view.h"

namespace mlx::core::vulkan {

inline Grid strided_grid(uint64_t rows, uint32_t last) {
  uint64_t per_row = ceil_div(uint64_t(last), STRIDED_WORK);
  return linear(rows * per_row, DENSE_GROUP);
}

// The form for dense arrays of `items`. `fours`: aligned for access by fours.
// Only small items (`bytes` each) need several fours an invocation.
inline int dense_form(uint64_t items, bool fours, size_t bytes) {
  return !fours                           ? FORM_DENSE
      : items >= MANY_ITEMS && bytes <= 2 ? FORM_DENSE_MANY
                                          : FORM_DENSE4;
}

// Enough groups to fill any GPU; invocations loop over the rest.
inline Grid dense_grid(uint64_t items, int form = FORM_DENSE) {
  if (form == FORM_DENSE_MANY) {
    constexpr uint64_t group_items = 4 * MANY_FOURS * DENSE_GROUP;
    uint64_t rest = items % group_items;
    return linear(items / group_items + ceil_div(rest, DENSE_GROUP));
  }
  uint64_t units = form == FORM_DENSE4 ? items / 4 + items % 4 : items;
  uint64_t groups = ceil_div(units, DENSE_GROUP);
  return linear(std::min<uint64_t>(groups, DENSE_GROUPS));
}

// The arguments of FORM_STRIDED (DIMS = 4) and FORM_STRIDED16 for collapsed
// operands, whose strides begin at `strides`; there may be fewer than OPERANDS.
template <int OPERANDS, int DIMS>
void set_items(
    StridedItems<OPERANDS, DIMS>& items,
    uint64_t size,
    const Shape& shape,
    const Strides* strides,
    int operands = OPERANDS) {
  items.ndim = static_cast<int32_t>(shape.size());
  items.last = shape.back();
  items.rows = size / items.last;
  assign(items.shape, shape);
  for (int k = 0; k < operands; ++k) {
    assign(items.strides[k], strides[k]);
  }
}

// Runs a kernel of N operands; `variant` is complete except for FORM and LARGE.
// Outputs have memory: dense like the inputs, or row-contiguous.
template <int N, KernelVariant Variant>
void run_elementwise(
    Variant variant,
    std::initializer_list<Operand> in,
    std::initializer_list<Operand> out,
    bool dense,
    Stream s,
    const Descriptor& descriptor = {}) {
  const array& first = *out.begin()->a;
  if (first.size() == 0) {
    return;
  }
  auto& enc = encoder(s);
  variant.LARGE = false;
  for (auto operands : {in, out}) {
    for (const auto& o : operands) {
      variant.LARGE = variant.LARGE || needs_large_index(*o.a);
    }
  }
  if (dense) {
    DenseItems<N> items{};
    bool fours = true;
    size_t bytes = 0;
    for (int k = 0; k < N; ++k) {
      const array& a = *in.begin()[k].a;
      items.n = std::max<uint64_t>(items.n, a.data_size());
      items.step[k] = a.data_size() == 1 ? 0 : 1;
      fours = fours && (items.step[k] == 0 || by_fours(a));
      bytes = std::max(bytes, a.itemsize());
    }
    for (const auto& o : out) {
      fours = fours && by_fours(*o.a);
      bytes = std::max(bytes, o.a->itemsize());
    }
    variant.FORM = dense_form(items.n, fours, bytes);
    Grid grid = dense_grid(items.n, variant.FORM);
    return enc.dispatch(variant, in, out, items, grid, {}, descriptor);
  }
  Shape shape = first.shape();
  std::array<Strides, N> strides;
  for (int k = 0; k < N; ++k) {
    strides[k] = in.begin()[k].a->strides();
  }
  collapse(shape, strides);
  double item = 0;
  for (auto operands : {in, out}) {
    for (const auto& o : operands) {
      item += o.a->itemsize();
    }
  }
  auto launch = [&]<int DIMS>(int form) {
    variant.FORM = form;
    StridedItems<N, DIMS> items{};
    set_items(items, first.size(), shape, strides.data());
    enc.dispatch(
        variant,
        in,
        out,
        items,
        strided_grid(items.rows, items.last),
        {.bytes = item * first.size()},
        descriptor);
  };
  variant_ndim(shape.size(), variant.OP) <= 4
      ? launch.template operator()<4>(FORM_STRIDED)
      : launch.template operator()<max_ndim>(FORM_STRIDED16);
}

} // namespace mlx::core::vulkan

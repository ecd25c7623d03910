// SearchSorted: one binary search per output item.
#include "mlx/primitives.h"

#include <cmath>

#include "kernels/searchsorted.h"
#include "ops/indices.h"

namespace mlx::core {

using namespace vulkan;

void SearchSorted::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& sequence = inputs[0];
  auto& values = inputs[1];
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = encoder(stream());
  auto [shape, strides] = collapsed(values.shape(), values.strides());
  with_ndim(shape, "searchsorted", [&](auto ndim) {
    SearchSortedArgs<ndim> args{
        .count = out.size(),
        .sequence_stride = sequence.strides(0),
        .ndim = uint32_t(shape.size()),
        .size = uint32_t(sequence.size())};
    assign(args.value_strides, strides);
    assign(args.shape, shape);
    SearchSortedVariant variant{
        .T = type_of(sequence), .RIGHT = right_, .NDIM = ndim};
    auto grid = linear(args.count, 256);
    // Neighbouring searches read different cache lines in each step.
    constexpr double line = 32;
    double steps = std::log2(args.size + 2.0);
    enc.dispatch(
        variant,
        {sequence, values},
        {out},
        args,
        grid,
        {.bytes = args.count * (line * steps)});
  });
}

} // namespace mlx::core

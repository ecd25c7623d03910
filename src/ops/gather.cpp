// Gather and GatherAxis move raw words, slices as wide as alignment allows.
#include "mlx/primitives.h"

#include "ops/copy.h"
#include "ops/indices.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

void Gather::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  auto& src = inputs[0];
  if (src.size() == 0) { // every index is out of bounds
    return fill_with_zeros(out, enc);
  }
  out.set_data(allocator::malloc(out.nbytes()));
  if (axes_.empty()) { // the slice at the start
    copy_strided(enc, src, out, {slice_sizes_, src.strides(), out.strides()});
    return;
  }
  TupleMove move(inputs, axes_, src, slice_sizes_);
  GatherVariant variant{.WORD = move.widen(out)};
  move.dispatch<0>(enc, variant, src, out);
}

void GatherAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (inputs[0].size() == 0) {
    return fill_with_zeros(out, enc);
  }
  out.set_data(allocator::malloc(out.nbytes()));
  GatherAxisVariant variant{.WORD = int(out.itemsize())};
  dispatch_along_axis<0>(enc, variant, axis_, inputs[0], inputs[1], out);
}

} // namespace mlx::core

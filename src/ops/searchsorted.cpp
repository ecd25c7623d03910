// SearchSorted: a binary search an output item.
#include "mlx/primitives.h"

#include "ops/strided.h"

namespace mlx::core {

void SearchSorted::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& sequence = inputs[0];
  auto& values = inputs[1];
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  Shape shape = values.shape();
  std::array<Strides, 1> strides{values.strides()};
  vulkan::collapse(shape, strides);
  int ndim = vulkan::variant_ndim(shape.size(), "searchsorted");
  vulkan::ArgBlock args;
  args.add<uint64_t>(out.size())
      .add<int64_t>(sequence.strides(0))
      .indices(strides[0], ndim, true)
      .extents(shape, ndim)
      .add<uint32_t>(shape.size())
      .add<uint32_t>(sequence.size());
  auto& k = enc.kernel(
      "searchsorted",
      {{"T", vulkan::type_of(sequence)},
       {"RIGHT", int(right_)},
       {"NDIM", ndim}});
  const vulkan::Operand reads[] = {sequence, values};
  vulkan::dispatch(enc, k, reads, out, args, vulkan::linear(out.size(), 256));
}

} // namespace mlx::core

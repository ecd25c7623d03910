// Gather and GatherAxis. Both move raw words; slices as wide as alignment
// allows.
#include "mlx/primitives.h"

#include "ops/indices.h"
#include "ops/strided.h"

namespace mlx::core {

void Gather::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  auto& src = inputs[0];
  size_t nidx = inputs.size() - 1;
  vulkan::IndexTuples tuples(inputs, 1, nidx, nullptr, "gather");

  Shape slice = slice_sizes_;
  std::array<Strides, 1> slice_strides{src.strides()};
  vulkan::collapse(slice, slice_strides);
  int slice_ndim = vulkan::IndexTuples::small_ndim(slice.size(), "gather");

  vulkan::Alignment alignment(src.itemsize());
  alignment.operand(slice_strides[0]);
  alignment.elements(slice.back());
  alignment.bytes(src.offset());
  alignment.bytes(out.offset());
  for (int axis : axes_) {
    alignment.elements(src.strides(axis));
  }
  int word = alignment.word();
  int ratio = word / static_cast<int>(src.itemsize());
  slice.back() /= ratio;
  if (ratio > 1) {
    for (size_t d = 0; d + 1 < slice_strides[0].size(); ++d) {
      slice_strides[0][d] /= ratio;
    }
  }
  uint64_t count = out.size() / ratio;
  bool wide = count > std::numeric_limits<uint32_t>::max() / 2;

  auto args = vulkan::tuple_args(
      count, src, axes_, ratio, tuples, slice, slice_strides, slice_ndim);
  auto& k = enc.kernel(
      "gather",
      {{"WORD", word},
       {"I", nidx ? vulkan::type_of(inputs[1]) : vulkan::Type::u32},
       {"NIDX", nidx},
       {"I_NDIM", tuples.ndim},
       {"S_NDIM", slice_ndim},
       {"WIDE", int(wide)}});
  std::vector<vulkan::Operand> reads(inputs.begin(), inputs.end());
  vulkan::dispatch(enc, k, reads, out, args, vulkan::linear(count, 256));
}

void GatherAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  auto& src = inputs[0];
  auto& index = inputs[1];

  vulkan::AxisArgs<2> block(index, src, axis_, {&src, &index}, "gather_axis");
  bool wide = out.size() > std::numeric_limits<uint32_t>::max() / 2;
  auto& k = enc.kernel(
      "gather_axis",
      {{"WORD", src.itemsize()},
       {"I", vulkan::type_of(index)},
       {"NDIM", block.ndim},
       {"WIDE", int(wide)}});
  const vulkan::Operand reads[] = {src, index};
  auto grid = vulkan::linear(out.size(), 256);
  vulkan::dispatch(enc, k, reads, out, block.args, grid);
}

} // namespace mlx::core

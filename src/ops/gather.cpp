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
  Strides axis_strides;
  for (int axis : axes_) {
    axis_strides.push_back(src.strides(axis));
  }

  vulkan::Alignment alignment(src.itemsize());
  alignment.operand(slice_strides[0]);
  alignment.elements(slice.back());
  alignment.bytes(src.offset());
  alignment.bytes(out.offset());
  for (auto s : axis_strides) {
    alignment.elements(s);
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

  vulkan::ArgBlock args;
  args.add<uint64_t>(count).add<uint64_t>(vulkan::elements(slice));
  args.indices(axis_strides, nidx, true, ratio);
  for (auto& s : tuples.strides) {
    args.indices(s, tuples.ndim, true);
  }
  args.indices(slice_strides[0], slice_ndim, true);
  if (nidx > 0) {
    for (int axis : axes_) {
      args.add<int32_t>(src.shape(axis));
    }
    args.extents(tuples.shape, tuples.ndim).add<uint32_t>(tuples.shape.size());
  }
  args.extents(slice, slice_ndim).add<uint32_t>(slice.size());

  auto& k = enc.kernel(
      "gather",
      {{"WORD", word},
       {"I", nidx ? vulkan::type_of(inputs[1]) : vulkan::Type::u32},
       {"NIDX", nidx},
       {"I_NDIM", tuples.ndim},
       {"S_NDIM", slice_ndim},
       {"WIDE", int(wide)}});
  std::vector<vulkan::Operand> reads(inputs.begin(), inputs.end());
  vulkan::Operand write(out);
  enc.dispatch_bytes(
      k,
      reads,
      {&write, 1},
      args.data(),
      args.size(),
      vulkan::linear(count, 256));
}

void GatherAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  auto& src = inputs[0];
  auto& index = inputs[1];

  uint64_t post = 1;
  for (int d = axis_ + 1; d < index.ndim(); ++d) {
    post *= index.shape(d);
  }
  Shape shape = remove_index(index.shape(), axis_);
  std::array<Strides, 2> strides{
      remove_index(src.strides(), axis_), remove_index(index.strides(), axis_)};
  vulkan::collapse(shape, strides);
  int ndim = vulkan::variant_ndim(shape.size(), "gather_axis");
  bool wide = out.size() > std::numeric_limits<uint32_t>::max() / 2;

  vulkan::ArgBlock args;
  args.add<uint64_t>(out.size())
      .add<uint64_t>(post)
      .add<int64_t>(src.strides(axis_))
      .add<int64_t>(index.strides(axis_))
      .indices(strides[0], ndim, true)
      .indices(strides[1], ndim, true)
      .extents(shape, ndim)
      .add<uint32_t>(shape.size())
      .add<uint32_t>(index.shape(axis_))
      .add<int32_t>(src.shape(axis_));
  auto& k = enc.kernel(
      "gather_axis",
      {{"WORD", src.itemsize()},
       {"I", vulkan::type_of(index)},
       {"NDIM", ndim},
       {"WIDE", int(wide)}});
  const vulkan::Operand reads[] = {src, index};
  vulkan::Operand write(out);
  enc.dispatch_bytes(
      k,
      reads,
      {&write, 1},
      args.data(),
      args.size(),
      vulkan::linear(out.size(), 256));
}

} // namespace mlx::core

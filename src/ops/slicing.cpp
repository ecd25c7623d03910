// Concatenate, dynamic slice offsets and SliceUpdate.
#include "mlx/backend/gpu/slicing.h"
#include "mlx/backend/common/slicing.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"

#include "ops/copy.h"
#include "ops/strided.h"

namespace mlx::core {

namespace {

struct DynamicOffsetParams { // mirrors kernels/dynamic_offset.comp
  int64_t strides[vulkan::max_ndim] = {};
  uint32_t count = 0;
  uint32_t pad = 0;
};

const char* combine_function(SliceUpdate::ReduceType type) {
  switch (type) {
    case SliceUpdate::Sum:
      return "combine_Sum";
    case SliceUpdate::Prod:
      return "combine_Prod";
    case SliceUpdate::Max:
      return "combine_Max";
    case SliceUpdate::Min:
      return "combine_Min";
    case SliceUpdate::None:
      break;
  }
  return nullptr;
}

} // namespace

void concatenate_gpu(
    const std::vector<array>& inputs,
    array& out,
    int axis,
    const Stream& s) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(s);
  // The parts write disjoint ranges unless `axis` is strided over; even then
  // no part reads what another writes.
  int64_t position = 0;
  for (auto& in : inputs) {
    vulkan::copy_strided(
        enc,
        in,
        out,
        {in.shape(),
         in.strides(),
         out.strides(),
         0,
         position * out.strides(axis),
         nullptr,
         nullptr});
    position += in.shape(axis);
  }
}

array compute_dynamic_offset(
    const array& indices,
    const Strides& strides,
    const std::vector<int>& axes,
    const Stream& s) {
  auto& enc = vulkan::encoder(s);
  if (!indices.flags().row_contiguous) {
    array copy = contiguous_copy_gpu(indices, s);
    enc.add_temporary(copy);
    return compute_dynamic_offset(copy, strides, axes, s);
  }
  if (axes.size() > vulkan::max_ndim) {
    throw std::invalid_argument(
        "[dynamic_slice] The Vulkan backend handles at most 16 axes; got " +
        std::to_string(axes.size()) + ".");
  }
  DynamicOffsetParams params;
  for (size_t i = 0; i < axes.size(); ++i) {
    params.strides[i] = strides[axes[i]];
  }
  params.count = static_cast<uint32_t>(axes.size());
  array offset = enc.temporary({1}, int64);
  auto& k = enc.kernel("dynamic_offset", {{"I", vulkan::type_of(indices)}});
  enc.dispatch(k, {indices}, {offset}, params, vulkan::linear(1));
  return offset;
}

void SliceUpdate::eval_gpu(const std::vector<array>& inputs, array& out) {
  if (out.size() == 0) {
    out.set_data(allocator::malloc(0));
    return;
  }
  auto& in = inputs[0];
  auto& update = inputs[1];
  if (update.size() == 0) {
    out.copy_shared_buffer(in);
    return;
  }

  // A donated input becomes the output without a copy.
  CopyType ctype = in.data_size() == 1 ? CopyType::Scalar
      : in.flags().contiguous && in.size() == in.data_size()
      ? CopyType::Vector
      : CopyType::General;
  copy_gpu(in, out, ctype, stream());

  auto [offset, strides] = prepare_slice(out, start_indices_, strides_);
  vulkan::copy_strided(
      vulkan::encoder(stream()),
      update,
      out,
      {update.shape(), update.strides(), strides, 0, offset, nullptr, nullptr},
      combine_function(reduce_type_));
}

} // namespace mlx::core

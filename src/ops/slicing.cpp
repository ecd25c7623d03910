// Concatenate, dynamic slice offsets and SliceUpdate.
#include "mlx/backend/gpu/slicing.h"
#include "mlx/backend/common/slicing.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"

#include "kernels/dynamic_offset.h"
#include "ops/copy.h"
#include "ops/indices.h"

namespace mlx::core {

using namespace vulkan;

void concatenate_gpu(
    const std::vector<array>& inputs,
    array& out,
    int axis,
    const Stream& s) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = encoder(s);
  // The parts write disjoint ranges unless `axis` is strided over; even then
  // no part reads what another writes.
  int64_t position = 0;
  for (auto& in : inputs) {
    copy_strided(
        enc,
        in,
        out,
        {in.shape(),
         in.strides(),
         out.strides(),
         0,
         position * out.strides(axis)});
    position += in.shape(axis);
  }
}

array compute_dynamic_offset(
    const array& indices,
    const Strides& strides,
    const std::vector<int>& axes,
    const Stream& s) {
  auto& enc = encoder(s);
  if (!indices.flags().row_contiguous) {
    array copy = contiguous_copy_gpu(indices, s);
    enc.add_temporary(copy);
    return compute_dynamic_offset(copy, strides, axes, s);
  }
  if (axes.size() > max_ndim) {
    throw std::invalid_argument(
        "[dynamic_slice] The Vulkan backend handles at most 16 axes; got " +
        std::to_string(axes.size()) + ".");
  }
  DynamicOffsetArgs<max_ndim> args{.count = uint32_t(axes.size())};
  for (size_t i = 0; i < axes.size(); ++i) {
    args.strides[i] = strides[axes[i]];
  }
  array offset = enc.temporary({1}, int64);
  DynamicOffsetVariant variant{.I = type_of(indices)};
  auto& k = enc.kernel(variant);
  enc.dispatch(k, {indices}, {offset}, args, linear(1));
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
  copy_strided(
      encoder(stream()),
      update,
      out,
      {update.shape(), update.strides(), strides, 0, offset},
      combine_function<SliceUpdate>(reduce_type_));
}

} // namespace mlx::core

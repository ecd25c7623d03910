// Concatenate, dynamic slice offsets and SliceUpdate.
#include "mlx/backend/gpu/slicing.h"
#include "mlx/backend/common/slicing.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"

#include "kernels/dynamic_offset.h"
#include "ops/copy.h"
#include "ops/indices.h"
#include "ops/layout.h"

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
  // The parts' ranges of bytes are disjoint if `axis` is the outermost one; no
  // part ever reads what another writes.
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

namespace {

// MLX requests the offset first, without the shapes that bound it, then the
// copy, on the same thread. The copy computes it, from these index axes.
thread_local std::vector<int> dynamic_axes;

} // namespace

array compute_dynamic_offset(
    const array& indices,
    const Strides&,
    const std::vector<int>& axes,
    const Stream& s) {
  if (axes.size() > max_ndim) {
    throw std::invalid_argument(
        "[dynamic_slice] The Vulkan backend handles at most 16 axes; got " +
        std::to_string(axes.size()) + ".");
  }
  dynamic_axes = axes;
  return row_contiguous(indices, encoder(s));
}

array vulkan::dynamic_offset(
    StreamEncoder& enc,
    const array& indices,
    const array& of,
    const Shape& slice) {
  DynamicOffsetArgs<max_ndim> args{.count = uint32_t(dynamic_axes.size())};
  for (size_t i = 0; i < dynamic_axes.size(); ++i) {
    int axis = dynamic_axes[i];
    args.strides[i] = of.strides(axis);
    args.sizes[i] = of.shape(axis);
    args.starts[i] = std::max(of.shape(axis) - slice[axis] + 1, 0);
  }
  array offset = enc.temporary({1}, int64);
  DynamicOffsetVariant variant{.I = type_of(indices)};
  enc.dispatch(variant, {indices}, {offset}, args, linear(1));
  return offset;
}

void SliceUpdate::eval_gpu(const std::vector<array>& inputs, array& out) {
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

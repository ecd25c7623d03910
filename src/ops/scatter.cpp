// Scatter and ScatterAxis: the input is copied (or donated), then updated in
// place. Assignments move raw words; reductions are atomic.
#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "ops/indices.h"
#include "ops/strided.h"

namespace mlx::core {

namespace {

template <typename Primitive>
const char* combine_function(typename Primitive::ReduceType type) {
  if constexpr (std::is_same_v<Primitive, Scatter>) {
    switch (type) {
      case Scatter::Prod:
        return "combine_Prod";
      case Scatter::Max:
        return "combine_Max";
      case Scatter::Min:
        return "combine_Min";
      default:
        break;
    }
  }
  return type == Primitive::Sum ? "combine_Sum" : nullptr;
}

void check_dtype(const char* op, const array& out, bool sum, bool assign) {
  if (out.itemsize() == 8 && !sum && !assign) {
    std::ostringstream msg;
    msg << "[" << op << "] The Vulkan backend combines 8-byte types by sum "
        << "only; got " << out.dtype() << ". Use the CPU device.";
    throw std::invalid_argument(msg.str());
  }
}

void copy_input(const array& in, array& out, const Stream& s) {
  CopyType type = in.data_size() == 1 ? CopyType::Scalar
      : in.flags().row_contiguous     ? CopyType::Vector
                                      : CopyType::General;
  copy_gpu(in, out, type, s);
}

} // namespace

void Scatter::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& updates = inputs.back();
  const char* reduce = combine_function<Scatter>(reduce_type_);
  check_dtype("scatter", out, reduce_type_ == Sum, !reduce);
  copy_input(inputs[0], out, stream());
  if (updates.size() == 0 || out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  size_t nidx = axes_.size();
  int idx_ndim = nidx ? inputs[1].ndim() : 0;

  // Updates walk the tuples by their leading axes, a slice by the others.
  auto& us = updates.strides();
  Strides leading(us.begin(), us.begin() + idx_ndim);
  vulkan::IndexTuples tuples(inputs, 1, nidx, &leading, "scatter");
  auto& shape = updates.shape();
  Shape slice(shape.begin() + idx_ndim, shape.end());
  std::array<Strides, 2> strides{
      out.strides(), Strides(us.begin() + idx_ndim, us.end())};
  vulkan::collapse(slice, strides);
  int slice_ndim = vulkan::IndexTuples::small_ndim(slice.size(), "scatter");

  int ratio = 1;
  if (!reduce) {
    vulkan::Alignment alignment(out.itemsize());
    alignment.operand(strides[0]);
    alignment.operand(strides[1]);
    alignment.elements(slice.back());
    alignment.bytes(updates.offset());
    alignment.bytes(out.offset());
    for (int axis : axes_) {
      alignment.elements(out.strides(axis));
    }
    for (auto s : tuples.strides.back()) {
      alignment.elements(s);
    }
    ratio = alignment.word() / static_cast<int>(out.itemsize());
    slice.back() /= ratio;
  }
  if (ratio > 1) {
    for (auto& s : strides) {
      for (size_t d = 0; d + 1 < s.size(); ++d) {
        s[d] /= ratio;
      }
    }
    for (auto& s : tuples.strides.back()) {
      s /= ratio;
    }
  }
  uint64_t count = updates.size() / ratio;
  bool wide = count > std::numeric_limits<uint32_t>::max() / 2;

  auto args = vulkan::tuple_args(
      count, out, axes_, ratio, tuples, slice, strides, slice_ndim);
  auto index_type = nidx ? vulkan::type_of(inputs[1]) : vulkan::Type::u32;
  auto& k = reduce ? enc.kernel(
                         "scatter",
                         {{"T", vulkan::type_of(out)},
                          {"REDUCE", reduce},
                          {"SUM", int(reduce_type_ == Sum)},
                          {"I", index_type},
                          {"NIDX", nidx},
                          {"I_NDIM", tuples.ndim},
                          {"S_NDIM", slice_ndim},
                          {"WIDE", int(wide)}})
                   : enc.kernel(
                         "scatter",
                         {{"WORD", ratio * int(out.itemsize())},
                          {"I", index_type},
                          {"NIDX", nidx},
                          {"I_NDIM", tuples.ndim},
                          {"S_NDIM", slice_ndim},
                          {"WIDE", int(wide)}});
  std::vector<vulkan::Operand> reads;
  reads.emplace_back(updates);
  for (size_t i = 0; i < nidx; ++i) {
    reads.emplace_back(inputs[i + 1]);
  }
  vulkan::dispatch(enc, k, reads, out, args, vulkan::linear(count, 256));
}

void ScatterAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& index = inputs[1];
  auto& updates = inputs[2];
  const char* reduce = combine_function<ScatterAxis>(reduce_type_);
  check_dtype("scatter_axis", out, reduce_type_ == Sum, !reduce);
  copy_input(inputs[0], out, stream());
  if (updates.size() == 0 || out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());

  vulkan::AxisArgs<3> block(
      index, out, axis_, {&updates, &index, &out}, "scatter_axis");
  bool wide = index.size() > std::numeric_limits<uint32_t>::max() / 2;
  auto& k = reduce ? enc.kernel(
                         "scatter_axis",
                         {{"T", vulkan::type_of(out)},
                          {"REDUCE", reduce},
                          {"SUM", 1},
                          {"I", vulkan::type_of(index)},
                          {"NDIM", block.ndim},
                          {"WIDE", int(wide)}})
                   : enc.kernel(
                         "scatter_axis",
                         {{"WORD", out.itemsize()},
                          {"I", vulkan::type_of(index)},
                          {"NDIM", block.ndim},
                          {"WIDE", int(wide)}});
  const vulkan::Operand reads[] = {updates, index};
  auto grid = vulkan::linear(index.size(), 256);
  vulkan::dispatch(enc, k, reads, out, block.args, grid);
}

} // namespace mlx::core

#include <algorithm>
#include <array>

#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/strided.h"

namespace mlx::core {

using namespace vulkan;

namespace {

struct ArgReduceParams { // mirrors kernels/arg_reduce.comp, NDIM=1
  uint64_t outputs, extent, chunk, splits;
  int64_t axis_stride, kept_stride;
};

struct ArgReduceNestParams { // NDIM=16
  uint64_t outputs, extent, chunk, splits;
  int64_t axis_stride, ndim;
  int32_t shape[max_ndim] = {};
  int64_t strides[max_ndim] = {};
};

Type accumulator(Dtype dtype) {
  Type t = type_of(dtype);
  if (issubdtype(dtype, floating)) {
    return Type::f32;
  }
  if (dtype == complex64 || size_of(t) == 8) {
    return t;
  }
  return issubdtype(dtype, signedinteger) ? Type::i32 : Type::u32;
}

} // namespace

void ArgReduce::eval_gpu(const std::vector<array>& inputs, array& out) {
  const array& in = inputs[0];
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = encoder(stream());
  Shape shape;
  std::array<Strides, 1> strides;
  for (int d = 0; d < in.ndim(); ++d) {
    if (d != axis_) {
      shape.push_back(in.shape(d));
      strides[0].push_back(in.strides()[d]);
    }
  }
  collapse(shape, strides);
  uint64_t outputs = out.size();
  uint64_t extent = in.shape(axis_);
  bool simple = shape.size() == 1;

  // With lanes = 1, neighbouring outputs are read together.
  bool columns = simple && strides[0][0] == 1 && in.strides()[axis_] != 1 &&
      outputs >= 4096;
  int lanes = extent <= 16 || columns                     ? 1
      : extent <= 512 && (outputs >= 64 || extent <= 128) ? 32
                                                          : 256;
  uint64_t splits = 1, chunk = extent;
  if (lanes == 256 && outputs < 128 && extent >= 16384) {
    splits = std::min<uint64_t>((extent + 4095) / 4096, 1024 / outputs);
    chunk = (extent + splits - 1) / splits;
    splits = (extent + chunk - 1) / chunk;
  }
  auto kernel = [&](int lanes, int parts) -> const Kernel& {
    return enc.kernel(
        "arg_reduce",
        {{"T", type_of(in)},
         {"Acc", accumulator(in.dtype())},
         {"OP", reduce_type_ == ArgReduce::ArgMin ? "ArgMin" : "ArgMax"},
         {"LANES", lanes},
         {"NDIM", simple ? 1 : max_ndim},
         {"PARTS", parts},
         {needs_large_index(in) || needs_large_index(out) ? "LARGE" : "SMALL",
          1}});
  };
  auto run = [&](auto params) {
    params.outputs = outputs;
    params.extent = extent;
    params.chunk = chunk;
    params.splits = splits;
    params.axis_stride = in.strides()[axis_];
    if (splits == 1) {
      Grid grid = linear(outputs, 256 / lanes);
      enc.dispatch(kernel(lanes, 0), {in}, {out}, params, grid);
      return;
    }
    array found = enc.temporary(
        {static_cast<int>(splits), static_cast<int>(outputs)}, uint32);
    enc.dispatch(
        kernel(lanes, 0), {in}, {found}, params, linear(outputs * splits));
    params.extent = splits;
    params.chunk = splits;
    params.splits = 1;
    enc.dispatch(kernel(32, 1), {in, found}, {out}, params, linear(outputs, 8));
  };
  if (simple) {
    ArgReduceParams params{};
    params.kept_stride = strides[0][0];
    run(params);
  } else {
    variant_ndim(shape.size(), "arg_reduce"); // throws beyond max_ndim
    ArgReduceNestParams params{};
    params.ndim = shape.size();
    std::copy(shape.begin(), shape.end(), params.shape);
    std::copy(strides[0].begin(), strides[0].end(), params.strides);
    run(params);
  }
}

} // namespace mlx::core

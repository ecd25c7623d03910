#include "mlx/backend/gpu/scan.h"

#include <algorithm>

#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

struct ScanParams { // mirrors kernels/scan.comp
  uint64_t lines, stride, extent, chunk, parts;
};

const char* op_name(Scan::ReduceType type) {
  switch (type) {
    case Scan::Max:
      return "Max";
    case Scan::Min:
      return "Min";
    case Scan::Sum:
      return "Sum";
    case Scan::Prod:
      return "Prod";
    case Scan::LogAddExp:
      return "LogSum";
  }
  return "";
}

// What a scan carries: narrow integers wrap when they are stored.
Dtype accumulator(Scan::ReduceType type, Dtype out) {
  if (issubdtype(out, floating)) {
    return float32;
  }
  if (out == complex64) {
    return out;
  }
  if (type == Scan::LogAddExp) {
    return float32;
  }
  if (out.size() == 8) {
    return out;
  }
  return issubdtype(out, signedinteger) ? int32 : uint32;
}

} // namespace

// `in` is dense in memory (broadcast axes aside) and `out` has its layout.
void scan_gpu_inplace(
    const array& in,
    array& out,
    Scan::ReduceType reduce_type,
    int axis,
    bool reverse,
    bool inclusive,
    const Stream& s) {
  auto& enc = encoder(s);
  uint64_t extent = in.shape(axis);
  // An axis of one item may have any stride.
  uint64_t stride = extent == 1 ? 1 : in.strides()[axis];
  ScanParams p{in.data_size() / extent, stride, extent, extent, 1};
  if (p.lines == 0) {
    return;
  }
  Dtype acc = accumulator(reduce_type, out.dtype());
  auto kernel = [&](Dtype t, Dtype u, bool reverse, bool inclusive, int mode)
      -> const Kernel& {
    return enc.kernel(
        "scan",
        {{"T", type_of(t)},
         {"U", type_of(u)},
         {"Acc", type_of(acc)},
         {"OP", op_name(reduce_type)},
         {"REVERSE", int(reverse)},
         {"INCLUSIVE", int(inclusive)},
         {"MODE", mode}});
  };
  bool many = p.lines >= 4096 && (stride > 1 || extent <= 64);
  if (extent <= 32 || many) {
    auto& k = kernel(in.dtype(), out.dtype(), reverse, inclusive, 3);
    enc.dispatch(k, {in}, {out}, p, linear(p.lines, 256));
    return;
  }
  constexpr uint64_t part = 8192;
  if (extent < 4 * part || p.lines >= 128) {
    auto& k = kernel(in.dtype(), out.dtype(), reverse, inclusive, 0);
    enc.dispatch(k, {in}, {out}, p, linear(p.lines));
    return;
  }
  p.parts = std::min<uint64_t>((extent + part - 1) / part, 1024);
  p.chunk = ((extent + p.parts - 1) / p.parts + 1023) / 1024 * 1024;
  p.parts = (extent + p.chunk - 1) / p.chunk;
  array partial = enc.temporary(
      {static_cast<int>(p.lines), static_cast<int>(p.parts)}, acc);
  Grid jobs = linear(p.lines * p.parts);
  enc.dispatch(
      kernel(in.dtype(), out.dtype(), reverse, inclusive, 1),
      {in},
      {partial},
      p,
      jobs);
  ScanParams outer{p.lines, 1, p.parts, p.parts, 1};
  enc.dispatch(
      kernel(acc, acc, false, false, 0),
      {partial},
      {partial},
      outer,
      linear(p.lines));
  enc.dispatch(
      kernel(in.dtype(), out.dtype(), reverse, inclusive, 2),
      {in, partial},
      {out},
      p,
      jobs);
}

void Scan::eval_gpu(const std::vector<array>& inputs, array& out) {
  const array& in = inputs[0];
  if (out.size() == 0) {
    out.set_data(allocator::malloc(0));
    return;
  }
  auto& enc = encoder(stream());
  bool walkable = in.flags().contiguous &&
      (in.shape(axis_) == 1 || in.strides()[axis_] > 0);
  for (auto s : in.strides()) {
    walkable = walkable && s >= 0;
  }
  if (!walkable) {
    array copy = contiguous_copy_gpu(in, stream());
    enc.add_temporary(copy);
    out.set_data(allocator::malloc(out.nbytes()));
    scan_gpu_inplace(
        copy, out, reduce_type_, axis_, reverse_, inclusive_, stream());
    return;
  }
  if (in.is_donatable() && in.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(
        allocator::malloc(in.data_size() * out.itemsize()),
        in.data_size(),
        in.strides(),
        in.flags());
  }
  scan_gpu_inplace(
      in, out, reduce_type_, axis_, reverse_, inclusive_, stream());
}

} // namespace mlx::core

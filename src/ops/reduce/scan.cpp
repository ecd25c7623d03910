#include "mlx/backend/gpu/scan.h"

#include "mlx/backend/gpu/copy.h"
#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/reduce/plan.h"
#include "ops/rows/rows.h"

namespace mlx::core {

using namespace vulkan;

namespace {

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

// The type of a scan's carry; narrow integers wrap when they are stored.
Type carried(Scan::ReduceType type, Dtype out) {
  return type == Scan::LogAddExp && out != complex64 && out != float64
      ? Type::f32
      : accumulator(type_of(out));
}

} // namespace

// `in` is dense except for broadcast axes, and `out` has its layout.
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
  auto [lanes, args] =
      plan_scan(enc.target(), in.data_size() / extent, stride, extent);
  if (args.lines == 0) {
    return;
  }
  bool fours = lanes > 1 && stride == 1 && extent % 4 == 0 && by_fours(in) &&
      by_fours(out);
  ScanVariant variant{
      .T = type_of(in),
      .U = type_of(out),
      .Acc = carried(reduce_type, out.dtype()),
      .OP = op_name(reduce_type),
      .REVERSE = reverse,
      .INCLUSIVE = inclusive,
      .STEP = "Lines",
      .FOURS = fours,
      .LANES = lanes};
  Grid groups = row_grid(args.lines * args.parts, lanes);
  if (args.parts == 1) {
    enc.dispatch(variant, {in}, {out}, args, groups);
    return;
  }
  Type acc = variant.Acc;
  array totals = enc.temporary( // of type acc
      {static_cast<int>(args.lines), static_cast<int>(args.parts)},
      size_of(acc) == 8 ? uint64 : uint32);
  variant.STEP = "Totals";
  variant.FOURS = false;
  enc.dispatch(variant, {in}, {totals}, args, groups);
  ScanVariant exclusive{
      .T = acc,
      .U = acc,
      .Acc = acc,
      .OP = variant.OP,
      .REVERSE = false,
      .INCLUSIVE = false,
      .STEP = "Lines"};
  enc.dispatch(
      exclusive,
      {totals},
      {totals},
      ScanArgs{args.lines, 1, args.parts, args.parts, 1},
      linear(args.lines));
  variant.STEP = "Parts";
  variant.FOURS = fours;
  enc.dispatch(variant, {in, totals}, {out}, args, groups);
}

void Scan::eval_gpu(const std::vector<array>& inputs, array& out) {
  const array& in = inputs[0];
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
  alloc_like(in, out, in.is_donatable());
  scan_gpu_inplace(
      in, out, reduce_type_, axis_, reverse_, inclusive_, stream());
}

} // namespace mlx::core

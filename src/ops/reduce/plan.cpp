#include "ops/reduce/plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

namespace mlx::core::vulkan {

namespace {

constexpr uint64_t group_size = 256;

// Lanes for each of `outputs` reductions whose outputs share no loads.
int team_lanes(uint64_t outputs, uint64_t extent) {
  return extent <= 16                                     ? 1
      : extent <= 512 && (outputs >= 64 || extent <= 128) ? 32
                                                          : 256;
}

} // namespace

Type accumulator(Type t) {
  auto& info = info_of(t);
  return info.size >= 4          ? t
      : info.kind == Kind::INT   ? Type::i32
      : info.kind == Kind::FLOAT ? Type::f32
                                 : Type::u32;
}

ReducePlan plan_reduce(const ReduceProblem& p) {
  // The bits of a row's float sum must not depend on the number of rows, so
  // lanes and parts follow from the row's extent if it is read by fours.
  // Columns: adjacent outputs are read together, which is faster.
  bool columns = std::abs(p.kept_stride) < std::abs(p.reduced_stride) &&
      p.kept_stride != 0 && p.kept_extent >= 16;
  int lanes =
      columns ? (p.extent <= 16 ? 1 : 8) : team_lanes(p.outputs, p.extent);
  std::string_view op = p.op;
  bool truth = op == "And" || op == "Or";
  Type acc = truth ? Type::u32 : accumulator(p.out);
  bool vec = acc == Type::f32 && p.aligned && p.even_reduced;
  if (columns) {
    // With four outputs per invocation, few outputs would leave cores idle; few
    // elements are all in flight.
    bool busy = p.outputs >= 512 && p.outputs * p.extent >= uint64_t(1) << 24;
    vec = vec && p.kept_stride == 1 && p.kept_extent % 4 == 0 &&
        p.reduced_stride % 4 == 0 && p.kept_fours &&
        (p.extent <= 32 || (busy && p.even));
  } else {
    vec = vec && lanes > 1 && p.reduced_stride == 1 && p.extent % 4 == 0 &&
        p.kept_fours && (p.kept_extent == 1 || p.kept_stride % 4 == 0) &&
        p.extent < (uint64_t(1) << 31);
    lanes = vec && p.extent <= 512 ? 32 : lanes;
    // Sums of other lanes would have other bits.
    bool sums = op == "Sum" || op == "Prod";
    lanes = p.extent <= 64 && !sums ? std::min(lanes, 8) : lanes;
  }
  // Few outputs of many elements are reduced in parallel parts, then the parts.
  // Columns need more parts, because an invocation has few loads in flight.
  uint64_t team_outputs = columns && vec ? 4 : 1;
  uint64_t groups = ceil_div(p.outputs, team_outputs * group_size / lanes);
  uint64_t part = columns ? 512 : 8192;
  uint64_t enough = columns ? 1024 : 256, most = columns ? 4096 : 1024;
  uint64_t splits = 1, chunk = p.extent;
  if (groups < enough && p.extent >= 2 * part) {
    splits = std::min(ceil_div(p.extent, part), columns ? most / groups : most);
    chunk = ceil_div(p.extent, splits);
    chunk = columns ? chunk : ceil_div(chunk, 1024) * 1024;
    splits = ceil_div(p.extent, chunk);
  }

  Type to = splits > 1 && acc == Type::f32 ? Type::f32 : p.out;
  ReduceParts parts{p.outputs, p.extent, chunk, splits};
  auto filled = [&](auto v) {
    v.T = p.in;
    v.U = to;
    v.Acc = acc;
    v.OP = p.op;
    v.LANES = lanes;
    v.NDIM = p.even ? 1 : max_reduce_ndim;
    v.VEC = vec;
    v.LARGE = p.large;
    return v;
  };
  if (columns) {
    return {filled(ReduceColVariant{}), parts, groups * splits};
  }
  uint64_t row_groups = ceil_div(p.outputs * splits, group_size / lanes);
  return {filled(ReduceVariant{}), parts, row_groups};
}

ArgReducePlan plan_arg_reduce(const ArgReduceProblem& p) {
  // With lanes = 1, neighbouring outputs are read together.
  bool columns =
      p.even && p.kept_stride == 1 && p.axis_stride != 1 && p.outputs >= 4096;
  int lanes = columns ? 1 : team_lanes(p.outputs, p.extent);
  if (p.outputs >= 64 && p.extent <= 128) {
    lanes = std::min(lanes, 8);
  }
  uint64_t splits = 1, chunk = p.extent;
  if (lanes == 256 && p.outputs < 128 && p.extent >= 16384) {
    splits = std::min(ceil_div(p.extent, 4096), 1024 / p.outputs);
    chunk = ceil_div(p.extent, splits);
    splits = ceil_div(p.extent, chunk);
  }
  ArgReduceVariant variant{
      .T = p.in,
      .Acc = accumulator(p.in),
      .OP = p.op,
      .LANES = lanes,
      .NDIM = p.even ? 1 : max_reduce_ndim,
      .JOIN = false,
      .LARGE = p.large};
  ReduceParts parts{p.outputs, p.extent, chunk, splits};
  return {variant, parts, ceil_div(p.outputs * splits, group_size / lanes)};
}

ArgReduceVariant ArgReducePlan::join() const {
  ArgReduceVariant v = variant;
  v.LANES = 32;
  v.JOIN = true;
  return v;
}

uint64_t ArgReducePlan::join_groups() const {
  return ceil_div(parts.outputs, group_size / 32);
}

ScanPlan
plan_scan(const Target& gpu, uint64_t lines, uint64_t stride, uint64_t extent) {
  bool alone = extent <= 32 ||
      (lines >= 4096 && (stride > 1 || extent <= gpu.policy.scan_alone));
  uint64_t fours = std::min<uint64_t>(ceil_div(extent, 4), 256);
  ScanPlan plan{
      alone ? 1 : static_cast<int>(std::bit_ceil(fours)),
      {lines, stride, extent, extent, 1}};
  constexpr uint64_t part = 8192;
  if (!alone && extent >= 4 * part && lines < 128) {
    uint64_t parts = std::min<uint64_t>(ceil_div(extent, part), 1024);
    plan.args.chunk = ceil_div(ceil_div(extent, parts), 1024) * 1024;
    plan.args.parts = ceil_div(extent, plan.args.chunk);
  }
  return plan;
}

} // namespace mlx::core::vulkan

// Choice of kernels and splits of reductions and scans: pure functions of types
// and shapes, free of MLX.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/arg_reduce.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

constexpr int max_reduce_ndim = 16;

// Type of a kernel's arithmetic: narrow types are widened to 32 bits.
Type accumulator(Type t);

struct ReduceProblem {
  const char* op; // a function of reduce_ops.glsl
  Type in, out;
  uint64_t outputs = 1, extent = 1;
  // Innermost kept and reduced axes.
  uint64_t kept_extent = 1;
  int64_t kept_stride = 0, reduced_stride = 0;
  bool even = true; // there are no other axes
  bool even_reduced = true; // there are no other reduced axes
  bool kept_fours = true; // so are outer kept strides multiples of four
  bool aligned = false; // the first item starts at a multiple of four
  bool large = false;
};

struct ReducePlan {
  std::variant<ReduceVariant, ReduceColVariant> variant;
  ReduceParts parts; // with several parts, the results are reduced again
  uint64_t groups;
};
ReducePlan plan_reduce(const ReduceProblem& p);

struct ArgReduceProblem {
  const char* op;
  Type in;
  uint64_t outputs = 1, extent = 1;
  int64_t axis_stride = 1, kept_stride = 0;
  bool even = true; // there is one kept axis
  bool large = false;
};

struct ArgReducePlan {
  ArgReduceVariant variant;
  ReduceParts parts;
  uint64_t groups;
  // Variant that reduces the results of several parts.
  ArgReduceVariant join() const;
  uint64_t join_groups() const;
};
ArgReducePlan plan_arg_reduce(const ArgReduceProblem& p);

// Scan of lines with items `stride` apart by teams of `lanes`, whole or in
// several parts.
struct ScanPlan {
  int lanes;
  ScanArgs args;
};
ScanPlan
plan_scan(const Target& gpu, uint64_t lines, uint64_t stride, uint64_t extent);

} // namespace mlx::core::vulkan

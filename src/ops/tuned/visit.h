// Plans as their kernel variants: of each kind of problem in the same way.
#pragma once

#include "ops/tuned/plan.h"

namespace mlx::core::vulkan {

// What a plan decides beside the variant.
struct PlanParts {
  uint32_t splits = 1;
  uint64_t length = 0; // k or keys per part; norms: rows per workgroup
  bool other = false;
  bool fits = true; // registers
};

// Calls f(variant, parts); not at all if w is dequantized first: the dense
// product is a problem of its own.
template <typename F>
void visit_plan(const Target& gpu, const QuantShape& s, F f) {
  if (!dequantizes_first(gpu, s)) {
    auto plan = plan_quant(gpu, s);
    PlanParts parts{plan.splits, plan.k_split, plan.sorted};
    std::visit([&](auto& v) { f(v, parts); }, plan.kernel);
  }
}

template <typename F>
void visit_plan(const Target& gpu, const GemmProblem& p, F f) {
  auto plan = plan_gemm(gpu, p);
  PlanParts parts{plan.splits, plan.k_split, plan.transposed};
  std::visit([&](auto& v) { f(v, parts); }, plan.variant);
}

template <typename F>
void visit_plan(const Target& gpu, const NormProblem& p, F f) {
  NormVariant v = plan_norm(gpu, p);
  PlanParts parts;
  f(v, parts);
}

template <typename F>
void visit_plan(const Target& gpu, const AttentionProblem& p, F f) {
  if (!uses_decode(gpu, p)) {
    auto plan = plan_prefill(gpu, p);
    PlanParts parts{1, plan.bq, plan.rest.has_value()};
    std::visit([&](auto& v) { f(v, parts); }, plan.kernel);
    return;
  }
  auto plan = plan_decode(gpu, p, decode_options());
  PlanParts parts{plan.splits, plan.split_keys};
  parts.fits = !p.bits || fits_registers(gpu, plan.kernel);
  f(plan.kernel, parts);
}

} // namespace mlx::core::vulkan

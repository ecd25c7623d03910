// Plans as their kernel variants: of each kind of problem in the same way.
#pragma once

#include "ops/tuned/plan.h"
#include "vk/config.h"

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
void visit_plan(const Caps& caps, const QuantShape& s, F f) {
  auto& c = config();
  auto plan = plan_quant(caps, s, c.test.skinny_rows, c.int8_activations);
  bool dot = std::holds_alternative<QmmDotVariant>(plan.kernel);
  if (dot || !dequantizes_first(caps, s, c.test.dequantize_rows)) {
    PlanParts parts{plan.splits, plan.k_split, plan.sorted};
    std::visit([&](auto& v) { f(v, parts); }, plan.kernel);
  }
}

template <typename F>
void visit_plan(const Caps& caps, const GemmProblem& p, F f) {
  auto plan = plan_gemm(caps, p);
  PlanParts parts{plan.splits, plan.k_split, plan.transposed};
  std::visit([&](auto& v) { f(v, parts); }, plan.variant);
}

template <typename F>
void visit_plan(const Caps& caps, const NormProblem& p, F f) {
  NormVariant v = plan_norm(caps, p);
  PlanParts parts;
  f(v, parts);
}

template <typename F>
void visit_plan(const Caps& caps, const AttentionProblem& p, F f) {
  if (!uses_decode(caps, p)) {
    auto plan = plan_prefill(caps, p, config().test.emulate);
    PlanParts parts{1, plan.bq, plan.rest.has_value()};
    std::visit([&](auto& v) { f(v, parts); }, plan.kernel);
    return;
  }
  auto plan = plan_decode(caps, p, decode_options());
  PlanParts parts{plan.splits, plan.split_keys};
  parts.fits = !p.bits || fits_registers(caps, plan.kernel);
  f(plan.kernel, parts);
}

} // namespace mlx::core::vulkan

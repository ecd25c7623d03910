#include "kernels/attention/ranges.h"
#include "kernels/attention/vjp_delta.h"
#include "kernels/gated_delta_vjp.h"
#include "ops/attention/plan.h"
#include "ops/gated_delta/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

struct Heads {
  uint32_t heads, kv_heads, dim, value_dim;
};
// Qwen3 0.6B, 8B and 30B-A3B, SmolLM2.
constexpr Heads models[] = {
    {16, 8, 128, 128},
    {32, 8, 128, 128},
    {32, 4, 128, 128},
    {9, 3, 64, 64}};

AttentionProblem problem(Type type, const Heads& h, uint32_t queries = 1) {
  return {
      .type = type,
      .heads = h.heads,
      .kv_heads = h.kv_heads,
      .queries = queries,
      .keys = 512,
      .dim = h.dim,
      .value_dim = h.value_dim,
      .alignment = 16};
}

// The kernels of one problem, by its number of queries.
void add_forward(VariantSet& set, const Caps& caps, const AttentionProblem& p) {
  if (uses_decode(caps, p)) {
    set.add(plan_decode(caps, p).kernel);
  } else {
    auto plan = plan_prefill(caps, p);
    std::visit([&](const auto& kernel) { set.add(kernel); }, plan.kernel);
    if (plan.rest) {
      set.add(*plan.rest);
      set.add(RangesVariant{p.type, p.dim, p.value_dim});
    }
  }
}

void add_scores(VariantSet& set, const Caps& caps, const AttentionProblem& p) {
  std::visit(
      [&](const auto& kernel) { set.add(kernel); },
      plan_scores(caps, p).kernel);
  if (auto plan = plan_gradients(caps, p)) {
    set.add(plan->keys);
    set.add(plan->queries);
  }
}

// Masks, sinks and the logarithm's output.
template <typename Add>
void with_options(AttentionProblem p, Add add) {
  for (uint32_t options = 0; options < 24; ++options) {
    AttentionProblem q = p;
    q.mask = options / 8;
    q.causal = options & 1;
    q.sinks = options & 2;
    q.lse = options & 4;
    // A backward pass needs its logarithm; it has no gradient for the rest.
    if (!q.lse || (!q.mask && !q.sinks)) {
      add(q);
    }
  }
}

void add_types(VariantSet& set, const Caps& caps) {
  for (Type t : float_types) {
    for (auto& model : models) {
      for (uint32_t keys : {64u, 512u, 32768u}) {
        AttentionProblem p = problem(t, model);
        p.keys = keys;
        add_forward(set, caps, p);
      }
      for (bool causal : {false, true}) {
        AttentionProblem p = problem(t, model, 512);
        p.causal = causal;
        add_forward(set, caps, p);
        add_scores(set, caps, p);
      }
    }
    AttentionProblem p = problem(t, models[1]);
    p.keys = 100000; // split everywhere
    add_forward(set, caps, p);
    p.keys = 512;
    for (uint32_t alignment : {uint32_t(size_of(t)), 8u}) {
      p.alignment = alignment;
      p.queries = 1;
      add_forward(set, caps, p);
      p.queries = 512;
      add_forward(set, caps, p);
      add_scores(set, caps, p);
    }
    set.add(DeltaVariant{t, false});
    set.add(DeltaVariant{t, true});
    // The gated delta rule of Qwen3-Next, also as mlx-lm has it.
    for (uint32_t steps : {1u, 2048u}) {
      GatedDeltaProblem p{.type = t, .gate_type = t, .steps = steps};
      set.add(plan_gated_delta(caps, p));
      p.aligned = false;
      set.add(plan_gated_delta(caps, p));
    }
    for (bool vec : {false, true}) {
      set.add(GatedDeltaVjpVariant{t, 128, 8, 1, vec});
      set.add(GatedDeltaVjpVariant{t, 64, 4, 64, vec});
    }
    set.add(GatedDeltaSumsVariant{t, 128, 1});
    set.add(GatedDeltaSumsVariant{t, 64, 64});
    GatedDeltaProblem counted{.type = t, .steps = 2048, .counted = true};
    set.add(plan_gated_delta(caps, counted));
    counted.vector_gates = true; // Kimi Linear's
    set.add(plan_gated_delta(caps, counted));
  }
}

// Of quantized caches.
void add_quantized(VariantSet& set, const Caps& caps) {
  for (Type t : float_types) {
    for (uint32_t bits : {4u, 8u}) {
      for (auto& model : models) {
        for (uint32_t keys : {64u, 512u, 32768u}) {
          AttentionProblem p = problem(t, model);
          p.keys = keys;
          p.bits = bits;
          p.group = 64;
          add_forward(set, caps, p);
        }
      }
      for (uint32_t options = 0; options < 6; ++options) {
        AttentionProblem p = problem(t, {8, 1, 128, 128}, 1 + options % 2 * 3);
        p.mask = options / 2;
        p.keys = 100000;
        p.bits = bits;
        p.group = options % 2 ? 32 : 128;
        add_forward(set, caps, p);
      }
    }
  }
  for (uint32_t dim : {96u, 256u, 512u}) {
    AttentionProblem p = problem(Type::bf16, {8, 2, dim, dim});
    p.bits = 8;
    p.group = 32;
    if (fits_registers(caps, plan_decode(caps, p).kernel)) {
      add_forward(set, caps, p);
    }
  }
}

} // namespace

void add_attention_variants(VariantSet& set, const Caps& caps) {
  add_types(set, caps);
  add_quantized(set, caps);
  auto add = [&](auto& p) { add_forward(set, caps, p); };
  with_options(problem(Type::f16, {8, 4, 80, 80}, 4), add);
  with_options(problem(Type::f16, {8, 4, 80, 80}, 512), add);
  // With splits; sinks and the logarithm are the merge's then.
  AttentionProblem split = problem(Type::bf16, {64, 8, 64, 64});
  split.keys = 100000;
  with_options(split, add);
  for (int options = 0; options < 6; ++options) {
    AttentionProblem p = problem(Type::bf16, {8, 8, 80, 80}, 512);
    p.mask = options / 2;
    p.causal = options & 1;
    add_scores(set, caps, p);
  }
  for (Heads heads :
       {Heads{8, 8, 256, 256},
        Heads{8, 4, 256, 256},
        Heads{8, 8, 192, 128},
        Heads{8, 1, 256, 512}}) {
    add_forward(set, caps, problem(Type::bf16, heads));
    add_forward(set, caps, problem(Type::bf16, heads, 512));
  }
  if (caps.software()) {
    // As tests have it.
    auto emulated = plan_gradients(
        asked(caps, {.emulate = true}),
        problem(Type::bf16, {4, 2, 32, 32}, 64));
    set.add(emulated->keys);
    set.add(emulated->queries);
    // Devices may have subgroups of 4.
    set.add(DecodeVariant{
        .T = Type::f16,
        .D = 80,
        .DV = 80,
        .TPK = 4,
        .ROWS = 2,
        .WG = 64,
        .VEC = true});
  }
  for (uint32_t dim : {32u, 64u, 128u, 256u}) {
    GatedDeltaProblem p{
        .steps = 2048, .key_dim = dim, .vector_gates = true, .aligned = false};
    set.add(plan_gated_delta(caps, p));
    p.steps = 1;
    set.add(plan_gated_delta(caps, p));
  }
}

} // namespace mlx::core::vulkan

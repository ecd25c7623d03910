#include <array>

#include "kernels/quant/convert_fp8.h"
#include "kernels/quant/expert_slots.h"
#include "kernels/quant/half_rows.h"
#include "kernels/quant/quantize.h"
#include "ops/quant/plan.h"
#include "ops/rows/plan.h"
#include "runtime/rewrite_variants.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

const QuantFormat usual = quant_modes[0].format(4, 64);

// Calls f(format) for every format.
template <typename F>
void for_each_format(F f) {
  for (auto& mode : quant_modes) {
    for (const int* bits = mode.bits; *bits; ++bits) {
      for (const int* group = mode.groups; *group; ++group) {
        f(mode.format(*bits, *group));
      }
    }
  }
}

// Whether there is something beside codes and scales.
std::vector<bool> sides(const QuantFormat& f) {
  return f.scale == SCALE_E4M3 ? std::vector{false, true} : std::vector{f.bias};
}

class Products {
 public:
  Products(VariantSet& set, const Caps& caps) : set_(set), target_(caps) {}

  void add(QuantShape s) {
    auto plan = plan_quant(target_, s);
    std::visit([&](auto& v) { set_.add(v); }, plan.kernel);
    auto* codes = std::get_if<QmmCoopmatVariant>(&plan.kernel);
    if (codes && codes->units.halves) {
      set_.add(HalfRowsVariant{codes->T, codes->GROUP});
    }
  }
  // As tests have it on software devices.
  void add_emulated(QuantShape s) {
    auto plan = plan_quant(asked(target_.caps, {.skinny_rows = 5}), s);
    if (auto* v = std::get_if<QmmTallVariant>(&plan.kernel)) {
      set_.add(*v);
    }
    auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel);
    if (v && v->EMULATED) {
      set_.add(*v);
      if (!v->SORTED) {
        join(*v);
      }
    }
  }
  // With x rounded to bytes: where it is for speed, and as tests have it.
  void add_dot(QuantShape s) {
    for (int int8 : {1, 2, 3}) {
      auto plan = plan_quant(asked(target_.caps, {}, int8), s);
      auto* v = std::get_if<QmmDotVariant>(&plan.kernel);
      if (v && (int8 == 1 || target_.caps.software())) {
        set_.add(*v);
      }
    }
  }
  // With what rewrites make of it: all forms, or the nth.
  void add_joined(QuantShape s, int nth = -1) {
    add(s);
    auto plan = plan_quant(target_, s);
    auto* f = std::get_if<QmmFragmentsVariant>(&plan.kernel);
    if (f && !f->SORTED) {
      join(*f);
    } else if (auto* v = std::get_if<QmvVariant>(&plan.kernel)) {
      const FusedQmvVariant forms[] = {
          fused_matvec(*v, false),
          fused_matvec(*v, true),
          gated_matvec(*v, GATE_SILU)};
      auto join = [&](const FusedQmvVariant& form) {
        if (fits_registers(target_.policy, form) &&
            fits_shared_memory(target_.caps, form)) {
          set_.add(form);
        }
      };
      for (int i = 0; i < 3; ++i) {
        if (nth < 0 || nth % 3 == i) {
          join(forms[i]);
        }
        bool norms = s.m == 1 && s.aligned &&
            s.k * size_of(s.common.T) <= most_normed_bytes;
        if (norms && (nth < 0 || nth % 3 != i)) {
          int lanes = row_team(s.k).lanes;
          join(normed_matvec(forms[i], s.k, lanes));
        }
      }
    }
  }
  // Rows of so many experts each, and what rewrites make of them.
  void add_experts(QuantShape s, uint32_t experts) {
    auto plan = plan_quant(target_, s);
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    if (!v || s.common.BATCH != BATCH_GATHER) {
      return;
    }
    for (auto& form :
         {gated_experts(*v, GATE_SILU), mixed_experts(*v, experts)}) {
      if (fits_registers(target_.policy, form)) {
        set_.add(form);
      }
    }
  }
  static QuantShape
  linear(ProductVariant common, uint32_t m, uint32_t n, uint32_t k) {
    return {.common = common, .m = m, .n = n, .k = k};
  }
  void add_transposed(QuantShape s) {
    s.transpose = !s.transpose;
    add(s);
  }

 private:
  // With what rewrites make of it.
  void join(const QmmFragmentsVariant& v) {
    for (bool several : {false, true}) {
      auto form = fused_fragments(v, several);
      if (fits_registers(target_.policy, form)) {
        set_.add(form);
      }
    }
    auto form = gated_fragments(v, GATE_SILU);
    if (form && fits_registers(target_.policy, *form)) {
      set_.add(*form);
    }
  }

  VariantSet& set_;
  Target target_;
};

// Layers with outputs enough for any device, and with few.
void add_usual(Products& p) {
  ProductVariant model{{Type::bf16, usual, true}, BATCH_ONE};
  for (uint32_t m : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 96u, 128u, 512u, 4096u}) {
    p.add_joined(p.linear(model, m, 12288, 4096));
    p.add_joined(p.linear(model, m, 256, 4096), m);
  }
  p.add_joined(p.linear(model, 1, 256, 1024));
  p.add_emulated(p.linear(model, 5, 256, 1024));
  p.add_emulated(p.linear(model, 70, 256, 128));
  p.add_emulated(p.linear(model, 70, 256, 1024));
  p.add(p.linear(model, 32, 256, 1152));
  p.add(p.linear(model, 64, 151936, 4096));
  p.add(p.linear(model, 100, 1024, 3072));
  for (Type t : float_types) {
    ProductVariant common{{t, usual, true}, BATCH_ONE};
    for (uint32_t m : {1u, 4u, 512u}) {
      auto s = p.linear(common, m, 12288, 4096);
      p.add_joined(s);
      if (m == 512) {
        p.add_dot(s);
        p.add_dot(p.linear(common, 16, 12288, 4096));
      }
      if (m != 4) {
        p.add_transposed(s);
        s.aligned = s.x_aligned = false;
        p.add(s);
      }
    }
  }
}

// Experts, 8 of 128 for each token: one token and a prompt, sorted or not.
void add_batches(Products& p, const ProductVariant& common) {
  auto s = p.linear(common, 1, 12288, 4096);
  s.batch = 8;
  s.matrices = 128;
  p.add(s);
  p.add_experts(s, 8);
  p.add_transposed(s);
  s.m = 100;
  p.add(s);
  if (common.BATCH == BATCH_STACK) {
    return;
  }
  for (auto [n, k, experts] :
       {std::array{768u, 2048u, 8u}, {2048u, 768u, 8u}, {2880u, 2880u, 4u}}) {
    s = p.linear(common, 1, n, k);
    s.batch = experts;
    s.matrices = 128;
    p.add(s);
    p.add_experts(s, experts);
  }
  s = p.linear(common, 1, 768, 2048);
  s.matrices = 128;
  s.sorted = true;
  for (uint32_t tokens : {32, 128, 512, 4096}) {
    s.batch = 8 * tokens;
    p.add(s);
    p.add_transposed(s);
  }
}

void add_quantize(
    VariantSet& set,
    const Caps& caps,
    FormatVariant format,
    bool roundtrip) {
  for (bool vec : {false, true}) {
    set.add(
        QuantizeVariant{format, roundtrip, vec, quantize_lanes(caps, format)});
  }
}

void add_quantization(VariantSet& set, const Caps& caps) {
  int i = 0;
  for_each_format([&](const QuantFormat& f) {
    for (bool side : sides(f)) {
      Type t = float_types[i++ % 3];
      set.add(DequantizeVariant{{t, f, side}});
      add_quantize(set, caps, {t, f, side}, false);
      if (!f.bias) {
        add_quantize(set, caps, {t, f, side}, true);
      }
    }
  });
  for (Type t : float_types) {
    set.add(DequantizeVariant{{t, usual, true}});
    add_quantize(set, caps, {t, usual, true}, false);
    for (bool even_odd : {false, true}) {
      for (bool vec : {false, true}) {
        set.add(PackRowsVariant{t, even_odd, vec});
      }
    }
    set.add(ConvertFp8Variant{.T = t, .TO_FP8 = true});
    set.add(ConvertFp8Variant{.T = t, .TO_FP8 = false});
  }
}

} // namespace

void add_quant_variants(VariantSet& set, const Caps& caps) {
  Products p(set, caps);
  add_usual(p);
  for (int batch : {BATCH_STACK, BATCH_GATHER}) {
    add_batches(p, {{Type::bf16, usual, true}, batch});
  }
  int i = 0;
  for_each_format([&](const QuantFormat& f) {
    // Of affine ones a third: each number of bits, and each group.
    if (f.bias && f.group != quant_modes[0].groups[f.bits % 3]) {
      return;
    }
    for (bool side : sides(f)) {
      ProductVariant common{
          {i++ % 2 ? Type::f16 : Type::bf16, f, side}, BATCH_ONE};
      p.add_joined(p.linear(common, 1, 256, 4096), i);
      p.add_transposed(p.linear(common, 1, 256, 4096));
      p.add(p.linear(common, 128, 24576, 4096));
      p.add_dot(p.linear(common, 128, 24576, 4096));
      if (caps.coopmat(common.T)) {
        for (uint32_t m : {16u, 64u}) {
          p.add(p.linear(common, m, 24576, 4096));
        }
      }
      if (f.bias) {
        p.add(p.linear(common, 8, 12288, 4096));
      } else if (side) {
        add_batches(p, {{Type::bf16, f, side}, BATCH_GATHER});
      }
    }
  });
  add_quantization(set, caps);
  set.add(ExpertSlotsVariant{});
  set.add(CopyExpertsVariant{});
  set.add(AssembleExpertsVariant{});
}

} // namespace mlx::core::vulkan

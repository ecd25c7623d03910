#include "ops/quant/kernel_plans.h"

namespace mlx::core::vulkan {

using namespace quant;

namespace {

using QuantCandidates = Candidates<std::optional<QuantPlan>>;

// qmm_fragments, and with one number changed.
void add_fragments(QuantCandidates& c, const Target& gpu, const Typed& s) {
  auto plan = s.sorted ? plan_sorted_fragments(gpu, s) : plan_fragments(gpu, s);
  auto usual = std::get<QmmFragmentsVariant>(plan.kernel);
  auto add = [&](uint32_t QmmFragmentsVariant::*member, uint32_t number) {
    auto v = usual;
    v.*member = number;
    if (v.WK * v.WN <= 8 && s.k % (128 * v.DEPTH) == 0) {
      c.add(
          {"fragments WK={} DEPTH={} AHEAD={}", {v.WK, v.DEPTH, v.AHEAD}},
          [&] { return in_tiles(v, s, v.rows(), v.outputs()); });
    }
  };
  for (uint32_t number : {1, 2, 4, 8}) {
    if (number > 1) {
      add(&QmmFragmentsVariant::WK, number);
    }
    if (number <= 2) {
      add(&QmmFragmentsVariant::DEPTH, number);
      add(&QmmFragmentsVariant::AHEAD, number);
    }
  }
}

// Tiles of qmm_tall that are not mostly empty.
void add_tall(QuantCandidates& c, const Target& gpu, const Typed& s) {
  uint64_t needed = s.sorted ? rows_of_expert(s) : s.m;
  for (bool wide : {false, true}) {
    if (wide && (s.sorted || s.common.BITS != 4)) {
      break;
    }
    for (uint32_t rows = wide ? 96 : 32;
         rows <= tall_rows(s) && rows < needed + 32;
         rows += 32) {
      auto v = tall_variant(gpu, s, rows, wide);
      c.add({"tall {} x {}", {v.BM, v.BN}}, [&] { return in_parts(v, s, 1); });
      if (!s.sorted) {
        c.add({"tall {} x {}, split", {v.BM, v.BN}}, [&] {
          return in_parts(v, s, filling_parts(gpu, s, v));
        });
      }
    }
  }
}

void add_tiles(QuantCandidates& c, const Target& gpu, const Typed& s) {
  if (takes_codes(gpu, s) && !narrow(units_of(gpu, s))) {
    for (auto& t : tiles_of_codes) {
      uint32_t most =
          s.may_split && !s.sorted ? std::clamp(s.k >> 10, 1u, 4u) : 1;
      for (uint32_t parts = 1; parts <= most; parts *= 2) {
        TileParts form{t, parts};
        c.add({"codes {} x {} in {}", {t.bm, t.bn, parts}}, [&] {
          return plan_codes(gpu, s, &form);
        });
      }
    }
  }
  if (s.x_aligned && s.units.lanes) {
    for (auto& t : tiles_of_weights) {
      c.add({"matrices {} x {}", {t.bm, t.bn}}, [&] {
        return plan_weights(gpu, s, t);
      });
    }
  }
  for (bool large : {false, true}) {
    c.add({large ? "large tiles" : "small tiles"}, [&] {
      return plan_tiled(gpu, s, {large, false});
    });
    c.add({large ? "large tiles by fours" : "small tiles by fours"}, [&] {
      return plan_tiled(gpu, s, {large, true});
    });
  }
}

// Whether w, dequantized, has matrix units and fits the memory meant for it.
bool can_dequantize(const Target& gpu, const Typed& s) {
  return (s.units.lanes || s.halves.lanes) && s.common.BATCH == BATCH_ONE &&
      uint64_t(s.n) * s.k * size_of(s.common.T) <=
      uint64_t(gpu.policy.quant.dequantize_mib) << 20;
}

} // namespace

std::vector<Named<std::optional<QuantPlan>>> quant_candidates(
    const Target& gpu,
    const QuantShape& shape,
    const PlanName* wanted) {
  QuantCandidates c(wanted);
  Typed s(gpu, shape);
  bool few = s.m <= 64 && rows_of_expert(s) <= 64;
  if (few && loads_fragments(gpu, s)) {
    add_fragments(c, gpu, s);
  }
  if (loads_tall(gpu, s) && (s.sorted || s.common.BATCH == BATCH_ONE)) {
    add_tall(c, gpu, s);
  }
  if (takes_skinny(gpu, s)) {
    c.add({"skinny"}, [&] { return plan_skinny(gpu, s); });
  }
  if (s.m > 1 || s.sorted) {
    add_tiles(c, gpu, s);
  }
  if (takes_matrices(gpu, s)) {
    for (uint32_t sixteens : {1, 2, 4, 8}) {
      c.add({"vectors on matrices, {} outputs", {16 * sixteens}}, [&] {
        return plan_matrices(gpu, s, sixteens);
      });
    }
  }
  if (takes_dot_row(gpu, s)) {
    c.add({"integers"}, [&] { return plan_dot_row(gpu, s); });
  }
  if (few && s.transpose) {
    auto by = [&](Outputs outputs) {
      return [&, outputs] { return plan_matvec(gpu, s, outputs); };
    };
    c.add({"vectors, few outputs"}, by(Outputs::few));
    if (s.m == 1 || !gpu.policy.serial) {
      c.add({"vectors, many outputs"}, by(Outputs::many));
    }
    c.add({"vectors, few outputs of shared rows"}, by(Outputs::shared));
  } else if (few) {
    c.add({"vectors"}, [&] { return plan_vecmat(gpu, s); });
  }
  if (s.m >= 16 && can_dequantize(gpu, s)) {
    c.add({"dequantized"}, [] { return std::nullopt; });
  }
  return std::move(c.found);
}

} // namespace mlx::core::vulkan

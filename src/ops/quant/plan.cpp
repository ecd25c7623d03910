#include "ops/quant/plan.h"
#include "ops/quant/kernel_plans.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

namespace mlx::core::vulkan {

namespace quant {

// The least of 1, 2, 4 and 8 that is at least m, up to `most`.
uint32_t row_bucket(uint32_t m, uint32_t most) {
  uint32_t rows = 1;
  while (rows < m && rows < most) {
    rows *= 2;
  }
  return rows;
}

// Chooses the largest chunks, of whole words and up to `turns` at once, that
// divide k evenly among the lanes; else smaller ones only if they spare the
// busiest lane a quarter of its items.
void share_k(QmvVariant& v, uint32_t k, uint32_t lanes, uint32_t turns) {
  uint32_t smallest = v.BITS == 4 || v.BITS == 8 ? 8
      : v.BITS == 2 || v.BITS == 6               ? 16
                                                 : 32;
  uint32_t largest = std::min(32, v.GROUP);
  for (v.TURNS = turns; v.TURNS >= 1; v.TURNS /= 2) {
    for (v.CHUNK = largest; v.CHUNK >= std::max(smallest, 16u); v.CHUNK /= 2) {
      if (k % (v.CHUNK * lanes * v.TURNS) == 0) {
        return;
      }
    }
  }
  v.TURNS = 1;
  v.CHUNK = largest;
  auto most = [&](uint32_t chunk) {
    return ceil_div(k, chunk * lanes) * chunk;
  };
  for (uint32_t chunk = largest / 2; chunk >= smallest; chunk /= 2) {
    v.CHUNK = 4 * most(chunk) < 3 * most(v.CHUNK) ? chunk : v.CHUNK;
  }
}

// Whether matrix units compute products of few rows, where they measured faster
// (docs/lab/2026-11-22-matvec.md).
bool takes_matrices(const Target& gpu, const Typed& s) {
  auto& f = s.common;
  bool format = f.CODE == CODE_INTEGER && f.BITS == 4 && s.fragments;
  return format && s.aligned && s.transpose && !s.sorted &&
      f.BATCH != BATCH_GATHER && s.m > 1 &&
      s.m <= gpu.policy.quant.matvec_rows && s.k >= uint32_t(f.GROUP) &&
      gpu.caps.shared_memory >= 32768 && gpu.caps.max_workgroup_size >= 256;
}

QuantPlan
plan_matrices(const Target& gpu, const QuantShape& s, uint32_t sixteens) {
  QmvVariant v{s.common};
  v.use_matrices(gpu.caps.matrix_subgroup());
  v.ROWS = row_bucket(s.m, 8);
  constexpr uint32_t subgroups = 8; // that share k
  v.WG = v.SG * subgroups;
  uint32_t share = ceil_div(s.k / s.common.GROUP, subgroups);
  v.TURNS = std::clamp(share, 1u, 2u);
  // Up to 8 x 16 outputs per workgroup.
  uint32_t groups = gpu.policy.quant.matvec_groups * gpu.cores();
  uint64_t all = s.batch * ceil_div(s.n, 16);
  v.BLOCK = 16 *
      (sixteens ? sixteens : std::clamp<uint64_t>(ceil_div(all, groups), 1, 8));
  return in_tiles(v, s, v.ROWS, v.BLOCK);
}

// Whether a row takes integer dot products (docs/lab/2026-11-26-one-row.md).
bool takes_dot_row(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  auto& f = s.common;
  bool format =
      f.CODE == CODE_INTEGER && f.BITS == 4 && size_of(f.T) == 2 && s.aligned;
  return gpu.policy.dot_row && gpu.caps.integer_dot_product && format &&
      s.transpose && !s.sorted && f.BATCH != BATCH_GATHER && s.m == 1 &&
      s.k >= t.dot_row_k && s.k <= t.most_dot_row_k &&
      QmvVariant::digit_bytes(s.k) <= gpu.caps.shared_memory;
}

// A row by integer dot products: each subgroup has the whole of k for two
// outputs at a time.
QuantPlan plan_dot_row(const Target& gpu, const QuantShape& s) {
  constexpr uint32_t subgroups = 8;
  QmvVariant v{s.common};
  uint32_t lanes = std::max(gpu.policy.lanes, 4u);
  v.INT_DOT = true;
  v.CHUNK = 32;
  v.TURNS = s.k % (2 * v.CHUNK * lanes) == 0 ? 2 : 1;
  v.WG = subgroups * lanes;
  v.ROW_ITEMS = s.k;
  uint64_t full = std::max<uint64_t>(
      gpu.policy.quant.busy_subgroups * uint64_t(gpu.cores()), 1);
  uint64_t outs = s.batch * s.n;
  v.OUTS = outs < full ? 1 : 2;
  // Workgroups with more outputs stage x less often.
  uint64_t passes = outs / (2 * full * v.OUTS);
  v.BLOCK = subgroups * v.OUTS * std::clamp<uint64_t>(passes, 1, 8);
  return in_tiles(v, s, 1, v.BLOCK);
}

QuantPlan plan_matvec(
    const Target& gpu,
    const QuantShape& s,
    std::optional<Outputs> outputs) {
  auto& t = gpu.policy.quant;
  QmvVariant v{s.common};
  v.VEC = s.aligned;
  // Eight rows hold 64 items of x, and a sum, two products and a pointer each.
  // More codes of 2 bits are unpacked at once than of others.
  bool few = gpu.policy.few_registers();
  bool eight =
      gpu.policy.held_values >= 64 + 8 * 5 + 8 && !(few && v.BITS == 2);
  v.ROWS = row_bucket(s.m, eight ? 8 : 4);
  bool one = few && (v.ROWS == 8 || (v.ROWS == 4 && v.BITS == 2));
  v.OUTS = v.ROWS <= 2 ? 4 : one ? 1 : 2;
  uint32_t lanes = std::max(gpu.policy.lanes, 4u);
  v.WG = 4 * lanes;
  if (gpu.policy.serial) {
    // Loads are scalar, so each x serves many weights if that repays compiling.
    bool repays = v.ROWS == 1 && uint64_t(s.n) * s.k >= t.compiled_weights;
    bool large = outputs ? *outputs == Outputs::many : repays;
    v.OUTS = large ? 16 : 4;
    v.WG = large ? 2 * lanes : 4 * lanes;
    v.BLOCK = large ? 8 * v.OUTS : 16 * v.OUTS;
    share_k(v, s.k, lanes, 0); // uneven shares cost nothing here
  } else {
    uint64_t full = t.busy_subgroups * uint64_t(gpu.cores());
    uint64_t outs = s.batch * ceil_div(s.m, v.ROWS) * uint64_t(s.n);
    v.BLOCK = 4 * v.OUTS;
    // Too few subgroups: each takes fewer outputs, and if k is long, workgroups
    // share the rows.
    auto by_size = outs >= full * v.OUTS ? Outputs::many
        : s.k >= t.shared_k * lanes      ? Outputs::shared
                                         : Outputs::few;
    if (auto by = outputs.value_or(by_size); by != Outputs::many) {
      v.OUTS = v.ROWS == 1 && outs < full ? 1 : std::min(v.OUTS, 2u);
      v.BLOCK = 4 * v.OUTS;
      if (by == Outputs::shared) {
        v.WHOLE_WORKGROUP = true;
        v.WG = lanes = 2 * lanes;
        v.BLOCK = v.OUTS;
      }
    }
    // Two chunks at once fit the registers for one row only.
    share_k(v, s.k, lanes, v.ROWS == 1 && !gpu.policy.few_registers() ? 2 : 1);
  }
  return {
      .kernel = v,
      .m_tiles = ceil_div(s.m, v.ROWS),
      .n_tiles = ceil_div(s.n, v.BLOCK),
      .why =
          v.VEC ? "" : "rows of x and w must start at multiples of 16 bytes"};
}

QuantPlan plan_vecmat(const Target& gpu, const QuantShape& s) {
  QvmVariant v{s.common};
  v.ROWS = row_bucket(s.m, 4);
  v.TY = gpu.policy.vecmat_lanes;
  return {
      .kernel = v,
      .m_tiles = ceil_div(s.m, v.ROWS),
      .n_tiles = ceil_div(s.n, 8 * v.TX)};
}

// Returns whether gemm/rows_skinny is used (docs/lab/2026-11-26-rows.md). Small
// groups slow it down more than rows of x do, as it scales each one's product.
bool takes_skinny(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  // RADV spills with more rows on gfx1151 and gfx1100.
  uint32_t full = gpu.policy.timed_tiles ? 64 : 32;
  uint32_t most = s.common.GROUP >= 64 ? full
      : s.common.GROUP == 32           ? std::min(t.small_group_rows, full)
                                       : 0;
  return s.m >= t.few_rows && s.m <= most && s.transpose && !s.sorted &&
      s.aligned && s.k % 32 == 0 && s.usual &&
      gpu.caps.matrix_subgroup() == 32 && gpu.caps.shared_memory >= 32768;
}

// Whether lanes load codes into their own elements of matrices: if the layout
// is known, in the measured formats.
bool loads_codes(const Target& gpu, const Typed& s) {
  const ProductVariant& v = s.common;
  bool can = gpu.policy.emulates_products ? v.T != Type::f32 : s.fragments;
  return can && gpu.policy.fragment_codes && s.transpose && s.aligned &&
      s.sides_aligned && s.k % 128 == 0 && v.SIDE == SIDE_BIASES &&
      v.GROUP >= 64 && gpu.caps.shared_memory >= 32768;
}
// qmm_fragments takes codes of four bits, qmm_tall bytes too.
bool loads_fragments(const Target& gpu, const Typed& s) {
  return s.common.BITS == 4 && loads_codes(gpu, s);
}
bool loads_tall(const Target& gpu, const Typed& s) {
  int bits = s.common.BITS;
  return (bits == 4 || bits == 8) && loads_codes(gpu, s);
}

// Whether qmm_fragments is used (docs/lab/2026-11-26-rows.md).
bool takes_fragments(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  uint32_t least = s.n >= t.wide_outputs ? t.wide_rows : t.few_rows;
  bool small = s.m <= t.fragments_rows || uint64_t(s.n) * s.k < t.tall_weights;
  bool faster = s.k >= t.fragments_k && (small || s.common.BATCH != BATCH_ONE);
  return loads_fragments(gpu, s) && s.m >= least && s.m <= 64 && !s.sorted &&
      faster;
}

// Subgroups that share k in qmm_fragments: as many as keep the device busy, and
// each with a span of its own (docs/lab/2026-11-26-rows.md).
uint32_t fragments_parts(
    const Target& gpu,
    const QuantShape& s,
    const QmmFragmentsVariant& v) {
  uint64_t busy = uint64_t(gpu.policy.quant.busy_subgroups) * gpu.cores();
  uint64_t parts = std::min<uint64_t>(
      busy / ceil_div(s.n, v.outputs()), s.k / (128 * v.DEPTH));
  return std::clamp<uint32_t>(
      std::bit_floor(static_cast<uint32_t>(parts)), s.m > 16 ? 4 : 2, 8);
}

QuantPlan plan_fragments(const Target& gpu, const QuantShape& s) {
  QmmFragmentsVariant v{s.common, 32};
  v.FM = 2;
  v.WN = 1;
  v.SPREAD = std::min(v.GROUP, 64);
  v.use_matrices(gpu.policy.emulates_products);
  v.DEPTH = v.AHEAD = 1;
  if (v.EMULATED) {
    v.FM = v.FX = 1; // compiles quickly
    v.WK = 2;
  } else if (s.m > 32) {
    v.FX = v.WN = 2;
    v.WK = 4;
    v.SPREAD = v.GROUP;
  } else {
    bool few = s.m <= 16;
    v.FX = few ? 1 : 2;
    v.AHEAD = few ? 2 : 1;
    v.DEPTH = few || s.k % 256 != 0 ? 1 : 2;
    v.WK = fragments_parts(gpu, s, v);
  }
  return in_tiles(v, s, v.rows(), v.outputs());
}

// Whether qmm_tall is used (docs/lab/2026-11-26-rows.md).
bool takes_tall(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  uint32_t most = s.common.BITS == 4 ? t.most_tall_rows : t.most_tall_byte_rows;
  return loads_tall(gpu, s) && !s.sorted && s.common.BATCH == BATCH_ONE &&
      s.m >= t.least_tall_rows && s.m <= most;
}

QmmTallVariant
tall_variant(const Target& gpu, const QuantShape& s, uint32_t rows, bool wide) {
  QmmTallVariant v{s.common, 32};
  v.use_matrices(gpu.policy.emulates_products);
  v.BM = v.EMULATED ? 32 : rows;
  v.BN = v.EMULATED ? 64 : wide ? 256 : 128;
  v.WM = v.EMULATED ? 2 : 1;
  v.WN = v.EMULATED ? 2 : wide ? 8 : 4;
  v.SORTED = s.sorted;
  return v;
}

// A core holds one workgroup of eight subgroups, or two of four. Weights are
// made of codes in the time of 56 rows, unless one of four subgroups is alone.
HeldTiles held_tall(const QmmTallVariant& v) {
  double all = v.BM + 56;
  return v.WN > 4 ? HeldTiles{1, 0.97 * all, 0}
                  : HeldTiles{2, all, double(v.BM)};
}

uint32_t
filling_parts(const Target& gpu, const QuantShape& s, const QmmTallVariant& v) {
  auto& t = gpu.policy.quant;
  uint64_t groups = uint64_t(ceil_div(s.m, v.BM)) * ceil_div(s.n, v.BN);
  uint64_t room = t.tall_groups * gpu.cores() * held_tall(v).held / 2;
  return static_cast<uint32_t>(
      std::min<uint64_t>(room / groups, s.k / t.split_tall_k));
}

double
tall_time(const Target& gpu, const QuantShape& s, const QuantPlan& plan) {
  auto held = held_tall(std::get<QmmTallVariant>(plan.kernel));
  uint64_t groups = uint64_t(plan.m_tiles) * plan.n_tiles;
  uint32_t part = plan.splits > 1 ? plan.k_split : s.k;
  return held.time(gpu, s.n, s.k, groups, part, double(s.m) * s.n);
}

// Rows are divided evenly among tiles, and k into parts until every core has
// work. For codes of four bits and many rows, the tile with the least expected
// time is taken instead: cores that are idle in the last round cost up to half.
QuantPlan plan_tall(const Target& gpu, const QuantShape& s) {
  uint32_t most_rows = tall_rows(s);
  uint32_t share = ceil_div(s.m, ceil_div(s.m, most_rows));
  auto v = tall_variant(gpu, s, ceil_div(share, 32) * 32);
  bool split = v.EMULATED && s.k > v.depth; // for tests of parts
  QuantPlan best = in_parts(v, s, split ? 2 : filling_parts(gpu, s, v));
  if (v.EMULATED || s.m <= 2 * most_rows || s.common.BITS != 4) {
    return best;
  }
  double least = tall_time(gpu, s, best);
  for (bool wide : {false, true}) { // 64 x 256 is not faster than 96 x 256
    for (uint32_t rows = wide ? 96 : 64; rows <= most_rows; rows += 32) {
      v = tall_variant(gpu, s, rows, wide);
      for (uint32_t parts : {1u, filling_parts(gpu, s, v)}) {
        QuantPlan plan = in_parts(v, s, parts);
        double time = tall_time(gpu, s, plan);
        if (time < least) {
          least = time;
          best = plan;
        }
      }
    }
  }
  return best;
}

QuantPlan plan_skinny(const Target& gpu, const QuantShape& s) {
  QmmSkinnyVariant v{s.common};
  v.DEPTH = s.m <= 16 ? 2 : 1;
  uint64_t groups = s.batch * ceil_div(s.n, 64);
  set_skinny(v, gpu, s.m, groups, groups >= gpu.cores());
  return in_tiles(v, s, v.rows(), v.outputs());
}

// Whether sorted rows take qmm_fragments: an expert has few, but two experts
// have at least one (docs/lab/2026-11-26-rows.md).
bool takes_sorted_fragments(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  return s.sorted && s.batch >= t.sorted_rows && 2 * s.batch >= s.matrices &&
      rows_of_expert(s) <= t.few_expert_rows && loads_fragments(gpu, s);
}

QuantPlan plan_sorted_fragments(const Target& gpu, const QuantShape& s) {
  QmmFragmentsVariant v{s.common, 32};
  v.use_matrices(gpu.policy.emulates_products);
  // Four subgroups share the loads of x.
  v.FM = v.EMULATED ? 1 : 2;
  v.FX = 1;
  v.WN = v.EMULATED ? 1 : 4;
  v.WK = v.EMULATED || s.k >= 2048 ? 2 : 1;
  v.SPREAD = std::min(v.GROUP, 64);
  v.DEPTH = 1;
  v.AHEAD = v.EMULATED ? 1 : 2;
  v.SORTED = true;
  return in_tiles(v, s, v.rows(), v.outputs());
}

// Whether they take qmm_tall: an expert has more rows.
bool takes_sorted_tall(const Target& gpu, const Typed& s) {
  auto& t = gpu.policy.quant;
  return s.sorted && s.batch >= t.sorted_rows &&
      rows_of_expert(s) > t.few_expert_rows && loads_tall(gpu, s);
}

QuantPlan plan_sorted_tall(const Target& gpu, const QuantShape& s) {
  uint64_t rows = std::min<uint64_t>(rows_of_expert(s), tall_rows(s));
  QmmTallVariant v = tall_variant(gpu, s, ceil_div(rows, 32) * 32);
  return in_tiles(v, s, v.BM, v.BN);
}

// The largest tile whose workgroups fill the device; if tiles are not timed,
// the one with the least expected time.
Tile weights_tile(const Target& gpu, const Typed& s) {
  auto& [wide, large, medium, small, flat] = tiles_of_weights;
  uint64_t m = s.sorted ? s.batch : s.m;
  // Number of rows that share a matrix of w.
  uint64_t together = s.sorted ? rows_of_expert(s) : s.m;
  uint64_t batch = s.sorted ? 1 : s.batch;
  auto groups = [&](const Tile& t) {
    return batch * ceil_div(m, t.bm) * uint64_t(ceil_div(s.n, t.bn));
  };
  auto fills = [&](const Tile& t) { return groups(t) >= gpu.cores(); };
  auto& rows = gpu.policy.quant;
  bool tall = together > rows.tall_rows && !narrow(s.units);
  if (together <= (s.sorted ? rows.flat_expert_rows : rows.flat_rows)) {
    return flat;
  }
  if (gpu.policy.timed_tiles) {
    return tall && fills(wide) ? wide
        : tall && fills(large) ? large
        : fills(medium)        ? medium
                               : small;
  }
  // With RADV `wide` needs scratch memory. A smaller tile must save a tenth.
  auto saves = [&](const Tile& t, const Tile& than) {
    return 10 * tile_time(gpu, groups(t), t.bm, t.bn) <
        9 * tile_time(gpu, groups(than), than.bm, than.bn);
  };
  Tile best = tall && !saves(medium, large) ? large : medium;
  return saves(small, best) ? small : best;
}

// Tiles of codes, or of weights.
QmmCoopmatVariant coopmat_variant(
    const Typed& s,
    const MatrixUnits& units,
    const Tile& t,
    bool codes,
    uint32_t depth = 32) {
  QmmCoopmatVariant v{s.common, units, codes, s.transpose};
  v.SORTED = s.sorted;
  set_tile(v, t);
  v.BK = depth;
  return v;
}

QuantPlan plan_weights(const Target& gpu, const Typed& s, const Tile& t) {
  auto v = coopmat_variant(s, s.units, t, false);
  v.FINITE_FIRST = s.common.T == Type::bf16 && gpu.policy.finite_first;
  return in_tiles(on_units(v, v.units, t.bn == 128 ? 256 : 128), s, t.bm, t.bn);
}

MatrixUnits units_of(const Target& gpu, const Typed& s) {
  const ProductVariant& v = s.common;
  bool packs = v.CODE == CODE_INTEGER && gpu.policy.packs_halves &&
      (s.sorted || v.BATCH == BATCH_ONE);
  auto units = s.units;
  return units.lanes || !packs ? units : s.halves;
}

// Whether codes enter the product: of sorted rows; of others if tiles are
// estimated.
bool takes_codes(const Target& gpu, const Typed& s) {
  auto units = units_of(gpu, s);
  bool estimated = !gpu.policy.timed_tiles && !narrow(units);
  bool rows =
      s.sorted || (s.common.BATCH == BATCH_ONE && (estimated || units.halves));
  return rows && s.transpose && s.aligned && s.k % 32 == 0 && units.lanes &&
      gpu.caps.shared_memory >= 32768 && gpu.caps.max_workgroup_size >= 256;
}

// Says whether f16 matrices repay two more dispatches, which pack few rows of
// bf16 and sum parts, of some 8 us (docs/lab/2026-11-28-executed-amd.md).
bool repays_packing(const Target& gpu, const Typed& s) {
  return units_of(gpu, s).halves &&
      uint64_t(s.n) * s.k >= uint64_t(gpu.cores()) << 16;
}

// The tile with the least expected time, in rounds of one tile a core. Staging
// a row or column takes as long as 16 products (instructions of RADV on gfx1151
// and gfx1201). Parts of k cost a start of 64 items, 8 bytes per sum, which
// take as long as 512 products of a core, and a dispatch of some 4 us.
TileParts estimated_tile(const Target& gpu, const QuantShape& s) {
  constexpr double dispatch = 6e6;
  constexpr uint32_t least_k = 1024, most_parts = 8;
  uint64_t used = s.sorted ? std::min<uint64_t>(s.batch, s.matrices) : 1;
  uint64_t rows = s.sorted ? std::max<uint64_t>(s.batch / used, 1) : s.m;
  uint32_t most =
      s.may_split && !s.sorted ? std::clamp(s.k / least_k, 1u, most_parts) : 1;
  TileParts best{};
  double least = std::numeric_limits<double>::infinity();
  for (auto& t : std::span(tiles_of_codes).first(4)) {
    for (uint32_t parts = 1; parts <= most; parts *= 2) {
      uint64_t groups =
          used * ceil_div(rows, t.bm) * ceil_div(s.n, t.bn) * parts;
      double halves = std::max<uint64_t>(2 * ceil_div(groups, gpu.cores()), 3);
      double time = halves * (t.bm * t.bn + 16 * (t.bm + t.bn)) *
          (double(s.k) / parts + 64);
      time +=
          parts > 1 ? dispatch + 1024.0 * parts * rows * s.n / gpu.cores() : 0;
      if (time < least) {
        least = time;
        best = {t, parts};
      }
    }
  }
  return best;
}

// Taller tiles read weights less often if experts fill most of them
// (docs/lab/2026-11-22-experts.md).
QuantPlan plan_codes(const Target& gpu, const Typed& s, const TileParts* form) {
  auto units = units_of(gpu, s);
  auto variant = [&](const Tile& t, uint32_t depth) {
    return coopmat_variant(s, units, t, true, depth);
  };
  auto v = variant({64, 128, 1, 4}, 32);
  uint32_t parts = gpu.policy.code_parts;
  if (form) {
    v = variant(form->tile, form->tile.bm == 128 ? 64 : 32);
    parts = form->parts;
  } else if (narrow(units)) {
    // Each output has two sums: narrow subgroups do not spill with 8 rows of 32
    // columns each (ANV).
    auto flat = on_units(variant({32, 128, 4, 4}, 64), units, 256);
    bool few = units.shape.m == 8;
    bool fits = flat.shared_memory() <= gpu.caps.shared_memory;
    Tile half{64, 64, few ? 8u : 2u, 2};
    v = few && fits ? flat : on_units(variant(half, 32), units, 256);
  } else if (!gpu.policy.timed_tiles) {
    auto best = estimated_tile(gpu, s);
    v = variant(best.tile, 32);
    parts = best.parts;
  } else if (rows_of_expert(s) > gpu.policy.quant.tall_expert_rows) {
    auto tall = variant({128, 128, 2, 4}, 64);
    v = tall.shared_memory() <= gpu.caps.shared_memory ? tall : v;
  }
  return in_parts(v, s, parts);
}

// Whether serial devices use large tiles, since their shared memory is slow.
bool repays_compiling(const Target& gpu, const QuantShape& s, uint64_t m) {
  return gpu.policy.serial && m > 32 &&
      m * s.n * s.k >= gpu.policy.quant.compiled_products;
}

QuantPlan
plan_tiled(const Target& gpu, const Typed& s, const ScalarForm& form) {
  QmmVariant v{s.common, s.transpose, s.sorted};
  uint64_t m = s.sorted ? s.batch : s.m;
  if (gpu.policy.serial) {
    bool large = form.large.value_or(repays_compiling(gpu, s, m));
    v.BM = large ? 64 : 32;
    v.BN = large ? 128 : 64;
    v.TM = large ? 16 : 8;
    v.TN = large ? 16 : 4;
  } else if (!form.large.value_or(m > 32 && !s.sorted)) {
    v.BM = 32;
    v.BN = 64;
  }
  v.VEC = form.fours.value_or(gpu.policy.vector_tiles) && s.transpose &&
      s.x_aligned && s.k % 32 == 0;
  if (v.VEC && v.BM == 64 && !gpu.policy.serial) {
    v.TM = 8;
    auto rounds = [&](uint32_t width) {
      uint64_t groups = s.batch * ceil_div(s.m, v.BM) * ceil_div(s.n, width);
      return ceil_div(groups, gpu.cores());
    };
    // Wider tiles if they fit and take no more rounds of the cores.
    bool fits = gpu.caps.shared_memory >= (64 + 128) * 32 * sizeof(float);
    v.BN = fits && 2 * rounds(128) <= rounds(64) ? 128 : 64;
  }
  QuantPlan plan = in_tiles(v, s, v.BM, v.BN);
  plan.why = s.units.lanes ? "rows of x must start at multiples of 16 bytes"
                           : "no cooperative matrices for x's type";
  return plan;
}

// Whether rows of x are rounded to bytes. The user must request it: 1 if bytes
// multiply fast and matrix units cannot be used, 2 or 3 wherever possible.
bool takes_dot(const Target& gpu, const Typed& s) {
  int int8 = gpu.policy.int8;
  if (int8 == 0) {
    return false;
  }
  constexpr uint64_t most_bytes = 256 << 20; // of x, packed
  const ProductVariant& v = s.common;
  bool matrices = s.x_aligned && s.units.lanes;
  bool fast =
      (gpu.caps.fast_dot_signed || gpu.caps.fast_dot_mixed) && !matrices;
  bool asked = int8 > 1 || (int8 == 1 && fast);
  bool format = v.CODE == CODE_INTEGER || v.CODE == CODE_E2M1;
  return asked && gpu.caps.integer_dot_product && format &&
      v.GROUP % DOT_BLOCK == 0 && v.BATCH == BATCH_ONE && s.transpose &&
      !s.sorted && s.m > 8 && s.k > 0 &&
      uint64_t(s.m) * packed_row_words(s.k) * 4 <= most_bytes;
}

QuantPlan plan_dot(const Target& gpu, const QuantShape& s) {
  int int8 = gpu.policy.int8;
  bool mixed = int8 == 3 || (int8 == 1 && !gpu.caps.fast_dot_signed);
  QmmDotVariant v{s.common, mixed};
  bool serial = gpu.policy.serial;
  if (serial) {
    v.BK = DOT_BLOCK; // compiles quickly
  }
  if (repays_compiling(gpu, s, s.m)) {
    v.BN = 128;
    v.TM = v.TN = 8;
  } else if (serial || s.m <= 32) {
    v.BM = 32;
  }
  return in_tiles(v, s, v.BM, v.BN);
}

} // namespace quant

using namespace quant;

QuantPlan plan_quant(const Target& gpu, const QuantShape& s) {
  Typed shape(gpu, s);
  if (takes_dot(gpu, shape)) {
    return plan_dot(gpu, shape);
  }
  if (takes_dot_row(gpu, shape)) {
    return plan_dot_row(gpu, shape);
  }
  auto& t = gpu.policy.quant;
  bool fragments = takes_fragments(gpu, shape);
  bool wide = fragments && shape.n >= t.wide_outputs;
  if (!wide && takes_matrices(gpu, shape)) {
    return plan_matrices(gpu, shape);
  }
  if (fragments) {
    return plan_fragments(gpu, shape);
  }
  if (takes_tall(gpu, shape)) {
    return plan_tall(gpu, shape);
  }
  if (takes_skinny(gpu, shape)) {
    return plan_skinny(gpu, shape);
  }
  if (takes_sorted_fragments(gpu, shape)) {
    return plan_sorted_fragments(gpu, shape);
  }
  if (takes_sorted_tall(gpu, shape)) {
    return plan_sorted_tall(gpu, shape);
  }
  // Tiles repay for sorted experts if each has several rows.
  bool sorted = takes_codes(gpu, shape);
  uint32_t vectors = sorted && repays_packing(gpu, shape) ? t.packed_vector_rows
      : shape.transpose                                   ? t.vector_rows
                                                          : t.plain_vector_rows;
  bool tiled = shape.sorted ? shape.batch >= t.sorted_rows &&
          rows_of_expert(shape) >= t.sorted_expert_rows
                            : shape.m > vectors;
  if (tiled) {
    if (sorted) {
      return plan_codes(gpu, shape);
    }
    return shape.x_aligned && shape.units.lanes
        ? plan_weights(gpu, shape, weights_tile(gpu, shape))
        : plan_tiled(gpu, shape);
  }
  return shape.transpose ? plan_matvec(gpu, shape) : plan_vecmat(gpu, shape);
}

bool dequantizes_first(const Target& gpu, const QuantShape& shape) {
  Typed s(gpu, shape);
  auto& t = gpu.policy.quant;
  uint32_t rows = gpu.policy.dequantize_rows;
  if (takes_dot(gpu, s) || (!rows && takes_tall(gpu, s))) {
    return false;
  }
  if (!rows) {
    // Only products along k support f16 matrices.
    bool halves = s.halves.lanes;
    bool codes = takes_codes(gpu, s);
    rows = codes && halves        ? 0
        : codes                   ? t.codes_dequantize_rows
        : halves && s.transpose   ? t.halves_dequantize_rows
        : halves || s.units.lanes ? t.dequantize_rows
                                  : 0;
  }
  return rows && s.m >= rows && s.common.BATCH == BATCH_ONE &&
      uint64_t(s.n) * s.k * size_of(s.common.T) <= uint64_t(t.dequantize_mib)
          << 20;
}

uint32_t quantize_lanes(const Target& gpu, const FormatVariant& format) {
  uint32_t lanes = format.CODE == CODE_INTEGER ? ceil_div(format.GROUP, 32) : 1;
  return lanes <= gpu.policy.lanes ? lanes : 1;
}

} // namespace mlx::core::vulkan

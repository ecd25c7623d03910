#include "ops/conv/plan.h"
#include "ops/matrix_tiles.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

template <typename Variant>
uint64_t tiles(const ConvProblem& p, const Variant& v) {
  return ceil_div(p.rows, v.BM) * ceil_div(p.group_outputs, v.BN) * p.groups;
}

// Sets the members that all variants have.
template <typename Variant>
void set_variant(ConvPlan& plan, const ConvProblem& p, Variant v) {
  v.T = p.type;
  v.AXES = p.axes;
  v.DILATED = p.dilated;
  v.LARGE = p.large;
  plan.tiles_m = ceil_div(p.rows, v.BM);
  plan.tiles_n = ceil_div(p.group_outputs, v.BN);
  plan.variant = v;
}

// Enables aligned loads of `items` items where possible.
template <typename Variant>
void set_loads(Variant& v, const ConvProblem& p, uint32_t items) {
  v.VA = p.channels % items == 0 && p.x_items >= items;
  v.VB = p.depth() % items == 0 && p.w_items >= items;
}

// Whether conv_fragments can make tiles of this size.
bool takes_fragments(
    const Target& gpu,
    const ConvProblem& p,
    const ConvFragmentsVariant& v) {
  bool can = gpu.policy.emulates_products
      ? p.type == Type::f16 || p.type == Type::bf16
      : gpu.fragments(p.type) && gpu.policy.fragment_convolutions;
  constexpr uint32_t most_depth = 1 << 24; // the limit of COLUMN()
  uint32_t items = std::min({p.x_items, p.w_items, p.y_items});
  return can && p.rows >= v.BM && p.group_outputs >= v.BN &&
      p.group_outputs % 8 == 0 && p.channels % v.step == 0 &&
      p.taps <= v.MOST_TAPS && p.depth() < most_depth && items >= 8 &&
      v.shared_memory() <= gpu.caps.shared_memory;
}

// Splits sums into parts of whole steps, of at least `least` items, for at most
// one workgroup a core. With more than a quarter of the cores busy, adding the
// parts takes longer than splitting saves.
void split_sums(
    const Target& gpu,
    const ConvProblem& p,
    uint32_t step,
    uint32_t least,
    ConvPlan& plan) {
  uint64_t groups = plan.workgroups(p), depth = p.depth();
  uint64_t wanted = std::min(gpu.cores() / groups, depth / least);
  if (p.may_split && 4 * groups <= gpu.cores() && wanted > 1) {
    plan.k_split = ceil_div(ceil_div(depth, wanted), step) * step;
    plan.splits = ceil_div(depth, plan.k_split);
  }
}

// Tiles of known fragments; false if impossible. A core multiplies narrow tiles
// at two thirds of the speed, so they are used only if wide ones do not fit.
bool plan_fragments(const Target& gpu, const ConvProblem& p, ConvPlan& plan) {
  constexpr ConvFragmentsVariant wide{.BM = 64, .BN = 128, .WM = 1, .WN = 2};
  constexpr ConvFragmentsVariant narrow{.BM = 64, .BN = 64, .WM = 2, .WN = 1};
  constexpr ConvFragmentsVariant emulated{.BM = 32, .BN = 64, .WM = 2, .WN = 2};
  bool emulates = gpu.policy.emulates_products;
  auto v = emulates ? emulated : p.group_outputs >= wide.BN ? wide : narrow;
  v.T = p.type;
  v.SG = 32;
  v.LARGE = p.large;
  v.use_matrices(emulates);
  if (!takes_fragments(gpu, p, v)) {
    return false;
  }
  set_variant(plan, p, v);
  split_sums(gpu, p, v.step, emulates ? 64 : 384, plan);
  std::get<ConvFragmentsVariant>(plan.variant).SPLIT = plan.splits > 1;
  return true;
}

// Subgroups of 64 x 32 in workgroups of eight are the fastest if they occupy
// every other core (docs/lab/2026-11-23-convolutions.md).
void plan_matrices(const Target& gpu, const ConvProblem& p, ConvPlan& plan) {
  constexpr ConvMatrixVariant large{.BM = 128, .BN = 128, .WM = 2, .WN = 4};
  constexpr ConvMatrixVariant medium{.BM = 64, .BN = 64, .WM = 2, .WN = 2};
  auto units = gpu.matrices(p.type);
  bool wide = !narrow(units) && p.group_outputs > 64 &&
      2 * tiles(p, large) >= gpu.cores() &&
      large.WM * large.WN * units.lanes <= gpu.caps.max_workgroup_size;
  auto v = on_units(wide ? large : medium, units, 256);
  v.VY = p.group_outputs % 8 == 0 && p.y_items >= 8;
  bool eights = p.channels % 8 == 0 && p.x_items >= 8;
  v.BK = 64;
  if (!eights || narrow(units) || p.depth() < 64 ||
      v.shared_memory() > gpu.caps.shared_memory) {
    v.BK = 32;
  }
  v.WRAPS = !eights            ? 0
      : p.channels >= v.BK     ? 1
      : 2 * p.channels >= v.BK ? 2
                               : v.BK / 8;
  set_loads(v, p, 8);
  set_variant(plan, p, v);
}

void plan_tile(const Target& gpu, const ConvProblem& p, ConvPlan& plan) {
  // Intel's compiler spills with 8 x 4 items (make test-drivers).
  const ConvTileVariant medium{
      .BM = 64, .BN = 64, .TM = gpu.policy.few_registers() ? 4u : 8u, .TN = 4};
  constexpr ConvTileVariant small{.BM = 32, .BN = 32, .TM = 4, .TN = 4};
  constexpr ConvTileVariant software{.BM = 32, .BN = 64, .TM = 8, .TN = 8};
  ConvTileVariant v = small;
  if (gpu.policy.serial) {
    v = p.group_outputs <= 32 ? small : software;
  } else if (p.group_outputs > 32 && tiles(p, medium) >= gpu.cores()) {
    v = medium;
  }
  v.PREFETCH = !gpu.policy.serial;
  set_loads(v, p, 4);
  v.VA = v.VA && v.PREFETCH;
  v.VB = v.VB && v.PREFETCH;
  set_variant(plan, p, v);
}

} // namespace

std::optional<ConvPlan> plan_conv(const Target& gpu, const ConvProblem& p) {
  // Masks have a bit for each tap of an axis.
  constexpr uint32_t most_taps = 32;
  // With fewer outputs most of a tile would be padding.
  constexpr uint32_t least_outputs = 16;
  if (p.tap_sum > most_taps || p.group_outputs < least_outputs ||
      p.depth() > INT32_MAX || p.rows > INT32_MAX ||
      p.depth() > gpu.policy.most_tile_k) {
    return {};
  }
  ConvPlan plan;
  plan.k_split = p.depth();
  if (plan_fragments(gpu, p, plan)) {
  } else if (gpu.coopmat(p.type) && p.depth() >= 16) {
    plan_matrices(gpu, p, plan);
  } else {
    plan_tile(gpu, p, plan);
  }
  if (plan.workgroups(p) > INT32_MAX) {
    return {};
  }
  return plan;
}

} // namespace mlx::core::vulkan

#include "ops/gemm/plan.h"
#include "ops/matrix_tiles.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <utility>

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t max_vectors = 8; // for the kernels of thin products

// The stride of an axis of length 1 is arbitrary; 1 passes the tests for unit
// strides below.
void normalise(MatrixStrides& s, uint32_t rows, uint32_t cols) {
  if (cols <= 1) {
    s.col = s.row == 1 && rows > 1 ? std::max<int64_t>(rows, 4) : 1;
  }
  if (rows <= 1) {
    s.row = s.col == 1 ? round_up(std::max(cols, 1u), 8) : 1;
  }
}

uint64_t reach(const MatrixStrides& s, uint32_t rows, uint32_t cols) {
  return static_cast<uint64_t>(std::llabs(s.row)) * std::max(rows, 1u) +
      static_cast<uint64_t>(std::llabs(s.col)) * std::max(cols, 1u);
}

// Whether aligned loads of `items` adjacent items of a rows x cols matrix never
// straddle an edge. `along_rows`: items of a column are adjacent.
bool whole_vectors(
    const MatrixStrides& s,
    uint32_t rows,
    uint32_t cols,
    bool along_rows,
    uint32_t items) {
  return along_rows ? rows % items == 0 && s.col % items == 0
                    : s.col == 1 && cols % items == 0 && s.row % items == 0;
}

// Splits k into as many parts, or fewer, that are multiples of `unit` items.
void set_parts(GemmPlan& plan, uint64_t parts, uint32_t unit) {
  uint32_t k = std::max(plan.problem.k, 1u);
  plan.k_split = round_up(ceil_div(k, parts), unit);
  plan.splits = ceil_div(k, plan.k_split);
}

// Splits k until the device is busy, in parts of at least `least` items, which
// are multiples of `unit`.
void split_k(GemmPlan& plan, const Target& gpu, uint32_t least, uint32_t unit) {
  uint32_t k = plan.problem.k;
  set_parts(plan, 1, unit);
  if (uint32_t most = gpu.policy.most_tile_k; plan.k_split > most) {
    plan.splits = ceil_div(plan.k_split, most);
    plan.k_split = most;
    return;
  }
  auto& t = gpu.policy.gemm;
  uint64_t groups = plan.groups();
  uint32_t cores = gpu.cores();
  if (!plan.problem.may_split || groups * 2 > cores || k < 2 * least) {
    return;
  }
  uint64_t wanted = std::min<uint64_t>(
      {ceil_div(t.split_groups * cores, std::max<uint64_t>(groups, 1)),
       k / least,
       t.split_parts});
  if (wanted > 1) {
    set_parts(plan, wanted, unit);
  }
}

// Sets the members that all variants have, after split_k().
template <typename Variant>
void set_variant(GemmPlan& plan, Variant v) {
  v.T = plan.problem.type;
  v.BATCH = plan.problem.batch;
  v.SPLIT = plan.splits > 1;
  v.AXPBY = plan.problem.axpby && !v.SPLIT; // else the sum applies them
  v.LARGE = plan.large;
  plan.variant = v;
}

void plan_axpy(const Target& gpu, const GemmProblem& p, GemmPlan& plan) {
  AxpyVariant v{.WG = 128, .LANES = 16};
  v.NV = std::bit_ceil(p.n);
  v.VA = p.a_aligned && whole_vectors(p.a, p.m, p.k, true, 4);
  plan.tiles_m = ceil_div(p.m, v.LANES * 4);
  plan.tiles_n = 1;
  split_k(plan, gpu, gpu.policy.gemm.split_axpy_k, 32);
  set_variant(plan, v);
}

// `rows` per workgroup; 0: as many as leave the device busy.
void plan_dot(
    const Target& gpu,
    const GemmProblem& p,
    GemmPlan& plan,
    uint32_t rows) {
  DotVariant v{};
  auto vec16 = static_cast<uint32_t>(16 / size_of(p.type));
  v.NV = std::bit_ceil(p.n);
  v.VA = p.a_aligned && whole_vectors(p.a, p.m, p.k, false, vec16);
  v.VB = v.VA && p.b_aligned && p.b.row == 1 && p.b.col % vec16 == 0;
  uint64_t steps = ceil_div(p.k, v.VA ? vec16 : 1);
  v.WG = steps <= 64 ? 32 : steps <= 512 ? 64 : 128;
  v.ROWS = rows ? rows : 4;
  if (!rows &&
      ceil_div(p.m, 4) * p.batches <
          gpu.policy.row_groups * uint64_t(gpu.cores())) {
    v.ROWS = 1;
  } else if (v.VA && !v.VB) {
    // Items of a and b, and sums; addresses of single loads of b take the rest.
    uint32_t held = (v.ROWS + v.NV) * vec16 + v.ROWS * v.NV;
    v.ROWS = held > gpu.policy.held_values ? 2 : v.ROWS;
  }
  plan.tiles_m = ceil_div(p.m, v.ROWS);
  plan.tiles_n = 1;
  split_k(plan, gpu, gpu.policy.gemm.split_dot_k, 64);
  set_variant(plan, v);
}

// A matrix times up to 8 vectors; false if the strides do not suit.
bool plan_thin(
    const Target& gpu,
    GemmProblem p,
    GemmPlan& plan,
    uint32_t rows = 0) {
  if (size_of(p.type) == 8 || std::min(p.m, p.n) > max_vectors || p.k == 0) {
    return false;
  }
  bool transposed = p.m <= p.n;
  if (transposed) {
    p.transpose();
  }
  bool along_k = p.a.col == 1;
  bool along_rows = p.a.row == 1;
  if (!along_k && !along_rows) {
    return false;
  }
  // More than apart_vectors vectors of a tall matrix, as in LoRA: if k is not
  // adjacent in both, matrix units are faster although mostly padded
  // (docs/lab/2026-11-22-training.md).
  auto& t = gpu.policy.gemm;
  bool neighbours = along_k && p.b.row == 1;
  if (!neighbours && p.n > t.apart_vectors && p.m >= t.apart_rows &&
      p.k >= t.apart_k && gpu.coopmat(p.type)) {
    return false;
  }
  plan.transposed = transposed;
  if (transposed) {
    plan.problem.transpose();
  }
  if (along_rows && (!along_k || p.k <= 16)) {
    plan_axpy(gpu, p, plan);
  } else {
    plan_dot(gpu, p, plan, rows);
  }
  return true;
}

// Number of workgroups for tiles of bm x bn.
uint64_t tile_groups(const GemmProblem& p, uint32_t bm, uint32_t bn) {
  return uint64_t(ceil_div(p.m, bm)) * ceil_div(p.n, bn) * p.batches;
}

// Sets what scalar and matrix tiles share; `items`: items of an aligned load.
template <typename Variant>
void plan_operands(
    const GemmProblem& p,
    GemmPlan& plan,
    Variant& v,
    uint32_t items) {
  v.A_T = p.a.row == 1 && p.a.col != 1;
  v.B_T = p.b.row == 1 && p.b.col != 1;
  v.VA = p.a_aligned && whole_vectors(p.a, p.m, p.k, v.A_T, items);
  v.VB = p.b_aligned && whole_vectors(p.b, p.k, p.n, v.B_T, items);
  plan.tiles_m = ceil_div(p.m, v.BM);
  plan.tiles_n = ceil_div(p.n, v.BN);
}

constexpr TileVariant scalar_tiles[] = {
    {.BM = 128, .BN = 128, .TM = 16, .TN = 8, .BK = 8},
    {.BM = 128, .BN = 128, .TM = 8, .TN = 8, .BK = 8},
    {.BM = 64, .BN = 64, .TM = 8, .TN = 4, .BK = 8},
    {.BM = 32, .BN = 32, .TM = 4, .TN = 4, .BK = 16},
    {.BM = 32, .BN = 64, .TM = 8, .TN = 8, .BK = 16}};

// True if registers hold the sums, beside factors and loads, and shared memory
// holds the tiles.
bool fits(const Target& gpu, const GemmProblem& p, TileVariant v) {
  uint32_t sums = v.TM * v.TN * (size_of(p.type) == 8 ? 2 : 1);
  v.T = p.type;
  v.PREFETCH = gpu.policy.gpu_tiles;
  return sums <= (gpu.policy.few_registers() ? 64 : 128) &&
      v.shared_memory() <= gpu.caps.shared_memory;
}

TileVariant scalar_tile(const Target& gpu, const GemmProblem& p) {
  auto& [tall, large, medium, small, software] = scalar_tiles;
  auto fills = [&](const TileVariant& v) {
    return fits(gpu, p, v) &&
        tile_groups(p, v.BM, v.BN) >= gpu.policy.tile_groups * gpu.cores();
  };
  if (!gpu.policy.gpu_tiles) {
    return p.m <= 32 || p.n <= 32 || size_of(p.type) == 8 ? small : software;
  }
  if (std::min(p.m, p.n) <= 32 || !fills(medium)) {
    return small;
  }
  bool wide = std::min(p.m, p.n) > 64;
  return wide && fills(tall) ? tall : wide && fills(large) ? large : medium;
}

void plan_tile(
    const Target& gpu,
    const GemmProblem& p,
    GemmPlan& plan,
    TileVariant v) {
  plan_operands(p, plan, v, size_of(p.type) == 8 ? 2 : 4);
  v.PREFETCH = gpu.policy.gpu_tiles;
  v.VA = v.VA && v.PREFETCH;
  v.VB = v.VB && v.PREFETCH;
  split_k(plan, gpu, gpu.policy.gemm.split_tile_k, 64);
  set_variant(plan, v);
}

// A few dozen rows by a layer's weights, with matrix units; false if they
// cannot be used or k is too short for their parts.
bool plan_skinny(const Target& gpu, const GemmProblem& p, GemmPlan& plan) {
  auto& t = gpu.policy.gemm;
  bool suits = p.m >= t.least_few_rows && p.m <= t.few_rows &&
      p.n > max_vectors && p.k >= t.few_rows_k && p.batches == 1 &&
      p.a.col == 1 && p.b.row == 1 && p.a_aligned && p.b_aligned &&
      whole_vectors(p.a, p.m, p.k, false, 8) &&
      whole_vectors(p.b, p.k, p.n, true, 8);
  if (!suits || !gpu.usual_matrices(p.type) ||
      gpu.caps.matrix_subgroup() != 32 || gpu.caps.shared_memory < 32768) {
    return false;
  }
  SkinnyVariant v{};
  set_skinny(v, gpu, p.m, ceil_div(p.n, 64), true);
  plan.tiles_m = ceil_div(p.m, v.rows());
  plan.tiles_n = ceil_div(p.n, v.outputs());
  split_k(plan, gpu, t.split_skinny_k, 64);
  set_variant(plan, v);
  return true;
}

// Subgroups of 64 x 64 (docs/lab/2026-11-22-matrix-units.md).
constexpr Tile large_tile{128, 128, 2, 2};
constexpr Tile medium_tile{64, 64, 2, 2};
constexpr Tile flat_tile{32, 128, 1, 4};
// Subgroups of 16 lanes take 16 x 32, with which ANV does not spill.
constexpr Tile large_narrow_tile{128, 128, 8, 4};
constexpr Tile small_tile{32, 64, 1, 2};

Tile least_tile(const GemmProblem& p, bool narrow) {
  return p.m > 32 ? medium_tile : narrow ? small_tile : flat_tile;
}

// Large tiles if they fill the device, if need be by parts of k: workgroups of
// a core hide latency, and smaller tiles cost more than a few idle cores.
TileParts timed_tile(const Target& gpu, const GemmProblem& p, bool narrow) {
  auto& t = gpu.policy.gemm;
  auto& large = large_tile;
  uint64_t groups = std::max<uint64_t>(tile_groups(p, large.bm, large.bn), 1);
  uint64_t parts = std::min<uint64_t>(
      t.split_groups * gpu.cores() / groups, p.k / t.split_large_k);
  bool can_large = std::min(p.m, p.n) > 64 && !narrow;
  if (can_large && p.may_split && parts > 1 && groups * parts >= gpu.cores()) {
    return {large, static_cast<uint32_t>(parts)};
  }
  bool fills = 4 * groups >= t.large_quarters * gpu.cores();
  return {can_large && fills ? large : least_tile(p, narrow), 0};
}

// The tile with the least expected time. Parts of k cost a start of 64 items
// each, and 8 bytes written and read, which take as long as 512 products of a
// core (Strix Halo and Radeon RX 7900 XTX by their rates).
TileParts estimated_tile(
    const Target& gpu,
    const GemmProblem& p,
    const MatrixUnits& units) {
  auto& tuned = gpu.policy.gemm;
  TileParts best{};
  double least = std::numeric_limits<double>::infinity();
  auto consider = [&](const Tile& t, uint32_t least_k) {
    uint64_t groups = tile_groups(p, t.bm, t.bn);
    uint32_t most =
        p.may_split ? std::min(p.k / least_k, tuned.split_parts) : 1;
    for (uint32_t parts = 1; parts <= std::max(most, 1u);
         parts += 1 + parts / 8) {
      double time = double(tile_time(gpu, groups * parts, t.bm, t.bn)) *
          (double(p.k) / parts + 64);
      time += parts > 1 ? 1024.0 * parts * p.m * p.n * p.batches / gpu.cores()
                        : 0.0;
      if (time < least) {
        least = time;
        best = {t, parts};
      }
    }
  };
  if (std::min(p.m, p.n) > 64 && units.lanes >= 16 &&
      gpu.caps.max_workgroup_size >= 512) {
    consider(
        narrow(units) ? large_narrow_tile : large_tile, tuned.split_large_k);
  }
  consider(least_tile(p, narrow(units)), tuned.split_matrices_k);
  return best;
}

// Sets the columns and parts of k (256 items or more) of least expected time.
void choose_fragments(
    const Target& gpu,
    const GemmProblem& p,
    GemmPlan& plan,
    FragmentsVariant& v) {
  uint32_t outputs = v.Y_T ? p.m : p.n;
  double items = double(p.m) * p.n * double(p.batches);
  double least = std::numeric_limits<double>::infinity();
  uint64_t best = 1;
  for (uint32_t columns = 128; columns <= std::min(p.n, 256u); columns *= 2) {
    auto held =
        columns == 256 ? HeldTiles{2, 192, 154} : HeldTiles{3, 173, 104};
    uint64_t groups = std::max<uint64_t>(tile_groups(p, v.BM, columns), 1);
    uint64_t fill = uint64_t(held.held) * gpu.cores() / groups;
    uint64_t most = p.may_split ? std::min<uint64_t>(fill, p.k / 256) : 1;
    for (uint64_t parts : {uint64_t(1), std::max<uint64_t>(most, 1)}) {
      set_parts(plan, parts, 64);
      double time = held.time(gpu, outputs, p.k, groups, plan.k_split, items);
      if (time < least) {
        least = time;
        v.BN = columns;
        best = parts;
      }
    }
  }
  set_parts(plan, best, 64);
}

// False if gemm_fragments does not take the product. If rows of both matrices
// are contiguous, y is computed as the transpose of b^T a^T.
// `columns` of a tile; 0: those of least expected time.
bool plan_fragments(
    const Target& gpu,
    GemmProblem p,
    GemmPlan& plan,
    uint32_t columns = 0) {
  constexpr FragmentsVariant emulated{.BM = 32, .BN = 64, .WM = 2, .WN = 2};
  constexpr FragmentsVariant usual{.BM = 64, .BN = 128, .WM = 1, .WN = 4};
  bool emulates = gpu.policy.emulates_products;
  bool can = emulates
      ? p.k <= 512 && (p.type == Type::f16 || p.type == Type::bf16)
      : gpu.fragments(p.type);
  bool transposed = p.a.col == 1 && p.b.row != 1;
  if (transposed) {
    p.transpose();
  }
  auto v = emulates ? emulated : usual;
  v.A_T = p.a.col != 1;
  v.Y_T = transposed;
  bool pieces = p.a_aligned && p.b_aligned && p.b.row == 1 &&
      (!v.A_T || p.a.row == 1) && whole_vectors(p.a, p.m, p.k, v.A_T, 8) &&
      whole_vectors(p.b, p.k, p.n, true, 8) && (v.Y_T || p.n % 8 == 0);
  if (!can || !pieces || p.m < v.BM || p.n < v.BN || !p.k || p.k % v.depth ||
      v.shared_memory() > gpu.caps.shared_memory) {
    return false;
  }
  if (transposed) {
    plan.transposed = true;
    plan.problem.transpose();
  }
  if (emulates) {
    split_k(plan, gpu, gpu.policy.gemm.split_matrices_k, 64);
  } else if (columns) {
    v.BN = columns;
    set_parts(plan, 1, 64);
  } else {
    choose_fragments(gpu, p, plan, v);
  }
  v.T = p.type;
  v.SG = 32;
  v.use_matrices(emulates);
  plan.tiles_m = ceil_div(p.m, v.BM);
  plan.tiles_n = ceil_div(p.n, v.BN);
  set_variant(plan, v);
  return true;
}

CoopmatVariant matrix_variant(
    const GemmProblem& p,
    GemmPlan& plan,
    const Tile& t,
    const MatrixUnits& units) {
  CoopmatVariant v{};
  set_tile(v, t);
  v = on_units(v, units, t.bm == 64 ? 256 : 128);
  plan_operands(p, plan, v, 8);
  return v;
}

// Tiles of matrix units, of this form if it is given; false if they cannot be
// used.
bool plan_coopmat(
    const Target& gpu,
    const GemmProblem& p,
    GemmPlan& plan,
    const Tile* form = nullptr) {
  auto& tuned = gpu.policy.gemm;
  bool wide = std::min(p.m, p.n) > 64;
  // With few items of k, a scalar tile takes as long to write as a matrix tile.
  auto units = gpu.matrices(p.type);
  if (!units.lanes && p.a.col == 1 && p.b.row == 1 && p.b.col != 1) {
    units = gpu.half_matrices(p.type);
  }
  if (!units.lanes || p.k < (wide ? tuned.wide_matrices_k : tuned.matrices_k)) {
    return false;
  }
  bool subgroups_suit = !form || form->bm < 128 ||
      (form->wm == large_narrow_tile.wm) == narrow(units);
  if (!subgroups_suit) {
    return false;
  }
  TileParts t = form           ? TileParts{*form}
      : gpu.policy.timed_tiles ? timed_tile(gpu, p, narrow(units))
                               : estimated_tile(gpu, p, units);
  auto v = matrix_variant(p, plan, t.tile, units);
  if (t.parts) {
    set_parts(plan, t.parts, 64);
  } else {
    split_k(plan, gpu, tuned.split_matrices_k, 64);
  }
  set_variant(plan, v);
  return true;
}

} // namespace

void GemmProblem::transpose() {
  std::swap(m, n);
  std::swap(a, b);
  std::swap(a_aligned, b_aligned);
  for (auto* s : {&a, &b, &c}) {
    *s = s->transposed();
  }
}

namespace {

// The problem with the strides that plans see, and the plan of no kernel.
std::pair<GemmProblem, GemmPlan> started(const GemmProblem& problem) {
  GemmProblem p = problem;
  normalise(p.a, p.m, p.k);
  normalise(p.b, p.k, p.n);
  GemmPlan plan;
  plan.problem = problem;
  uint64_t items = std::max(
      {reach(p.a, p.m, p.k),
       reach(p.b, p.k, p.n),
       p.axpby ? reach(p.c, p.m, p.n) : 0,
       static_cast<uint64_t>(p.m) * p.n});
  plan.large = items > INT32_MAX;
  return {p, plan};
}

// Adds the plan with k whole and in parts, up to four workgroups per core.
void add_parts(
    Candidates<GemmPlan>& c,
    const Target& gpu,
    PlanName name,
    size_t at, // of the number of parts in the name
    const GemmPlan& plan) {
  for (uint32_t parts : {1, 2, 4, 8, 16}) {
    if (parts > gpu.policy.gemm.split_parts) {
      break;
    }
    GemmPlan cut = plan;
    set_parts(cut, parts, 64);
    bool busy = plan.groups() / plan.splits * parts > 4 * gpu.cores();
    if (cut.k_split > gpu.policy.most_tile_k ||
        (parts > 1 &&
         (!plan.problem.may_split || busy || cut.splits < parts))) {
      continue;
    }
    name.numbers[at] = parts;
    c.add(name, [&] {
      std::visit([&](auto v) { set_variant(cut, v); }, plan.variant);
      return cut;
    });
  }
}

} // namespace

std::vector<Named<GemmPlan>> gemm_candidates(
    const Target& gpu,
    const GemmProblem& problem,
    const PlanName* wanted) {
  Candidates<GemmPlan> c(wanted);
  auto [p, start] = started(problem);
  auto add = [&](const PlanName& name, size_t at, auto plan_kernel) {
    GemmPlan plan = start;
    if (plan_kernel(plan)) {
      add_parts(c, gpu, name, at, plan);
    }
  };
  add({"skinny in {}"}, 0, [&](auto& plan) {
    return plan_skinny(gpu, p, plan);
  });
  for (uint32_t rows : {1, 4}) {
    add({"vectors by {} rows in {}", {rows}}, 1, [&](auto& plan) {
      return plan_thin(gpu, p, plan, rows);
    });
  }
  if (p.k && std::min(p.m, p.n) <= gpu.policy.gemm.apart_vectors) {
    return std::move(c.found); // tiles would be mostly empty
  }
  for (uint32_t columns = 128; columns <= std::min(p.n, 256u); columns *= 2) {
    add({"fragments x {} in {}", {columns}}, 1, [&](auto& plan) {
      return plan_fragments(gpu, p, plan, columns);
    });
  }
  for (auto& t :
       {large_tile, large_narrow_tile, medium_tile, flat_tile, small_tile}) {
    add({"matrices {} x {} in {}", {t.bm, t.bn}}, 2, [&](auto& plan) {
      return plan_coopmat(gpu, p, plan, &t);
    });
  }
  for (auto& t : scalar_tiles) {
    if (fits(gpu, p, t) && (gpu.policy.gpu_tiles || t.BM < 128)) {
      add({"scalar {} x {} by {} in {}", {t.BM, t.BN, t.TM}},
          3,
          [&](auto& plan) {
            plan_tile(gpu, p, plan, t);
            return true;
          });
    }
  }
  return std::move(c.found);
}

GemmPlan plan_gemm(const Target& gpu, const GemmProblem& problem) {
  auto [p, plan] = started(problem);
  if (!plan_skinny(gpu, p, plan) && !plan_thin(gpu, p, plan) &&
      !plan_fragments(gpu, p, plan) && !plan_coopmat(gpu, p, plan)) {
    plan_tile(gpu, p, plan, scalar_tile(gpu, p));
  }
  return plan;
}

SortedTilesVariant plan_sorted_tiles(const Target& gpu, uint32_t rows) {
  bool many = rows > 1024 && gpu.caps.max_workgroup_size >= 1024;
  return {gpu.policy.serial ? 128 : many ? 1024 : 256};
}

uint32_t most_sorted_tiles(uint64_t rows, uint64_t matrices, uint32_t height) {
  return static_cast<uint32_t>(rows / height + std::min(matrices, rows));
}

std::optional<GemmPlan> plan_sorted_gemm(
    const Target& gpu,
    const GemmProblem& problem,
    uint32_t matrices) {
  auto& tuned = gpu.policy.gemm;
  auto [p, plan] = started(problem);
  uint32_t together = p.m / std::max(matrices, 1u);
  if (!gpu.coopmat(p.type) || p.m < tuned.sorted_rows ||
      together < tuned.sorted_expert_rows) {
    return std::nullopt;
  }
  constexpr Tile half_tile{64, 128, 1, 4};
  auto units = gpu.matrices(p.type);
  bool few = together <= tuned.flat_expert_rows;
  Tile t = few                               ? flat_tile
      : together <= tuned.medium_expert_rows ? half_tile
                                             : large_tile;
  if (narrow(units)) {
    t = few ? small_tile : medium_tile;
  }
  auto v = matrix_variant(p, plan, t, units);
  if (!v.VA || !v.VB) {
    return std::nullopt;
  }
  plan.tiles_m = most_sorted_tiles(p.m, matrices, v.BM);
  set_parts(plan, 1, 64);
  set_variant(plan, v);
  return plan;
}

} // namespace mlx::core::vulkan

#include "ops/gemm/plan.h"

#include <algorithm>
#include <cstdlib>

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t max_vectors = 8;

uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

uint32_t round_up(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(ceil_div(a, b) * b);
}

// A stride that is never stepped along may be anything; 1 suits the tests
// for unit strides below.
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

// llvmpipe ends an invocation's loops, all taken together, after 65,535
// iterations, without a word (LP_MAX_TGSI_LOOP_ITERATIONS). The software tile
// takes 65 iterations for 16 k's.
constexpr uint32_t software_k = 8192;

// Splits k until the device has about two workgroups a core, each with at
// least `least` k's in multiples of `unit`.
void split_k(
    GemmPlan& plan,
    const GemmDevice& device,
    uint32_t k,
    uint64_t groups,
    uint32_t least,
    uint32_t unit) {
  uint32_t cores = device.cores ? device.cores : 32;
  plan.splits = 1;
  plan.k_split = round_up(std::max(k, 1u), unit);
  if (device.software) {
    plan.splits = static_cast<uint32_t>(ceil_div(plan.k_split, software_k));
    plan.k_split = std::min(plan.k_split, software_k);
    return;
  }
  if (!device.splits || groups * 2 > cores || k < 2 * least) {
    return;
  }
  uint64_t wanted = std::min<uint64_t>(
      {ceil_div(2 * cores, std::max<uint64_t>(groups, 1)), k / least, 64});
  if (wanted > 1) {
    plan.k_split = round_up(static_cast<uint32_t>(ceil_div(k, wanted)), unit);
    plan.splits = static_cast<uint32_t>(ceil_div(k, plan.k_split));
  }
}

bool plan_thin(const GemmDevice& device, const GemmProblem& p, GemmPlan& plan) {
  if (p.type == Type::c64 || std::min(p.m, p.n) > max_vectors || p.k == 0) {
    return false;
  }
  plan.swapped = p.m <= p.n;
  plan.rows = plan.swapped ? p.n : p.m;
  plan.vectors = plan.swapped ? p.m : p.n;
  MatrixStrides w = p.a;
  MatrixStrides x = p.b;
  if (plan.swapped) {
    w = {p.b.col, p.b.row};
    x = {p.a.col, p.a.row};
  }
  bool w_aligned = plan.swapped ? p.b_aligned : p.a_aligned;
  bool x_aligned = plan.swapped ? p.a_aligned : p.b_aligned;
  // w.row steps over rows of w, w.col over k; x.row over k, x.col over vectors.
  int64_t item = static_cast<int64_t>(size_of(p.type));
  int64_t vec16 = 16 / item;
  plan.nv = plan.vectors <= 1 ? 1
      : plan.vectors <= 2     ? 2
      : plan.vectors <= 4     ? 4
                              : 8;

  bool along_k = w.col == 1;
  bool along_rows = w.row == 1;
  if (along_rows && (!along_k || p.k <= 16)) {
    plan.kind = GemmKind::Axpy;
    plan.workgroup = 128;
    plan.lanes = 16;
    plan.group_rows = plan.lanes * 4;
    plan.vw = w_aligned && plan.rows % 4 == 0 && w.col % 4 == 0;
    uint64_t groups = ceil_div(plan.rows, plan.group_rows) * p.batches;
    split_k(plan, device, p.k, groups, 256, 32);
    return true;
  }
  if (!along_k) {
    return false;
  }
  plan.kind = GemmKind::Dot;
  plan.vw = w_aligned && p.k % vec16 == 0 && w.row % vec16 == 0;
  plan.vx = plan.vw && x_aligned && x.row == 1 && x.col % vec16 == 0;
  uint32_t step = plan.vw ? static_cast<uint32_t>(vec16) : 1;
  uint32_t steps = static_cast<uint32_t>(ceil_div(p.k, step));
  plan.workgroup = steps <= 64 ? 32 : steps <= 512 ? 64 : 128;
  plan.group_rows = 4;
  uint32_t cores = device.cores ? device.cores : 32;
  if (!device.software && ceil_div(plan.rows, 4) * p.batches < 2 * cores) {
    plan.group_rows = 1;
  }
  uint64_t groups = ceil_div(plan.rows, plan.group_rows) * p.batches;
  split_k(plan, device, p.k, groups, 4096, 64);
  return true;
}

void plan_tile(const GemmDevice& device, const GemmProblem& p, GemmPlan& plan) {
  struct Tile {
    uint32_t bm, bn, bk, tm, tn;
  };
  constexpr Tile large{128, 128, 16, 8, 8};
  constexpr Tile medium{64, 64, 16, 4, 4};
  constexpr Tile small{32, 32, 16, 4, 4};
  constexpr Tile software{32, 64, 16, 8, 8};

  uint64_t cores = device.cores ? device.cores : 32;
  auto tiles = [&](const Tile& t) {
    return ceil_div(p.m, t.bm) * ceil_div(p.n, t.bn) * p.batches;
  };
  Tile t = small;
  if (device.software) {
    t = p.m <= 32 || p.n <= 32 || p.type == Type::c64 ? small : software;
  } else if (std::min(p.m, p.n) > 32 && tiles(medium) >= cores) {
    t = medium;
    if (p.type != Type::c64 && std::min(p.m, p.n) > 64 &&
        tiles(large) >= cores) {
      t = large;
    }
  }
  plan.kind = GemmKind::Tile;
  plan.bm = t.bm;
  plan.bn = t.bn;
  plan.bk = t.bk;
  plan.tm = t.tm;
  plan.tn = t.tn;
  plan.a_t = p.a.row == 1 && p.a.col != 1;
  plan.b_t = p.b.row == 1 && p.b.col != 1;
  plan.prefetch = !device.software;
  bool real = plan.prefetch && p.type != Type::c64;
  plan.va = real && p.a_aligned &&
      (plan.a_t ? p.m % 4 == 0 && p.a.col % 4 == 0
                : p.a.col == 1 && p.k % 4 == 0 && p.a.row % 4 == 0);
  plan.vb = real && p.b_aligned &&
      (plan.b_t ? p.k % 4 == 0 && p.b.col % 4 == 0
                : p.b.col == 1 && p.n % 4 == 0 && p.b.row % 4 == 0);
  split_k(plan, device, p.k, tiles(t), 256, 64);
}

// The matrix units' tiles; true if they can be used.
bool plan_coopmat(
    const GemmDevice& device,
    const GemmProblem& p,
    GemmPlan& plan) {
  bool has = (p.type == Type::f16 && device.coopmat_f16) ||
      (p.type == Type::bf16 && device.coopmat_bf16);
  if (!has || p.k < 16) {
    return false;
  }
  struct Tile {
    uint32_t bm, bn, wm, wn;
  };
  constexpr Tile large{128, 128, 4, 2};
  constexpr Tile medium{64, 64, 2, 2};
  constexpr Tile flat{32, 128, 1, 4};
  uint64_t cores = device.cores ? device.cores : 32;
  auto tiles = [&](const Tile& t) {
    return ceil_div(p.m, t.bm) * ceil_div(p.n, t.bn) * p.batches;
  };
  Tile t = p.m <= 32 ? flat : medium;
  if (std::min(p.m, p.n) > 64 && tiles(large) >= cores) {
    t = large;
  }
  plan.kind = GemmKind::Coopmat;
  plan.bm = t.bm;
  plan.bn = t.bn;
  plan.bk = 32;
  plan.tm = t.wm;
  plan.tn = t.wn;
  plan.a_t = p.a.row == 1 && p.a.col != 1;
  plan.b_t = p.b.row == 1 && p.b.col != 1;
  plan.va = p.a_aligned &&
      (plan.a_t ? p.m % 8 == 0 && p.a.col % 8 == 0
                : p.a.col == 1 && p.k % 8 == 0 && p.a.row % 8 == 0);
  plan.vb = p.b_aligned &&
      (plan.b_t ? p.k % 8 == 0 && p.b.col % 8 == 0
                : p.b.col == 1 && p.n % 8 == 0 && p.b.row % 8 == 0);
  split_k(plan, device, p.k, tiles(t), 512, 64);
  return true;
}

} // namespace

uint64_t GemmPlan::groups(const GemmProblem& p) const {
  uint64_t per_batch = kind == GemmKind::Tile || kind == GemmKind::Coopmat
      ? ceil_div(p.m, bm) * ceil_div(p.n, bn)
      : ceil_div(rows, group_rows);
  return per_batch * splits * p.batches;
}

GemmPlan plan_gemm(const GemmDevice& device, GemmProblem p) {
  normalise(p.a, p.m, p.k);
  normalise(p.b, p.k, p.n);
  GemmPlan plan;
  uint64_t items = std::max(
      {reach(p.a, p.m, p.k),
       reach(p.b, p.k, p.n),
       p.axpby ? reach(p.c, p.m, p.n) : 0,
       static_cast<uint64_t>(p.m) * p.n});
  plan.big = items > INT32_MAX;
  if (!plan_thin(device, p, plan) && !plan_coopmat(device, p, plan)) {
    plan_tile(device, p, plan);
  }
  return plan;
}

} // namespace mlx::core::vulkan

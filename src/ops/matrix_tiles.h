// Tiles of matrix units, their subgroups and limits. Free of MLX.
#pragma once

#include <algorithm>

#include "policy/policy.h"

namespace mlx::core::vulkan {

// Outputs per workgroup, and subgroups along each axis; parts of k (0: any).
struct Tile {
  uint32_t bm, bn, wm, wn;
};
struct TileParts {
  Tile tile;
  uint32_t parts = 1;
};

template <typename Variant>
void set_tile(Variant& v, const Tile& t) {
  v.BM = t.bm;
  v.BN = t.bn;
  v.WM = t.wm;
  v.WN = t.wn;
}

// Whether the device has the shared memory and the invocations that a variant
// counts with: plans look after most limits themselves.
template <typename Variant>
bool fits(const Caps& caps, const Variant& v) {
  bool room = true;
  if constexpr (requires { v.shared_memory(); }) {
    room = v.shared_memory() <= caps.shared_memory;
  }
  uint32_t lanes = 0;
  if constexpr (requires { v.WM* v.SG; }) {
    lanes = v.WM * v.WN * v.SG;
  } else if constexpr (requires { v.WK* v.SG; }) {
    lanes = v.WK * v.WN * v.SG;
  } else if constexpr (requires { v.WM* v.units.lanes; }) {
    lanes = v.WM * v.WN * v.units.lanes;
  } else if constexpr (requires { v.WG; }) {
    lanes = v.WG;
  } else if constexpr (requires { v.LANES; }) {
    lanes = v.LANES;
  }
  return room && lanes <= caps.max_workgroup_size;
}

// Subgroups of fewer than 32 lanes (Intel) have few registers per lane: ANV's
// compiler spills little with 32 sums per lane and much with 64 (not timed).
inline bool narrow(const MatrixUnits& units) {
  return units.lanes < 32;
}

// Workgroups of a kernel that a core holds; the time that all of them and that
// one alone take for an item of k, as timed on an H200. A row times 256 columns
// of codes takes 1 (docs/lab/2026-11-27-rounds.md).
struct HeldTiles {
  uint32_t held;
  double all, alone;

  // Expected time of an n x k product by `groups` workgroups, each of whose
  // parts has `part` items of k. If n > k, a second one of the same rows is
  // expected to run beside it, as a layer's gate does. A sum of parts takes a
  // dispatch and 8 bytes for each of `items` and each part.
  double time(
      const Target& gpu,
      uint32_t n,
      uint32_t k,
      uint64_t groups,
      uint32_t part,
      double items) const {
    uint32_t products = n > k ? 2 : 1, parts = ceil_div(k, part);
    uint64_t most = (products * groups * parts - 1) / gpu.cores() + 1;
    double last = double(most % held);
    double rounds = double(most / held) * all +
        (last > 0 ? alone + (all - alone) * (last - 1) / (held - 1) : 0);
    return rounds / products * part +
        (parts > 1 ? 40000 + 2.6 * parts * items / gpu.cores() : 0);
  }
};

// Estimated time of `groups` tiles of bm x bn per item of k, in half products
// of a core: whole rounds of one tile a core. Staging a row or column in shared
// memory takes as long as 40 products (instructions of RADV on gfx1201); a
// workgroup alone on its core waits for a third of its time.
inline uint64_t
tile_time(const Target& gpu, uint64_t groups, uint32_t bm, uint32_t bn) {
  constexpr uint32_t staged = 40;
  uint64_t rounds = ceil_div(groups, gpu.cores());
  uint64_t halves = std::max<uint64_t>(2 * rounds, 3);
  return halves * (bm * bn + staged * (bm + bn));
}

// Sets the subgroups of skinny_tile.glsl. `groups`: of 64 columns; `many`:
// enough for every core. Else subgroups share k, because the loop over it then
// takes the most time.
template <typename Variant>
void set_skinny(
    Variant& v,
    const Target& gpu,
    uint32_t rows,
    uint64_t groups,
    bool many) {
  v.SG = gpu.caps.matrix_subgroup();
  v.FN = 2;
  if (rows <= 16) {
    v.FM = v.WN = 1;
    v.WK = 8;
    if (groups >= 2 * uint64_t(gpu.cores())) {
      v.FN = 4; // wider ones read a less often
      v.WK = 4;
    }
  } else {
    bool tall = rows > 32 && many; // subgroups share a
    v.FM = tall ? 4 : 2;
    v.WN = rows <= 32 && !many ? 2 : 4;
    v.WK = tall ? 1 : v.WN == 2 ? 4 : 2;
  }
  while (v.WK > 1 && !fits(gpu.caps, v)) {
    v.WK /= 2;
  }
}

// Sets the units of `v`. Its WM x WN subgroups, meant for 32 lanes, are
// multiplied until narrower ones have `invocations` in total. Each keeps more
// columns than rows: on Xe2, rows of 8 x 16 take four loads from shared memory,
// columns of 16 x 16 two.
template <typename Variant>
Variant on_units(Variant v, const MatrixUnits& units, uint32_t invocations) {
  v.units = units;
  if (!narrow(units)) {
    return v;
  }
  while (v.WM * v.WN * units.lanes < invocations) {
    bool rows = v.BM / v.WM >= v.BN / v.WN;
    bool can_rows = v.BM / v.WM > units.shape.m;
    bool can_columns = v.BN / v.WN > units.shape.n;
    if (!can_rows && !can_columns) {
      break;
    }
    ((rows && can_rows) || !can_columns ? v.WM : v.WN) *= 2;
  }
  return v;
}

} // namespace mlx::core::vulkan

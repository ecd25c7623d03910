#include "ops/quant/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

uint32_t tiles(uint64_t n, uint32_t tile) {
  return static_cast<uint32_t>((n + tile - 1) / tile);
}

// The smallest of 1, 2, 4, 8 that holds m, up to `most`.
uint32_t row_bucket(uint32_t m, uint32_t most) {
  uint32_t rows = 1;
  while (rows < m && rows < most) {
    rows *= 2;
  }
  return rows;
}

// Smaller chunks keep all lanes busy when k is short; only codes whose chunk
// is still a whole number of words have them.
uint32_t chunk_of(int bits, int group, uint32_t k, uint32_t lanes) {
  uint32_t smallest = bits == 4 || bits == 8 ? 8
      : bits == 2 || bits == 6               ? 16
                                             : 32;
  uint32_t chunk = std::min(32, group);
  while (chunk > smallest && k / chunk < lanes) {
    chunk /= 2;
  }
  return chunk;
}

void plan_matvec(QuantPlan& p, const QuantDevice& d, const QuantShape& s) {
  p.path = QuantPlan::Path::Matvec;
  p.vec = s.aligned;
  p.rows = row_bucket(s.m, 8);
  p.outs = p.rows <= 2 ? 4 : p.rows == 8 && d.few_registers ? 1 : 2;
  uint32_t lanes = std::max(d.subgroup_size, 4u);
  p.workgroup = 4 * lanes;
  if (d.software) {
    // One thread runs a workgroup: fewer, larger ones. Loads are one by one
    // there, so each x serves many weights where that repays compiling.
    bool large = p.rows == 1 && uint64_t(s.n) * s.k >= 1 << 18;
    p.outs = large ? 16 : 4;
    p.workgroup = large ? 2 * lanes : 4 * lanes;
    p.block = large ? 8 * p.outs : 16 * p.outs;
  } else {
    p.block = 4 * p.outs;
    // Too few subgroups to fill the device: whole workgroups share the rows.
    uint64_t subgroups =
        s.batch * tiles(s.m, p.rows) * uint64_t(tiles(s.n, p.outs));
    uint32_t cores = d.cores ? d.cores : 64;
    if (subgroups < 16 * uint64_t(cores) && s.k >= 32 * lanes) {
      p.wide = true;
      p.outs = std::min(p.outs, 2u);
      p.block = p.outs;
      lanes = p.workgroup;
    }
  }
  p.chunk = chunk_of(s.bits, s.group, s.k, lanes);
  p.m_tiles = tiles(s.m, p.rows);
  p.n_tiles = tiles(s.n, p.block);
}

void plan_vecmat(QuantPlan& p, const QuantDevice& d, const QuantShape& s) {
  p.path = QuantPlan::Path::Vecmat;
  p.rows = row_bucket(s.m, 4);
  p.ty = d.software ? 4 : 16;
  p.m_tiles = tiles(s.m, p.rows);
  p.n_tiles = tiles(s.n, 8 * p.tx);
}

// The largest tile whose number fills the device.
void plan_coopmat(QuantPlan& p, const QuantDevice& d, const QuantShape& s) {
  struct Tile {
    uint32_t bm, bn, wm, wn;
  };
  constexpr Tile wide{128, 256, 2, 4};
  constexpr Tile large{128, 128, 2, 4};
  constexpr Tile medium{64, 128, 2, 4};
  constexpr Tile small{64, 64, 2, 2};
  constexpr Tile flat{32, 64, 1, 4};
  uint64_t m = s.sorted ? s.batch : s.m;
  // Rows that share a matrix of w.
  uint64_t together = s.sorted ? s.batch / std::max(s.matrices, 1u) : s.m;
  uint64_t batch = s.sorted ? 1 : s.batch;
  uint64_t wanted = d.cores ? d.cores : 64;
  auto fills = [&](const Tile& t) {
    return batch * tiles(m, t.bm) * uint64_t(tiles(s.n, t.bn)) >= wanted;
  };
  Tile t = together <= 32             ? flat
      : together > 64 && fills(wide)  ? wide
      : together > 64 && fills(large) ? large
      : fills(medium)                 ? medium
                                      : small;
  p.path = QuantPlan::Path::Coopmat;
  p.bm = t.bm;
  p.bn = t.bn;
  p.wm = t.wm;
  p.wn = t.wn;
  p.m_tiles = tiles(m, p.bm);
  p.n_tiles = tiles(s.n, p.bn);
}

void plan_tiled(QuantPlan& p, const QuantDevice& d, const QuantShape& s) {
  p.path = QuantPlan::Path::Tiled;
  uint64_t m = s.sorted ? s.batch : s.m;
  if (d.software) {
    // Shared memory is slow: large pieces where that repays compiling.
    bool large = m > 32 && m * s.n * s.k >= 1 << 22;
    p.bm = large ? 64 : 32;
    p.bn = large ? 128 : 64;
    p.tm = large ? 16 : 8;
    p.tn = large ? 16 : 4;
  } else if (m <= 32 || s.sorted) {
    p.bm = 32;
    p.bn = 64;
  }
  p.m_tiles = tiles(m, p.bm);
  p.n_tiles = tiles(s.n, p.bn);
}

} // namespace

QuantPlan plan_quant(const QuantDevice& device, const QuantShape& shape) {
  QuantPlan p;
  // Sorted experts pay for a tile when each has several rows.
  bool tiled = shape.sorted
      ? shape.batch >= 16 && shape.batch / std::max(shape.matrices, 1u) >= 4
      : shape.m > (shape.transpose ? 8 : 4);
  if (tiled && device.coopmat && shape.x_aligned) {
    plan_coopmat(p, device, shape);
  } else if (tiled) {
    plan_tiled(p, device, shape);
    p.why = device.coopmat ? "rows of x must start at multiples of 16 bytes"
                           : "no cooperative matrices for x's type";
  } else if (shape.transpose) {
    plan_matvec(p, device, shape);
    p.why = p.vec ? "" : "rows of x and w must start at multiples of 16 bytes";
  } else {
    plan_vecmat(p, device, shape);
  }
  return p;
}

} // namespace mlx::core::vulkan

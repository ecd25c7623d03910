// How subgroups share a tile that matrix units make. Free of MLX.
#pragma once

#include "vk/caps.h"

namespace mlx::core::vulkan {

// Subgroups of fewer than 32 lanes, Intel's, have few registers a lane: tiles
// of 16 sums a lane spill little there, of 32 many (by ANV's compiler; nothing
// was timed).
inline bool narrow(const MatrixUnits& units) {
  return units.lanes < 32;
}

// `v` with the units. Its WM x WN subgroups, meant for those of 32, are divided
// until narrower ones have so many invocations.
template <typename Variant>
Variant on_units(Variant v, const MatrixUnits& units, uint32_t invocations) {
  v.units = units;
  if (!narrow(units)) {
    return v;
  }
  while (v.WM * v.WN * units.lanes < invocations) {
    bool rows = v.BM / v.WM > v.BN / v.WN;
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

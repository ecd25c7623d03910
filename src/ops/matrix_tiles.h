// Distribution of a matrix-unit tile over subgroups. Free of MLX.
#pragma once

#include "vk/caps.h"

namespace mlx::core::vulkan {

// Subgroups of fewer than 32 lanes (Intel) have few registers per lane: with 16
// sums per lane little spills, with 32 much (ANV's compiler; not timed).
inline bool narrow(const MatrixUnits& units) {
  return units.lanes < 32;
}

// Adds the units to `v`. Its WM x WN subgroups, meant for 32 lanes, are
// multiplied until narrower ones have `invocations` in total.
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

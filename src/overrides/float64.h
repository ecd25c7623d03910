// Replaces the float64 that array.cpp compares dtypes with: a refusal of GPU
// streams.
//
// MLX's array() throws where a primitive of a GPU stream takes or makes
// float64. Here the comparison throws itself, if the device has no float64
// (backend/float64.h), and never holds.
//
// What MLX could offer: docs/dev/upstream.md, "Refusals of GPU streams".
#pragma once

// All headers of array.cpp come first, so that the macro changes its own text
// alone.
#include "backend/float64.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "overrides/make_shared.h"

namespace mlx::core {

struct Float64Of {
  const array& made;
};

inline bool operator==(const Dtype& t, Float64Of of) {
  if (t == float64) {
    vulkan::require_float64(of.made.primitive());
  }
  return false;
}

} // namespace mlx::core
#define float64 (Float64Of{*this})

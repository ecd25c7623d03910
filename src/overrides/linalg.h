// Replaces the to_stream() that linalg.cpp calls: refusals of GPU streams.
//
// MLX's linear algebra throws where to_stream(s).device is the GPU. Here it
// makes its primitives on GPU streams: the kernels are in src/ops/linalg, and
// what has none runs on the CPU in the stream's order (backend/on_cpu.h).
//
// What MLX could offer: docs/dev/upstream.md, "Refusals of GPU streams".
#pragma once

// All headers of linalg.cpp come first, so that the macro changes its own text
// alone.
#include <numeric>
#include <ostream>
#include <vector>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/linalg.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

namespace mlx::core::linalg {

// Differs from all devices.
struct NoDevice {
  bool operator==(Device::DeviceType) const {
    return false;
  }
};

// The stream for a primitive; its device passes all checks.
struct PassingStream : Stream {
  explicit PassingStream(const Stream& s) : Stream(s) {}
  NoDevice device;
};

inline PassingStream passing_stream(StreamOrDevice s) {
  return PassingStream(to_stream(s));
}

} // namespace mlx::core::linalg
#define to_stream passing_stream

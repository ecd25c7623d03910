// Recognition of Metal kernels for which this backend has an equivalent, faster
// kernel. Free of Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "mlx/array.h"

#include "msl/translate.h"
#include "ops/gated_delta/gated_delta.h"

namespace mlx::core::vulkan {

// Hash of header and body without comments, white space, and the names of the
// function and its arguments.
uint64_t fingerprint(const msl::Source& source);

// A recognized gated delta rule without a mask: rows of the state per grid
// column, and whether gates are vectors.
struct GatedDeltaKernel {
  int rows = 1;
  bool vector_gates = false;
};
std::optional<GatedDeltaKernel> gated_delta_kernel(const msl::Source& source);

struct CustomCall {
  const msl::Source& source;
  const std::vector<array>& inputs;
  const std::tuple<int, int, int>& grid;
  const std::tuple<int, int, int>& threadgroup;
};

// Allocates and computes the outputs and returns true if a kernel was
// recognized, the call's shapes, dtypes and grid match, and it has more than a
// few steps. For few steps the translation is as fast and keeps its bits, which
// packages compare with those of kernels that verify speculated tokens.
bool run_as_gated_delta(
    const std::optional<GatedDeltaKernel>& kernel,
    const CustomCall& call,
    std::vector<array>& outputs,
    StreamEncoder& enc);

} // namespace mlx::core::vulkan

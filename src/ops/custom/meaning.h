// Metal kernels of packages that mean what a kernel of this backend computes,
// faster than their translation. Free of Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "mlx/array.h"

#include "msl/translate.h"
#include "ops/gated_delta/gated_delta.h"

namespace mlx::core::vulkan {

// Of header and body without comments and white space. Names of the function
// and of its arguments are not in it.
uint64_t fingerprint(const msl::Source& source);

// One step of the gated delta rule after the other, without a mask: rows of the
// state in a column of the grid, and what the arguments are called.
struct GatedDeltaKernel {
  int rows = 1;
  bool vector_gates = false;
};
std::optional<GatedDeltaKernel> gated_delta_kernel(const msl::Source& source);

// A call of it as operands of gated_delta(), if its shapes, dtypes and grid are
// those that the kernel is written for and it has more than a few steps. Few
// steps stay with the translation: it is not slower there, and packages compare
// its bits with those of kernels that verify speculated tokens.
std::optional<GatedDelta> gated_delta_call(
    const GatedDeltaKernel& kernel,
    const msl::Source& source,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    const std::tuple<int, int, int>& grid,
    const std::tuple<int, int, int>& threadgroup);

} // namespace mlx::core::vulkan

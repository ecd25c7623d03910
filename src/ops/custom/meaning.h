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

struct CustomCall {
  const msl::Source& source;
  const std::vector<array>& inputs;
  const std::tuple<int, int, int>& grid;
  const std::tuple<int, int, int>& threadgroup;
};

// Gives the outputs memory and their values, and is true, if there is such a
// kernel, the call's shapes, dtypes and grid are those that it is written for,
// and it has more than a few steps. Few stay with the translation: it is not
// slower there, and packages compare its bits with those of kernels that verify
// speculated tokens.
bool run_as_gated_delta(
    const std::optional<GatedDeltaKernel>& kernel,
    const CustomCall& call,
    std::vector<array>& outputs,
    StreamEncoder& enc);

} // namespace mlx::core::vulkan

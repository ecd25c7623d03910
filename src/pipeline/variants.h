// The first line of a kernel names a representative set of its variants:
//   // variants: T=f32,bf16 ROWS=1,4 ; T=u8 ROWS=1 LARGE=1
// Values of a name multiply; `;` separates alternatives. A line without any
// name stands for the one variant without defines.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/key.h"

namespace mlx::core::vulkan {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// Empty if the first line is no variants line.
std::vector<NamedValues> parse_variants(std::string_view source);

// "T=bf16" is a Type, "N=-4" an integer, anything else text. The result refers
// to `values`.
std::vector<Define> to_defines(const NamedValues& values);

} // namespace mlx::core::vulkan

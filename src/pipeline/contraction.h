// Floating-point contraction: a driver may make a * b + c one rounded
// operation, differently in each kernel. A kernel whose source has the line
//   #pragma STDC FP_CONTRACT OFF
// forbids it for all of itself, as C does: every float operation rounds, in
// the order written. fma() stays what it is. Free of Vulkan calls.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

// Changes whenever the pass below makes other code of the same module; part of
// every cache key.
constexpr int contraction_version = 1;

// Whether one of the text's lines is that pragma; included files do not count.
bool forbids_contraction(std::string_view text);

// Adds NoContraction to each floating-point arithmetic instruction of the
// module. Throws std::invalid_argument if the words are not a SPIR-V module.
std::vector<uint32_t> without_contraction(const std::vector<uint32_t>& spirv);

} // namespace mlx::core::vulkan

// Custom kernels without a device: parsing of MLX's text of a kernel, GLSL of
// vulkan_kernel, and dispatches of an exact grid. Free of MLX and Vulkan.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "msl/translate.h"
#include "vk/caps.h"
#include "vk/type.h"

namespace mlx::core::vulkan {

// First header line that marks the source as GLSL for metal_kernel(), followed
// by " subgroup_size=N" (0: any). As part of the header it survives mx.compile,
// mx.export_function and the primitive.
constexpr std::string_view glsl_marker = "// mlx_vulkan.fast.vulkan_kernel";

// A kernel as given by the call.
struct CustomSource {
  msl::Source source; // `name` as given by the user
  bool glsl = false; // source of a vulkan_kernel
  uint32_t subgroup_size = 0; // requested by vulkan_kernel
  // Title for messages: "[metal_kernel] scale".
  std::string title() const;
  // Throws std::invalid_argument with the title and `why`.
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument(title() + ": " + why);
  }
};

// Parses the text that MLX's metal_kernel() generates (mlx/backend/common):
// header, signature, body and instantiation. Exported graphs hold the same
// text. `name` is the function's name, `arguments` its buffer count. Throws
// std::invalid_argument for other text.
CustomSource parse_custom_source(
    std::string_view name,
    std::string_view text,
    size_t arguments);

// Length of the comment at the start of a kernel's text; 0: none.
size_t comment_length(std::string_view text);

// Compute shader of a vulkan_kernel. Throws std::invalid_argument for reserved
// names and built-in variables.
msl::Translation glsl_of(const CustomSource& kernel, bool whole_loops);

// Locations of the source's loops, for messages: "line 3 of the body"; empty if
// there are none.
std::string loops_of(const CustomSource& kernel);
// Guaranteed subgroup size of a pipeline that requests `wanted`; without a
// request (0), or if requests are not supported, the device's minimum.
uint32_t sure_subgroup(const Caps& caps, uint32_t wanted);

// Part of a grid: `count` workgroups of `threads`; `base` is the first one in
// threadgroups of the whole grid.
struct ExactDispatch {
  std::array<uint32_t, 3> base{}, count{}, threads{};
};

// Covers a grid of `threads` exactly with workgroups of `group`, and smaller
// ones at the ends; at most `most` workgroups an axis. Empty for an empty grid.
std::vector<ExactDispatch> exact_dispatches(
    const std::array<uint32_t, 3>& threads,
    const std::array<uint32_t, 3>& group,
    uint32_t most = 65535);

} // namespace mlx::core::vulkan

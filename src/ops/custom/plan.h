// Custom kernels without a device: what MLX's text of one says, the GLSL of
// vulkan_kernel's, and the dispatches of an exact grid. Free of MLX and Vulkan.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msl/translate.h"
#include "vk/caps.h"
#include "vk/type.h"

namespace mlx::core::vulkan {

// The first line of a header that makes metal_kernel() take the source for
// GLSL, followed by " subgroup_size=N" (0: any). In the header it travels with
// the graph: through mx.compile, mx.export_function and the primitive.
constexpr std::string_view glsl_marker = "// mlx_vulkan.fast.vulkan_kernel";

// A kernel as its call gave it.
struct CustomSource {
  msl::Source source; // `name` as the user gave it
  bool glsl = false; // vulkan_kernel's
  uint32_t subgroup_size = 0; // asked for by it
  // "[metal_kernel] scale", for messages.
  std::string title() const;
};

// From what MLX's metal_kernel() generates (mlx/backend/common): header,
// signature, body and instantiation as one text, which is also what an exported
// graph holds, whoever exported it. `name` is the function's, `arguments` how
// many buffers it takes. Throws std::invalid_argument for another text.
CustomSource parse_custom_source(
    std::string_view name,
    std::string_view text,
    size_t arguments);

// The length of the comment that a kernel's text begins with; 0: none.
size_t comment_length(std::string_view text);

// The GPU type of an argument. Throws std::invalid_argument for float64.
Type type_of_argument(
    const CustomSource& kernel,
    const msl::Argument& argument);

// A vulkan_kernel as a compute shader with workgroups of `threads`. Its
// argument block is as msl::Translation says. Throws std::invalid_argument for
// names and built-in variables that it must not use.
std::string glsl_of(
    const CustomSource& kernel,
    const std::array<uint32_t, 3>& threads);

// Whether threads of a kernel have nothing to do with each other, so that it
// does not matter in which workgroups they are: of its translation if it is not
// GLSL itself. In doubt false.
bool is_independent(const CustomSource& kernel, std::string_view glsl);
// The shader of such a kernel for whole workgroups: who is outside of the grid
// does nothing.
std::string with_guard(const CustomSource& kernel, std::string glsl);

// Where the source has loops, for messages: "line 3 of the body"; empty: it has
// none.
std::string loops_of(const CustomSource& kernel);
// The shader of a kernel with loops for software devices: it ends by showing
// whether its loops were whole (pipeline/cut_loops.h). Its argument block goes
// on with the `uint` and the `uint64_t` of CutLoops.
std::string with_whole_loops(const CustomSource& kernel, std::string glsl);

// Invocations of a subgroup that a pipeline which asks for `wanted` is sure to
// have; without wishes (0), or where wishes are not granted, the least.
uint32_t sure_subgroup(const Caps& caps, uint32_t wanted);

// Part of a grid: `count` workgroups of `threads`, of which the first is at
// `base`, in threadgroups of the whole grid.
struct ExactDispatch {
  std::array<uint32_t, 3> base{}, count{}, threads{};
};

// A grid of `threads` invocations in workgroups of `group`, none of which is
// outside of the grid: full workgroups, and at its ends smaller ones. No axis
// of a part has more than `most` workgroups. Empty for an empty grid.
std::vector<ExactDispatch> exact_dispatches(
    const std::array<uint32_t, 3>& threads,
    const std::array<uint32_t, 3>& group,
    uint32_t most = 65535);

} // namespace mlx::core::vulkan

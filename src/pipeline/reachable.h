// Leaves out functions that a kernel does not call. Headers define each
// function for every type; parsing them takes glslang most of its time.
#pragma once

#include <string>
#include <string_view>

namespace mlx::core::vulkan {

// `text` is preprocessed GLSL. Functions of files named *.glsl become empty
// lines unless a text that is kept has their name.
std::string reachable_only(std::string_view text);

} // namespace mlx::core::vulkan

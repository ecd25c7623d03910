// Requests for kernels as text: those that a process made, so that a later one
// builds them early (PipelineTable::prepare()), and those that the library
// ships (shipped.h).
//
//   globals FLOAT_CONTROLS=1 NATIVE_F16=1      holds for all kernels below
//   norm{T=f32 LAYER=0 WEIGHT=1}               src/kernels/norm.comp
//   *sort{T=u32}                               with its arguments in memory
//   Multiply{FORM=3} 2210                      generated: as many bytes of GLSL
//                                              follow
// Empty lines, and lines that begin with '#', are skipped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/key.h"

namespace mlx::core::vulkan {

struct ListedKernel {
  NamedValues globals;
  std::string file; // as in kernel_source()
  NamedValues defines;
  std::string source; // of generated GLSL
  bool args_in_memory = false;

  bool operator==(const ListedKernel&) const = default;
};

// Kernels whose names or values have a space, brace or line break are left out.
std::string text_of(std::span<const ListedKernel> kernels);

// Nothing for a text that text_of() cannot have written.
std::optional<std::vector<ListedKernel>> kernels_in(std::string_view text);

} // namespace mlx::core::vulkan

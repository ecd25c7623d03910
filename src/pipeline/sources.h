// Kernel sources: the text embedded from src/kernels, or the files of
// MLX_VK_KERNEL_PATH if set; for tests also additional files
// (MLX_VK_TEST=kernels=FOLDER). Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

struct EmbeddedSource {
  const char* name; // relative to src/kernels
  const char* text;
};
extern const EmbeddedSource embedded_sources[];
extern const size_t embedded_source_count;
// Names are relative to src/ops/tuned/rows (ops/tuned/plan.h).
extern const EmbeddedSource embedded_rows[];
extern const size_t embedded_row_count;

// "softmax" and "softmax.comp" name the same file.
std::string source_name(std::string_view file);

// The text of a file named relative to src/kernels; empty for a path outside of
// it.
std::optional<std::string> read_source(std::string_view name);

struct IncludedSource {
  std::string name; // relative to src/kernels
  std::string text; // empty if there is no such file
};
// All direct and indirect includes of `text`, each once, depth first.
std::vector<IncludedSource> included_sources(std::string_view text);

// `text` followed by every file it includes, directly or not, each once. Two
// sources that expand alike compile alike; a cache key, not for the compiler.
std::string with_includes(std::string_view text);

// Replaces MLX_VK_KERNEL_PATH; empty means the embedded sources.
void set_kernel_path(std::string path);

} // namespace mlx::core::vulkan

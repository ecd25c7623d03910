// Choices of `mlx-vulkan tune` as text (JSON), and the texts that the source
// tree has of chips: src/ops/tuned/rows/CLASS/CHIP.json, with a class of
// vk/gpu_class.h and a part of the device's name. Pure functions, tested
// without a GPU.
#pragma once

#include <span>

#include "ops/tuned/plan.h"
#include "pipeline/sources.h"

namespace mlx::core::vulkan {

struct Choice {
  uint64_t problem = 0; // class_of()
  std::string view; // its name
  uint64_t plan = 0; // that the view gave for `sizes`: another one is not used
  Sizes sizes{};
};

// Nothing where the text is no table of choices among these plans.
std::optional<std::vector<Choice>> choices_in(const std::string& text);

// Whether the view still gives the plan that was chosen for a problem of its
// class, and the device can run it.
bool holds(const Views& views, uint32_t view, const Choice& c, Planned p);

// The texts of the device's chip among `rows`.
std::vector<std::string> rows_of(
    const Caps& device,
    std::span<const EmbeddedSource> rows);

} // namespace mlx::core::vulkan

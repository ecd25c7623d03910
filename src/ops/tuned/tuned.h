// The plans in force: the choices of `mlx-vulkan tune`, else those of the plans
// (ops/tuned/plan.h). Choices come from a file beside the kernel cache, named
// by device, driver and version; a damaged or foreign one is as good as none.
// Without one, they come from the rows of the chip, if the source tree has any.
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "ops/tuned/plan.h"

namespace mlx::core::vulkan {

// The first call loads the choices.
std::optional<QuantPlan> tuned_plan(const Target& device, const QuantShape& s);
GemmPlan tuned_plan(const Target& device, const GemmProblem& p);
NormVariant tuned_plan(const Target& device, const NormProblem& p);
// Of attention that uses_decode(), and of other.
DecodePlan tuned_decode(const Target& device, const AttentionProblem& p);
PrefillPlan tuned_prefill(const Target& device, const AttentionProblem& p);
void load_choices(const Target& device);

// For the tuner: what plans see, the choices in force from now on, and problems
// that are looked up. While recording, the first one of each class is kept.
const Target& planned_target();
void use_choices(const std::vector<Choice>& choices);
void record_problems(bool on); // forgets earlier ones
struct Recorded {
  Planned problem;
  uint64_t calls = 0;
};
std::vector<Recorded> recorded_problems();

// The file's text, JSON; empty if there is none.
std::string tuned_text(const Caps& device);
// False if it cannot be written.
bool store_tuned_text(const Caps& device, std::string_view text);
// The rows that the source tree has of the device's chip, as texts; with
// MLX_VK_TEST=rows=FILE, that file instead.
std::vector<std::string> rows_of(const Caps& device);

} // namespace mlx::core::vulkan

// The choices of `mlx-vulkan tune`: which view of the device plans a class of
// problems (ops/tuned/plan.h). They come from a file beside the kernel cache,
// named by device, driver and version; a damaged or foreign one is as good as
// none. Without one, they come from the rows of the chip, if the source tree
// has any. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "ops/tuned/plan.h"

namespace mlx::core::vulkan {

// The device with the policy that plans are to have for this problem. The first
// call loads the choices.
const Target& tuned(const Target& device, const Planned& p);
void load_choices(const Target& device);

// The views of a started device, for the tuner.
const Views& views();
// Whether this process has made views. Only choices and a tuner need them.
bool made_views();
// The choices in force from now on.
void use_choices(const std::vector<Choice>& choices);
// While on, the first problem of each class that is looked up is kept.
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

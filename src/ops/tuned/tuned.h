// The choices of `mlx-vulkan tune`: which view of the device plans a class of
// problems (ops/tuned/plan.h). They come from a file beside the kernel cache,
// named by device, driver and version; a damaged or foreign one is as good as
// none. Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "ops/tuned/plan.h"

namespace mlx::core::vulkan {

struct Choice {
  uint64_t problem = 0; // class_of()
  uint32_t view = 0;
  uint64_t plan = 0; // that the view gave for `sizes`: another one is not used
  Sizes sizes{};
};

// Whether any problem is to be looked up: there are choices, a class for tests,
// or a tuner that records. Loads the file at the first call.
bool looks_up(const Caps& device);
const Caps& looked_up(const Caps& device, const Planned& p);

// The device as plans are to see it for this problem.
template <typename Problem>
const Caps& tuned(const Caps& device, const Problem& p) {
  return looks_up(device) ? looked_up(device, p) : device;
}

// For the tuner, of a started device.
const Views& views();
// The choices in force from now on.
void use_choices(const std::vector<Choice>& choices);
// While it records, problems that are looked up are kept, once a class.
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
// Choices in such a text of which this library knows the views; empty if it is
// not one.
std::vector<Choice> choices_in(const Views& views, const std::string& text);

} // namespace mlx::core::vulkan

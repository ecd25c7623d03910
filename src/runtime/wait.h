// How a thread waits for the device. Pure, free of Vulkan.
//
// Polling is exact and takes a core; an interrupt came up to 10 ms late in a
// virtual machine with an H200. So a wait polls at first, then sleeps in slices
// that are short against what it has waited already, and looks in between.
#pragma once

#include <algorithm>
#include <chrono>

namespace mlx::core::vulkan {

struct WaitPolicy {
  // Sleep in the driver. Where the device is this machine's CPU its wake-up is
  // prompt, and polling would take the cores that do the work.
  bool interrupts = false;
  std::chrono::nanoseconds spin{1'500'000}; // polls without a sleep
};

// The sleep before the next look, `waited` after the wait began; 0: look at
// once. A sleep takes about 50 us more than asked for (Linux's timer slack) and
// a look about 5 us of CPU: up to 200 ms a wait ends at most 0.1 ms late for 7
// % of a core, later ones at most 0.03 % or 2 ms late.
inline std::chrono::nanoseconds next_sleep(
    std::chrono::nanoseconds waited,
    std::chrono::nanoseconds spin) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds least{30'000}, most{2'000'000};
  if (waited < spin) {
    return nanoseconds::zero();
  }
  return std::clamp(waited / 4096, least, most);
}

} // namespace mlx::core::vulkan

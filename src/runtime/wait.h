// How a thread waits for the device. Pure, free of Vulkan.
//
// Polling is exact and occupies a core; an interrupt can be 10 ms late in a
// virtual machine. So a wait polls first, then sleeps for slices that are short
// compared with the time waited so far, and polls between them.
#pragma once

#include <algorithm>
#include <chrono>

namespace mlx::core::vulkan {

struct WaitPolicy {
  // Wait in the driver. For software devices: the wake-up is prompt, and
  // polling would occupy the cores that compute.
  bool interrupts = false;
  std::chrono::nanoseconds spin{1'500'000}; // polls without a sleep
};

// The sleep before the next poll, `waited` after the wait began; 0 polls at
// once. A sleep takes about 50 us longer than requested (Linux's timer slack)
// and a poll about 5 us of CPU. A wait of up to 200 ms ends at most 0.1 ms late
// and costs 7 % of a core; a longer one ends at most 0.03 % or 2 ms late.
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

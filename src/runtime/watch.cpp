#include "runtime/watch.h"

#include <algorithm>

namespace mlx::core::vulkan {

bool Watch::hangs(
    uint64_t ticket,
    uint32_t done,
    Time now,
    std::chrono::nanoseconds limit) {
  if (ticket != ticket_ || done != done_) {
    told_ = told_ && ticket == ticket_;
    ticket_ = ticket;
    done_ = done;
    since_ = now;
  }
  if (told_ || limit.count() == 0 || now - since_ < limit) {
    return false;
  }
  return told_ = true;
}

std::string describe_hang(
    const std::string& device,
    uint32_t stream,
    std::chrono::nanoseconds limit,
    uint32_t done,
    uint32_t total,
    const std::vector<WatchedRecord>& in_flight) {
  constexpr size_t most = 8;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  std::string s = "[vulkan] " + device + " has made no progress for " +
      std::to_string(seconds.count()) + " s. A batch of stream " +
      std::to_string(stream) + " has finished " + std::to_string(done) +
      " of its " + std::to_string(total) + " kernels and is at";
  for (size_t i = 0; i < std::min(most, in_flight.size()); ++i) {
    auto& r = in_flight[i];
    s += (i == 0 ? ": " : ", ") + r.name + " with " + std::to_string(r.grid.x) +
        'x' + std::to_string(r.grid.y) + 'x' + std::to_string(r.grid.z) +
        " workgroups";
  }
  if (in_flight.size() > most) {
    s += " and " + std::to_string(in_flight.size() - most) + " more";
  }
  return s +
      ". If one of them may take so long here, raise MLX_VK_TIMEOUT (seconds; "
      "0: no watch). If not, it hangs: end the process, run `mlx-vulkan "
      "selftest`, and report its result with these lines.";
}

} // namespace mlx::core::vulkan

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
  constexpr size_t most = 40;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  std::string s = "[vulkan] " + device + " has made no progress for " +
      std::to_string(seconds.count()) + " s. A batch of stream " +
      std::to_string(stream) + " has finished " + std::to_string(done) +
      " of its " + std::to_string(total) + " kernels and is at one of:";
  // One line for each kernel and grid, in the order of their first dispatch.
  std::vector<std::pair<std::string, size_t>> lines;
  for (auto& r : in_flight) {
    std::string line = r.name + " with " + std::to_string(r.grid.x) + 'x' +
        std::to_string(r.grid.y) + 'x' + std::to_string(r.grid.z) +
        " workgroups";
    auto same = std::find_if(
        lines.begin(), lines.end(), [&](auto& l) { return l.first == line; });
    if (same == lines.end()) {
      lines.emplace_back(std::move(line), 1);
    } else {
      same->second++;
    }
  }
  for (size_t i = 0; i < std::min(most, lines.size()); ++i) {
    s += "\n  " + lines[i].first;
    if (lines[i].second > 1) {
      s += ", " + std::to_string(lines[i].second) + " times";
    }
  }
  if (lines.size() > most) {
    s += "\n  and " + std::to_string(lines.size() - most) + " more kinds";
  }
  if (in_flight.size() > 1) {
    s += "\nMLX_VK_DEBUG=watch tells which of these it is.";
  }
  return s +
      "\nIf one of them may take so long here, raise MLX_VK_TIMEOUT (seconds; "
      "0: no watch). If not, it hangs: end the process, run `mlx-vulkan "
      "selftest`, and report its result with these lines.";
}

} // namespace mlx::core::vulkan

#include "backend/fallback.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>

#include "runtime/profile.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

struct Decompositions {
  std::mutex mutex;
  std::map<std::string, uint64_t> calls;
};

// Leaked: graphs may still be built while statics are destroyed.
Decompositions& decompositions() {
  static auto* d = new Decompositions;
  return *d;
}

// Counts one, and says so when the name was not seen before.
void count(const std::string& name, const char* event) {
  auto& d = decompositions();
  counters().decompositions++;
  std::lock_guard lock(d.mutex);
  if (d.calls[name]++ == 0 && config().fallback == FallbackPolicy::Warn) {
    std::fprintf(stderr, "[vulkan] %s: %s\n", event, name.c_str());
  }
}

} // namespace

void count_decomposition(const std::string& name) {
  if (config().fallback == FallbackPolicy::Deny) {
    throw std::runtime_error(
        "[vulkan] " + name +
        " has no fused Vulkan kernel and MLX_VK_FALLBACK=deny forbids its "
        "decomposition. Unset the variable, or run this operation with "
        "stream=mx.cpu.");
  }
  count(name, "decomposed into several kernels");
}

void count_on_cpu(const std::string& name, const std::string& call) {
  if (config().fallback == FallbackPolicy::Deny) {
    throw std::runtime_error(
        "[vulkan] " + call +
        " has no Vulkan kernel and MLX_VK_FALLBACK=deny forbids to run it on the "
        "CPU. Unset the variable, or pass stream=mx.cpu.");
  }
  count(name + " on the CPU", "run on the CPU");
}

std::vector<FallbackCount> fallback_counts() {
  std::vector<FallbackCount> counts;
  auto& d = decompositions();
  {
    std::lock_guard lock(d.mutex);
    for (auto& [name, calls] : d.calls) {
      counts.push_back({name, calls});
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](auto& a, auto& b) {
    return a.calls > b.calls;
  });
  return counts;
}

} // namespace mlx::core::vulkan

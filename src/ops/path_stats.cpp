#include "ops/path_stats.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace mlx::core::vulkan {

namespace {

struct PathStats {
  std::mutex mutex;
  std::map<std::string, std::map<std::string, uint64_t>> lists;

  void print() {
    std::lock_guard lock(mutex);
    for (auto& [title, rows] : lists) {
      std::fprintf(stderr, "[mlx-vulkan] %s\n", title.c_str());
      for (auto& [row, count] : rows) {
        std::fprintf(
            stderr,
            "%9llu x %s\n",
            static_cast<unsigned long long>(count),
            row.c_str());
      }
    }
  }
};

PathStats& stats() {
  static auto* s = [] {
    std::atexit([] { stats().print(); });
    return new PathStats; // leaked: read at exit
  }();
  return *s;
}

} // namespace

void count_path(
    const char* title,
    const std::string& shape,
    const std::string& path,
    const char* why) {
  std::string row = shape + ": " + path;
  if (*why) {
    row += std::string(" (") + why + ")";
  }
  auto& s = stats();
  std::lock_guard lock(s.mutex);
  s.lists[title][row]++;
}

} // namespace mlx::core::vulkan

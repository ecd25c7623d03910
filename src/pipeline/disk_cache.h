// A folder of small checksummed files, shared by processes and threads. Never
// throws: a corrupt, truncated, foreign or unreadable entry is a miss, and an
// unwritable folder stores nothing. Entries run on the GPU in this process, so
// a folder writable by others is refused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlx::core::vulkan {

class DiskCache {
 public:
  static constexpr uint64_t default_max_bytes = uint64_t(256) << 20;

  // An empty folder disables the cache; so does one writable by users other
  // than this one and root, with a message on stderr. The folder is created at
  // the first put, accessible to its owner only.
  explicit DiskCache(
      std::filesystem::path folder,
      uint64_t max_bytes = default_max_bytes);

  bool enabled() const {
    return !folder_.empty() && refused_.empty();
  }
  const std::filesystem::path& folder() const {
    return folder_;
  }

  // Names are letters, digits, '-', '_' and '.'.
  std::optional<std::vector<std::byte>> get(std::string_view name);
  // Replaces the entry atomically: readers see the old bytes or the new ones.
  // Returns false if it was not stored.
  bool put(std::string_view name, std::span<const std::byte> bytes);

  // If the size limit is exceeded, deletes the oldest entries down to three
  // quarters of it. put() calls this occasionally.
  void evict();

  struct Status {
    uint64_t entries = 0, bytes = 0, limit = 0;
    std::string not_writable; // reason; empty if the folder is writable
    // Counters of this process's puts.
    uint64_t stored = 0, not_stored = 0;
    std::string why_not_stored; // error of the first failure
    std::vector<std::pair<std::string, uint64_t>> driver_caches; // name, bytes
  };
  // Tests writing and removes the test file.
  Status status() const;

  // Prefix of the names of drivers' pipeline caches.
  static constexpr std::string_view driver_prefix = "driver-";
  // Prefix of entries that are never evicted, since nothing recreates them.
  static constexpr std::string_view kept_prefix = "tuned-";

 private:
  struct Entry {
    std::string file;
    uint64_t size;
    std::filesystem::file_time_type time;
  };
  std::vector<Entry> files() const;
  std::filesystem::path path_of(std::string_view name) const;
  bool write_entry(std::string_view name, std::span<const std::byte> bytes);
  // Reason why nothing can be written, or empty.
  std::string try_to_write() const;
  void log(const char* event, const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::string refused_; // reason
  uint64_t max_bytes_;
  // Bytes put since the folder was last measured. Starts high, so that the
  // first put of a process measures it.
  std::atomic<uint64_t> unmeasured_;
  std::atomic<bool> logged_{false};
  std::atomic<uint64_t> stored_{0}, not_stored_{0};
  std::atomic<int> first_error_{0}; // an errno
};

// The cache of this process, in Config::cache.
DiskCache& default_disk_cache();

} // namespace mlx::core::vulkan

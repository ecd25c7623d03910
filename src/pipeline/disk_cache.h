// A folder of small checked files, shared by any number of processes and
// threads. Never throws and never fails a caller: an entry that is corrupt,
// truncated, foreign or unreadable is a miss, and a folder that cannot be
// written means that nothing is stored. What it holds runs on the GPU in this
// process, so a folder in which others can write is not used at all.
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

  // An empty folder disables the cache, and so does one that others than this
  // user and root can write to; stderr is told. The folder is made at the first
  // put, for its owner alone.
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
  // Replaces the entry as a whole: readers see the old bytes or the new ones.
  // False if it was not stored.
  bool put(std::string_view name, std::span<const std::byte> bytes);

  // Deletes the oldest entries until three quarters of the bound are left, if
  // the bound is passed. put() calls it now and then.
  void evict();

  struct Status {
    uint64_t entries = 0, bytes = 0, limit = 0;
    std::string not_writable; // why; empty: it is
    // Of this process's puts.
    uint64_t stored = 0, not_stored = 0;
    std::string why_not_stored; // the first one's error
    std::vector<std::pair<std::string, uint64_t>> driver_caches; // name, bytes
  };
  // Tries to write, and leaves nothing behind.
  Status status() const;

  // Names of the drivers' own pipeline caches begin with this.
  static constexpr std::string_view driver_prefix = "driver-";

 private:
  struct Entry {
    std::string file;
    uint64_t size;
    std::filesystem::file_time_type time;
  };
  std::vector<Entry> files() const;
  std::filesystem::path path_of(std::string_view name) const;
  bool write_entry(std::string_view name, std::span<const std::byte> bytes);
  // Why nothing can be written; empty if it can.
  std::string try_to_write() const;
  void log(const char* what, const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::string refused_; // why
  uint64_t max_bytes_;
  // Bytes put since the folder was last measured; starts high, so that the
  // first put of a process measures it.
  std::atomic<uint64_t> unmeasured_;
  std::atomic<bool> logged_{false};
  std::atomic<uint64_t> stored_{0}, not_stored_{0};
  std::atomic<int> first_error_{0}; // an errno
};

// The cache of this process, in Config::cache.
DiskCache& default_disk_cache();

} // namespace mlx::core::vulkan

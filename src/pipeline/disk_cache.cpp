#include "pipeline/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>

#include "pipeline/hash.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace fs = std::filesystem;

namespace {

constexpr uint32_t version = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t name_hash;
  uint64_t length;
  uint64_t checksum;
};

uint64_t hash_bytes(const void* data, size_t size) {
  Hasher h;
  h.add(std::string_view(static_cast<const char*>(data), size));
  return h.a();
}

Header header_of(std::string_view name, std::span<const std::byte> bytes) {
  Header h{};
  std::memcpy(h.magic, "MLXVKCCH", 8);
  h.version = version;
  h.header_size = sizeof(Header);
  h.name_hash = hash_bytes(name.data(), name.size());
  h.length = bytes.size();
  h.checksum = hash_bytes(bytes.data(), bytes.size());
  return h;
}

class File {
 public:
  File(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const {
    return fd_ >= 0;
  }
  int fd() const {
    return fd_;
  }
  bool read(void* data, size_t size) {
    return each_piece(::read, static_cast<char*>(data), size);
  }
  bool write(const void* data, size_t size) {
    return each_piece(::write, static_cast<const char*>(data), size);
  }
  // False if the last bytes could not be stored.
  bool close() {
    int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  // A call may move less than it is asked to, or be interrupted.
  template <typename Byte>
  bool each_piece(auto call, Byte* p, size_t size) {
    while (size > 0) {
      ssize_t n = call(fd_, p, size);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return false;
      }
      p += n;
      size -= n;
    }
    return true;
  }

  int fd_;
};

constexpr std::string_view extension = ".entry";
constexpr std::string_view temporary_mark = ".tmp-";

// Unique over processes, threads and machines that share the folder.
std::string temporary_suffix() {
  static const uint32_t seed = std::random_device{}();
  static std::atomic<uint64_t> counter{0};
  return std::string(temporary_mark) + std::to_string(::getpid()) + '-' +
      std::to_string(seed) + '-' + std::to_string(counter++);
}

// Keeps errno.
void remove_failed(const fs::path& temporary) {
  int error = errno;
  ::unlink(temporary.c_str());
  errno = error;
}

// Reason why an existing folder is not trusted; empty if it is.
std::string why_refused(const fs::path& folder) {
  struct stat info {};
  if (folder.empty() || ::stat(folder.c_str(), &info) != 0 ||
      !S_ISDIR(info.st_mode)) {
    return {};
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return folder.string() +
        " belongs to another user, who could put kernels into this process. "
        "Set MLX_VK_CACHE to a folder of your own.";
  }
  if (info.st_mode & (S_IWGRP | S_IWOTH)) {
    return "other users can write to " + folder.string() +
        " and so put kernels into this process. Run: chmod go-w " +
        folder.string();
  }
  return {};
}

} // namespace

DiskCache::DiskCache(fs::path folder, uint64_t max_bytes)
    : folder_(std::move(folder)),
      refused_(why_refused(folder_)),
      max_bytes_(max_bytes),
      unmeasured_(max_bytes) {
  if (!refused_.empty()) {
    std::fprintf(
        stderr, "[mlx-vulkan] The kernel cache is off: %s\n", refused_.c_str());
  }
}

fs::path DiskCache::path_of(std::string_view name) const {
  return folder_ / (std::string(name) + std::string(extension));
}

void DiskCache::log(const char* event, const fs::path& path) {
  if (config().debug_cache && !logged_.exchange(true)) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] kernel cache: %s %s (%s)\n",
        event,
        path.c_str(),
        std::strerror(errno));
  }
}

std::optional<std::vector<std::byte>> DiskCache::get(std::string_view name) {
  if (!enabled()) {
    return {};
  }
  auto path = path_of(name);
  // Not blocking: a pipe or device of this name must not hang the caller.
  File file(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!file || ::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return {};
  }
  Header h;
  if (!file.read(&h, sizeof h) || std::memcmp(h.magic, "MLXVKCCH", 8) != 0 ||
      h.version != version || h.header_size != sizeof h ||
      h.name_hash != hash_bytes(name.data(), name.size()) ||
      uint64_t(info.st_size) < sizeof h ||
      h.length != uint64_t(info.st_size) - sizeof h) {
    log("ignoring a damaged entry,", path);
    return {};
  }
  std::vector<std::byte> bytes(h.length);
  if (!file.read(bytes.data(), bytes.size()) ||
      h.checksum != hash_bytes(bytes.data(), bytes.size())) {
    log("ignoring a damaged entry,", path);
    return {};
  }
  // Eviction goes by age: an entry in use is renewed once a day.
  if (::time(nullptr) - info.st_mtime > 24 * 3600) {
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  }
  return bytes;
}

bool DiskCache::put(std::string_view name, std::span<const std::byte> bytes) {
  if (!enabled()) {
    return false;
  }
  if (!write_entry(name, bytes)) {
    int none = 0;
    first_error_.compare_exchange_strong(none, errno);
    ++not_stored_;
    return false;
  }
  ++stored_;
  if (unmeasured_ += sizeof(Header) + bytes.size();
      unmeasured_ > max_bytes_ / 8) {
    unmeasured_ = 0;
    evict();
  }
  return true;
}

// False with errno set.
bool DiskCache::write_entry(
    std::string_view name,
    std::span<const std::byte> bytes) {
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    fs::create_directories(folder_.parent_path(), error);
    ::mkdir(folder_.c_str(), 0700);
  }
  auto path = path_of(name);
  fs::path temporary = path;
  temporary += temporary_suffix();
  auto h = header_of(name, bytes);
  {
    File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) {
      log("cannot write", temporary);
      return false;
    }
    if (!file.write(&h, sizeof h) || !file.write(bytes.data(), bytes.size()) ||
        !file.close()) {
      log("cannot write", temporary);
      remove_failed(temporary);
      return false;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    log("cannot replace", path);
    remove_failed(temporary);
    return false;
  }
  return true;
}

std::string DiskCache::try_to_write() const {
  // The first put makes the folder, with its parents.
  fs::path last = fs::absolute(folder_);
  std::error_code error;
  while (!fs::exists(last, error) && last.has_relative_path()) {
    last = last.parent_path();
  }
  if (!fs::is_directory(last, error)) {
    return last.string() + " is not a folder";
  }
  auto failed = [&] { return last.string() + ": " + std::strerror(errno); };
  auto probe = last / ("probe" + temporary_suffix());
  if (last != fs::absolute(folder_)) {
    if (::mkdir(probe.c_str(), 0700) != 0) {
      return failed();
    }
    ::rmdir(probe.c_str());
    return {};
  }
  File file(probe, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) {
    return failed();
  }
  const std::vector<std::byte> kernel(16 << 10); // the size of a kernel
  bool written = file.write(kernel.data(), kernel.size()) && file.close();
  auto why = written ? std::string() : failed();
  ::unlink(probe.c_str());
  return why;
}

std::vector<DiskCache::Entry> DiskCache::files() const {
  std::vector<Entry> found;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    // Files can vanish, because other processes evict entries.
    std::error_code gone;
    Entry e{it->path().filename().string(), 0, it->last_write_time(gone)};
    if (gone || !it->is_regular_file(gone)) {
      continue;
    }
    e.size = it->file_size(gone);
    if (!gone) {
      found.push_back(std::move(e));
    }
  }
  return found;
}

void DiskCache::evict() {
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code gone;
  auto now = fs::file_time_type::clock::now();
  for (auto& e : files()) {
    if (e.file.find(std::string(extension) + std::string(temporary_mark)) !=
        e.file.npos) {
      // A process that was killed has left this file.
      if (now - e.time > std::chrono::hours(1)) {
        fs::remove(folder_ / e.file, gone);
      }
    } else if (
        e.file.ends_with(extension) && !e.file.starts_with(kept_prefix)) {
      total += e.size;
      entries.push_back(std::move(e));
    }
  }
  if (total <= max_bytes_) {
    return;
  }
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) {
    return a.time < b.time;
  });
  for (auto& e : entries) {
    if (total <= max_bytes_ / 4 * 3) {
      break;
    }
    fs::remove(folder_ / e.file, gone);
    total -= e.size;
  }
}

DiskCache::Status DiskCache::status() const {
  Status s;
  s.limit = max_bytes_;
  if (!enabled()) {
    s.not_writable = refused_.empty() ? "the cache is off" : refused_;
    return s;
  }
  for (auto& e : files()) {
    if (e.file.ends_with(extension)) {
      s.entries++;
      s.bytes += e.size;
      if (e.file.starts_with(driver_prefix)) {
        e.file.resize(e.file.size() - extension.size());
        s.driver_caches.emplace_back(std::move(e.file), e.size);
      }
    }
  }
  s.not_writable = try_to_write();
  s.stored = stored_;
  s.not_stored = not_stored_;
  if (s.not_stored > 0) {
    s.why_not_stored = std::strerror(first_error_);
  }
  return s;
}

DiskCache& default_disk_cache() {
  // Never destroyed: used by threads that outlive static destructors.
  static auto* cache = new DiskCache(config().cache);
  return *cache;
}

} // namespace mlx::core::vulkan

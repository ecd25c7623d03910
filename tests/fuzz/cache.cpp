// A folder of the disk cache with files of any bytes and names. What get()
// returns is what put() was given, and a changed file is a miss.
// Input: a byte that says what, a name, a zero byte, and the file.
#include <sys/stat.h>

#include <filesystem>
#include <span>

#include "fuzz/fuzz.h"
#include "pipeline/disk_cache.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/mlxvk-fuzz-XXXXXX";
    FUZZ_CHECK(::mkdtemp(name));
    path = name;
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  fs::path path;
};

using Bytes = std::span<const std::byte>;

void store(const fs::path& path, Bytes bytes) {
  FILE* f = std::fopen(path.c_str(), "wb");
  FUZZ_CHECK(
      f && std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size());
  std::fclose(f);
}

std::vector<std::byte> load(const fs::path& path) {
  std::vector<std::byte> bytes(fs::file_size(path));
  FILE* f = std::fopen(path.c_str(), "rb");
  FUZZ_CHECK(f && std::fread(bytes.data(), 1, bytes.size(), f) == bytes.size());
  std::fclose(f);
  return bytes;
}

// A file that nobody checked: a miss, unless it is what put() writes.
void raw(DiskCache& cache, const fs::path& folder, Bytes bytes) {
  store(folder / "k.entry", bytes);
  if (auto got = cache.get("k")) {
    FUZZ_CHECK(cache.put("k", *got));
    auto again = load(folder / "k.entry");
    FUZZ_CHECK(
        std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  }
}

// An entry as put() writes it with one byte changed.
void changed(DiskCache& cache, const fs::path& folder, Bytes bytes) {
  if (bytes.size() < 3) {
    return;
  }
  auto content = bytes.subspan(3);
  FUZZ_CHECK(cache.put("k", content));
  auto got = cache.get("k");
  FUZZ_CHECK(
      got &&
      std::equal(got->begin(), got->end(), content.begin(), content.end()));
  auto file = load(folder / "k.entry");
  size_t at = (size_t(bytes[0]) | size_t(bytes[1]) << 8) % file.size();
  file[at] ^= bytes[2];
  store(folder / "k.entry", file);
  FUZZ_CHECK(!cache.get("k") == (bytes[2] != std::byte(0)));
}

// Any file in the folder: what lists it and clears it up takes no harm.
void listed(const fs::path& folder, std::string name, Bytes bytes) {
  std::erase(name, '/');
  if (name.empty() || name == "." || name == ".." || name.size() > 200) {
    return;
  }
  store(folder / name, bytes);
  DiskCache small(folder, 64);
  auto status = small.status();
  FUZZ_CHECK(status.entries <= 2 && status.not_writable.empty());
  small.evict();
  fs::remove(folder / name);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Folder folder;
  static DiskCache cache(folder.path);
  if (size == 0) {
    return 0;
  }
  Bytes bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      raw(cache, folder.path, bytes);
      break;
    case 1:
      changed(cache, folder.path, bytes);
      break;
    default: {
      auto text = fuzz::text(data + 1, size - 1);
      auto end = std::min(text.find('\0'), text.size());
      listed(folder.path, std::string(text.substr(0, end)), bytes.subspan(end));
    }
  }
  return 0;
}

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "pipeline/disk_cache.h"
#include "variants/compile.h"
#include "vk/config.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder()
      : path(
            fs::temp_directory_path() /
            ("mlxvk-cache-" + std::to_string(std::random_device{}()))) {}
  ~Folder() {
    std::error_code e;
    fs::permissions(path, fs::perms::owner_all, e);
    fs::remove_all(path, e);
  }
  fs::path path;
};

std::vector<std::byte> bytes(size_t n, int seed = 0) {
  std::vector<std::byte> b(n);
  for (size_t i = 0; i < n; ++i) {
    b[i] = std::byte((i * 31 + seed * 7 + 3) & 0xff);
  }
  return b;
}

std::vector<std::byte> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> b(fs::file_size(path));
  in.read(reinterpret_cast<char*>(b.data()), b.size());
  return b;
}

void write(const fs::path& path, const std::vector<std::byte>& b) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(b.data()), b.size());
}

uint64_t folder_size(const fs::path& path) {
  uint64_t n = 0;
  for (auto& e : fs::directory_iterator(path)) {
    n += e.file_size();
  }
  return n;
}

constexpr const char* kernel =
    "#include \"common/types.glsl\"\n"
    "struct Args { Ptr_f32 x; uint n; };\n#define ARGS_BLOCK Args\n"
    "#include \"common/args.glsl\"\n"
    "layout(local_size_x = 64) in;\n"
    "void main() { store(A.x, 0u, float(A.n)); }\n";

} // namespace

TEST_CASE("disk cache: a folder that others can write to is not used") {
  Folder f;
  {
    DiskCache cache(f.path);
    REQUIRE(cache.put("a", bytes(10)));
    struct stat info {};
    REQUIRE(::stat(f.path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
  }
  for (int mode : {0770, 0707, 0777}) {
    CAPTURE(mode);
    REQUIRE(::chmod(f.path.c_str(), mode) == 0);
    DiskCache cache(f.path);
    CHECK_FALSE(cache.enabled());
    CHECK_FALSE(cache.get("a"));
    CHECK_FALSE(cache.put("b", bytes(10)));
    CHECK(cache.status().not_writable.find("chmod go-w") != std::string::npos);
  }
  REQUIRE(::chmod(f.path.c_str(), 0755) == 0); // readable by all is harmless
  CHECK(DiskCache(f.path).get("a") == bytes(10));
  if (::geteuid() == 0) {
    REQUIRE(::chown(f.path.c_str(), 12345, 12345) == 0);
    DiskCache cache(f.path);
    CHECK_FALSE(cache.get("a"));
    CHECK(
        cache.status().not_writable.find("another user") != std::string::npos);
  }
}

TEST_CASE("disk cache: put and get") {
  Folder f;
  DiskCache cache(f.path / "deep" / "er");
  CHECK_FALSE(cache.get("a"));
  CHECK(cache.put("a", bytes(1000)));
  CHECK(cache.put("b", bytes(0)));
  CHECK(cache.get("a") == bytes(1000));
  CHECK(cache.get("b") == bytes(0));
  CHECK(cache.put("a", bytes(10, 1)));
  CHECK(cache.get("a") == bytes(10, 1));
  DiskCache again(f.path / "deep" / "er");
  CHECK(again.get("a") == bytes(10, 1));
}

TEST_CASE("disk cache: damaged entries are misses, and are rewritten") {
  Folder f;
  DiskCache cache(f.path);
  REQUIRE(cache.put("a", bytes(300)));
  REQUIRE(cache.put("other", bytes(300, 5)));
  auto path = f.path / "a.entry";
  auto good = read(path);
  auto check_miss = [&](const std::vector<std::byte>& bad) {
    write(path, bad);
    CHECK_FALSE(cache.get("a"));
  };
  for (size_t n = 0; n < good.size(); n += n < 64 ? 1 : 37) { // truncated
    check_miss({good.begin(), good.begin() + n});
  }
  auto longer = good;
  longer.push_back({});
  check_miss(longer);
  for (size_t i = 0; i < good.size(); i += i < 64 ? 1 : 29) { // a bit flipped
    auto bad = good;
    bad[i] ^= std::byte(4);
    check_miss(bad);
  }
  check_miss(bytes(5000)); // foreign
  check_miss(read(f.path / "other.entry")); // of another name
  REQUIRE(cache.put("a", bytes(300)));
  CHECK(cache.get("a") == bytes(300));
}

TEST_CASE("disk cache: things that are not files") {
  Folder f;
  DiskCache cache(f.path);
  REQUIRE(cache.put("x", bytes(1)));
  fs::create_directory(f.path / "dir.entry");
  CHECK_FALSE(cache.get("dir"));
  CHECK_FALSE(cache.put("dir", bytes(3)));
  REQUIRE(::mkfifo((f.path / "pipe.entry").c_str(), 0600) == 0);
  CHECK_FALSE(cache.get("pipe")); // and does not hang
  CHECK(cache.put("pipe", bytes(3)));
  CHECK(cache.get("pipe") == bytes(3));
  fs::create_symlink("/nonexistent", f.path / "link.entry");
  CHECK_FALSE(cache.get("link"));
}

TEST_CASE("disk cache: folders that cannot be used") {
  Folder f;
  fs::create_directories(f.path);
  write(f.path / "file", bytes(3));
  DiskCache under_file(f.path / "file" / "cache");
  CHECK_FALSE(under_file.put("a", bytes(3)));
  CHECK_FALSE(under_file.get("a"));
  DiskCache none("");
  CHECK_FALSE(none.enabled());
  CHECK_FALSE(none.put("a", bytes(3)));
  CHECK_FALSE(none.get("a"));
  // Pretends to be read-only: permissions do not bind root.
  DiskCache proc("/proc/self/mlx-vulkan");
  CHECK_FALSE(proc.put("a", bytes(3)));
  if (::geteuid() != 0) {
    DiskCache cache(f.path);
    REQUIRE(cache.put("a", bytes(3)));
    fs::permissions(f.path, fs::perms::owner_read | fs::perms::owner_exec);
    CHECK_FALSE(cache.put("b", bytes(3)));
    CHECK(cache.get("a") == bytes(3));
  }
}

TEST_CASE("disk cache: a read-only folder leaves kernels compiling") {
  DiskCache proc("/proc/self/mlx-vulkan");
  auto code = compile_source("t", kernel, {}, false, {}, &proc);
  CHECK(code.reflection.args_size == 12);
}

TEST_CASE("disk cache: threads and processes at once") {
  Folder f;
  auto work = [&](int who) {
    DiskCache cache(f.path);
    bool good = true;
    for (int i = 0; i < 200; ++i) {
      std::string name = "k" + std::to_string(i % 7);
      // One name has one content, as with compiled kernels; sizes differ.
      auto b = bytes(1000 + 1000 * (i % 7), i % 7);
      if ((i + who) % 3 == 0) {
        good &= cache.put(name, b);
      } else if (auto got = cache.get(name)) {
        good &= *got == b;
      }
    }
    return good;
  };
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    pid_t pid = ::fork();
    if (pid == 0) {
      ::_exit(work(p) ? 0 : 1);
    }
    children.push_back(pid);
  }
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { good += work(t); });
  }
  for (auto& t : threads) {
    t.join();
  }
  CHECK(good == 4);
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  for (auto& e : fs::directory_iterator(f.path)) {
    CHECK(e.path().extension() == ".entry"); // no temporaries left
  }
}

TEST_CASE("disk cache: a killed writer leaves whole entries") {
  Folder f;
  auto a = bytes(1 << 20, 1), b = bytes(1 << 20, 2);
  DiskCache cache(f.path);
  REQUIRE(cache.put("k", a));
  // When a kill lands is up to the scheduler: go on until one has left a
  // temporary behind.
  auto temporaries = [&] {
    std::vector<fs::path> found;
    for (auto& e : fs::directory_iterator(f.path)) {
      if (e.path().extension() != ".entry") {
        found.push_back(e.path());
      }
    }
    return found;
  };
  for (int round = 0; round < 20 || (temporaries().empty() && round < 2000);
       ++round) {
    pid_t pid = ::fork();
    if (pid == 0) {
      DiskCache child(f.path);
      for (;;) {
        child.put("k", b);
        child.put("k", a);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + round % 20));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    auto got = cache.get("k");
    REQUIRE(got);
    CHECK((*got == a || *got == b));
  }
  // Old temporaries are swept, young ones belong to living writers.
  auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  CHECK(!temporaries().empty());
  for (auto& path : temporaries()) {
    fs::last_write_time(path, old);
  }
  cache.evict();
  for (auto& e : fs::directory_iterator(f.path)) {
    CHECK(e.path().extension() == ".entry");
  }
}

TEST_CASE("disk cache: the oldest entries go first") {
  Folder f;
  constexpr uint64_t bound = 100 * 1000;
  DiskCache cache(f.path, bound);
  auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 90; ++i) {
    auto name = "k" + std::to_string(i);
    REQUIRE(cache.put(name, bytes(1000, i)));
    // k89 is the oldest.
    fs::last_write_time(
        f.path / (name + ".entry"), now - std::chrono::hours(i));
  }
  CHECK(cache.get("k89")); // renewed by use
  for (int i = 0; i < 30; ++i) {
    REQUIRE(cache.put("new" + std::to_string(i), bytes(1000, i)));
  }
  cache.evict();
  CHECK(folder_size(f.path) <= bound);
  CHECK(cache.get("new29"));
  CHECK(cache.get("k0"));
  CHECK_FALSE(cache.get("k88"));
  CHECK(cache.get("k89"));
}

TEST_CASE("disk cache: without calling evict, the folder stays bounded") {
  Folder f;
  constexpr uint64_t bound = 64 * 1000;
  DiskCache cache(f.path, bound);
  for (int i = 0; i < 500; ++i) {
    cache.put("k" + std::to_string(i), bytes(1000, i));
  }
  CHECK(folder_size(f.path) <= bound + bound / 8 + 2000);
}

TEST_CASE("disk cache: its status says what it holds and why not") {
  Folder f;
  DiskCache cache(f.path / "a" / "b", 1 << 20);
  CHECK(cache.status().entries == 0);
  CHECK(cache.status().limit == 1 << 20);
  CHECK(cache.status().not_writable.empty()); // the first put makes it
  CHECK_FALSE(fs::exists(f.path));
  REQUIRE(cache.put("one", bytes(100)));
  REQUIRE(cache.put("driver-x-1", bytes(200)));
  auto s = cache.status();
  CHECK(s.entries == 2);
  CHECK(s.bytes == folder_size(f.path / "a" / "b"));
  REQUIRE(s.driver_caches.size() == 1);
  CHECK(s.driver_caches[0].first == "driver-x-1");
  CHECK(s.driver_caches[0].second > 200);
  write(f.path / "file", bytes(1));
  CHECK(
      DiskCache(f.path / "file" / "c").status().not_writable ==
      (f.path / "file").string() + " is not a folder");
  CHECK(DiskCache("").status().not_writable == "the cache is off");
  fs::permissions(f.path, fs::perms::owner_read | fs::perms::owner_exec);
  if (::geteuid() != 0) {
    CHECK_FALSE(DiskCache(f.path / "c").status().not_writable.empty());
  }
  fs::permissions(f.path, fs::perms::owner_all);
}

TEST_CASE("disk cache: its status tries to write, and counts what is stored") {
  Folder f;
  DiskCache cache(f.path);
  REQUIRE(cache.put("one", bytes(100)));
  CHECK(cache.status().stored == 1);
  CHECK(cache.status().not_stored == 0);
  size_t before = folder_size(f.path);
  CHECK(cache.status().not_writable.empty());
  CHECK(folder_size(f.path) == before);
  // Permissions allow root all that /sys then refuses.
  auto why = DiskCache("/sys/x").status().not_writable;
  CHECK(why.find("/sys: ") == 0);
  fs::remove_all(f.path);
  write(f.path, bytes(1)); // a file where the folder was
  CHECK_FALSE(cache.put("two", bytes(100)));
  CHECK(cache.status().stored == 1);
  CHECK(cache.status().not_stored == 1);
  CHECK(cache.status().why_not_stored == std::strerror(ENOTDIR));
}

TEST_CASE("disk cache: kernels are compiled once, and again after damage") {
  Folder f;
  DiskCache cache(f.path);
  auto& c = compile_counters();
  auto compiled = [&](const char* source, const NamedValues& global = {}) {
    uint64_t before = c.compilations;
    auto code = compile_source("t", source, {}, false, global, &cache);
    CHECK(is_spirv(code.spirv));
    CHECK(code.name == "t");
    CHECK(code.reflection.args_size == 12);
    return c.compilations - before;
  };
  CHECK(compiled(kernel) == 1);
  CHECK(compiled(kernel) == 0);
  CHECK(compiled(kernel, {{"X", "1"}}) == 1);
  CHECK(compiled((std::string(kernel) + "\n").c_str()) == 1);
  CHECK(compiled(kernel) == 0);
  // A valid entry that holds no valid module.
  for (auto& e : fs::directory_iterator(f.path)) {
    cache.put(e.path().stem().string(), bytes(400));
  }
  CHECK(compiled(kernel) == 1);
  CHECK(compiled(kernel) == 0);
}

TEST_CASE("disk cache: where it lies") {
  auto at = [](const char* set, const char* xdg, const char* home) {
    static const char* values[3];
    values[0] = set;
    values[1] = xdg;
    values[2] = home;
    return parse_config([](const char* name) -> const char* {
             return !std::strcmp(name, "MLX_VK_CACHE")  ? values[0]
                 : !std::strcmp(name, "XDG_CACHE_HOME") ? values[1]
                 : !std::strcmp(name, "HOME")           ? values[2]
                                                        : nullptr;
           })
        .cache;
  };
  CHECK(at("/a", "/b", "/c") == "/a");
  CHECK(at("off", "/b", "/c") == "");
  CHECK(at("", "/b", "/c") == "");
  CHECK(at(nullptr, "/b", "/c") == "/b/mlx-vulkan");
  CHECK(at(nullptr, "", "/c") == "/c/.cache/mlx-vulkan");
  CHECK(at(nullptr, nullptr, nullptr) == "");
}

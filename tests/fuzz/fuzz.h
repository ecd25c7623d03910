// What the fuzzers share. Each is a file with libFuzzer's
// LLVMFuzzerTestOneInput, which ends normally for any bytes, or is a finding.
// Run by tests/fuzz/run.py.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Ends the process where what must hold does not.
#define FUZZ_CHECK(...)                                                      \
  do {                                                                       \
    if (!(__VA_ARGS__)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      std::abort();                                                          \
    }                                                                        \
  } while (0)

namespace fuzz {

// A file in memory, for parsers that take a path.
class File {
 public:
  File() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    FUZZ_CHECK(fd_ >= 0);
  }
  ~File() {
    ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const uint8_t* data, size_t size) {
    FUZZ_CHECK(::ftruncate(fd_, 0) == 0);
    FUZZ_CHECK(::pwrite(fd_, data, size, 0) == ssize_t(size));
  }
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

inline std::string_view text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

} // namespace fuzz

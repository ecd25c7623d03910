// Memory of the emulated GPU: GEM objects, and the GPU's virtual addresses.
//
// One range of host addresses mirrors the GPU's: GPU address `base + n` is host
// byte `n` of the range. Objects lie in one anonymous file, so that an object's
// pages appear at each of its GPU addresses and wherever the program maps them.
//
// Threads: objects and mappings may change on any thread. unmap() waits for
// what holds `in_use()`, so that no byte vanishes under an access.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rdna {

class GpuMemory {
 public:
  static constexpr uint64_t base = 0xffff800000000000; // what RADV allocates in
  static constexpr uint64_t size = uint64_t(1) << 37;
  static constexpr uint64_t page = 4096;
  // Offsets of mmap() from here on are GEM objects; no file is so large.
  static constexpr uint64_t first_offset = uint64_t(1) << 46;

  GpuMemory();

  // A handle of a new object of zeros.
  uint32_t create(uint64_t bytes);
  // The object's pages stay while GPU addresses name them.
  bool close(uint32_t handle);
  // Where mmap() finds the object.
  std::optional<uint64_t> mmap_offset(uint32_t handle);
  // For mmap() with such an offset, at any host address.
  int file() const {
    return file_;
  }

  // Both are multiples of pages; false if the object or the range is bad.
  bool map(uint32_t handle, uint64_t offset, uint64_t address, uint64_t bytes);
  bool unmap(uint64_t address, uint64_t bytes);

  // Held while the GPU runs a packet or a workgroup.
  std::unique_lock<std::mutex> in_use() {
    return std::unique_lock(used_);
  }

  // Whether [address, address + bytes) is mapped; `bytes` is at most a page.
  bool mapped(uint64_t address, uint64_t bytes) const {
    uint64_t at = address - base;
    if (at >= size || bytes > size - at) {
      return false;
    }
    uint64_t first = at / page, last = (at + bytes - 1) / page;
    return bit(first) && (first == last || bit(last));
  }
  // The same for any number of bytes.
  bool all_mapped(uint64_t address, uint64_t bytes) const;
  // The address must be in the GPU's range.
  uint8_t* host(uint64_t address) const {
    return range_ + (address - base);
  }

  // "is 64 bytes after an object of 4096", for messages.
  std::string place(uint64_t address);

 private:
  struct Object {
    uint64_t offset, bytes; // in the file
    ~Object();
    int file;
  };
  struct Mapping {
    uint64_t bytes;
    std::shared_ptr<Object> object;
  };

  bool bit(uint64_t page_number) const {
    return pages_[page_number / 64] >> (page_number % 64) & 1;
  }
  void set_bits(uint64_t address, uint64_t bytes, bool value);
  void forget(uint64_t address, uint64_t bytes);

  uint8_t* range_;
  std::vector<uint64_t> pages_; // a bit per mapped page
  int file_;
  std::mutex lock_, used_;
  uint64_t next_offset_ = first_offset;
  uint32_t next_handle_ = 1;
  std::map<uint32_t, std::shared_ptr<Object>> objects_; // by handle
  std::map<uint64_t, Mapping> mappings_; // by GPU address
};

// The process has one GPU, which is never destroyed: threads may outlive main.
GpuMemory& gpu_memory();

} // namespace rdna

// Assigns levels to the records of a batch: records whose byte ranges conflict
// (RAW, WAR, WAW) get increasing levels; records of one level are independent
// and run between the same two barriers. Pure, free of Vulkan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace mlx::core::vulkan {

// Bytes [begin, end) of the allocation identified by `base` (a device
// address, or any id that is unique per allocation).
struct Access {
  uint64_t base = 0;
  uint64_t begin = 0, end = 0;
  bool write = false;
};

class Leveler {
 public:
  explicit Leveler(size_t accesses = 0) {
    spans_.reserve(accesses);
  }
  // The level of the next record in program order, 0-based. A record's own
  // accesses do not conflict with each other.
  uint32_t add(std::span<const Access> accesses);

 private:
  struct Span {
    uint64_t begin, end;
    int32_t write_level; // -1: not written in this batch
    int32_t read_level; // -1: not read since the write
  };
  void update(const Access& access, int32_t level);
  std::unordered_map<uint64_t, std::vector<Span>> spans_;
};

} // namespace mlx::core::vulkan

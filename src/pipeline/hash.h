// A small, fast 64-bit hash in two independent lanes. Stable across processes
// and machines of the same byte order; not cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mlx::core::vulkan {

class Hasher {
 public:
  void add(uint64_t x) {
    a_ = mix(a_ ^ x, 0x9e3779b97f4a7c15u);
    b_ = mix(b_ + x, 0xd6e8feb86659fd93u) ^ x;
  }
  // Length first, so that neighbouring strings cannot run into each other.
  void add(std::string_view s) {
    add(uint64_t(s.size()));
    while (s.size() >= 8) {
      uint64_t x;
      std::memcpy(&x, s.data(), 8);
      add(x);
      s.remove_prefix(8);
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      tail |= uint64_t(uint8_t(s[i])) << (8 * i);
    }
    add(tail);
  }
  uint64_t a() const {
    return mix(a_, 0xa0761d6478bd642fu);
  }
  uint64_t b() const {
    return mix(b_, 0xe7037ed1a0b428dbu);
  }

 private:
  static uint64_t mix(uint64_t x, uint64_t y) {
    auto p = static_cast<unsigned __int128>(x) * y;
    return uint64_t(p) ^ uint64_t(p >> 64);
  }
  uint64_t a_ = 0x2d358dccaa6c78a5u, b_ = 0x8bb84b93962eacc9u;
};

} // namespace mlx::core::vulkan

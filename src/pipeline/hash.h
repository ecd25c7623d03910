// A small, fast 64-bit hash with two independent lanes. Stable across processes
// and machines of the same byte order; not cryptographic.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace mlx::core::vulkan {

class Hasher {
 public:
  void add(uint64_t x, uint64_t y = 0) {
    a_ = mix(a_ ^ x, 0x9e3779b97f4a7c15u ^ y);
    b_ = mix(b_ ^ y, 0xd6e8feb86659fd93u ^ x) + x;
  }
  // Includes the length, so that adjacent strings are delimited, and `tag`.
  void add(std::string_view s, uint64_t tag = 0) {
    uint64_t end = uint64_t(s.size()) ^ tag << 56;
    auto* p = s.data();
    size_t n = s.size();
    for (; n > 16; p += 16, n -= 16) {
      add(load<uint64_t>(p), load<uint64_t>(p + 8));
    }
    // The remainder is read as at most two words, which may overlap.
    if (n > 8) {
      add(load<uint64_t>(p), load<uint64_t>(p + n - 8));
      add(end);
    } else if (n >= 4) {
      uint64_t high = load<uint32_t>(p + n - 4);
      add(load<uint32_t>(p) | high << 32, end);
    } else if (n > 0) {
      uint64_t x = uint8_t(p[0]);
      x |= uint64_t(uint8_t(p[n / 2])) << 8 | uint64_t(uint8_t(p[n - 1])) << 16;
      add(x, end);
    } else {
      add(0, end);
    }
  }
  uint64_t a() const {
    return mix(a_, 0xa0761d6478bd642fu);
  }
  uint64_t b() const {
    return mix(b_, 0xe7037ed1a0b428dbu);
  }

 private:
  template <typename T>
  static T load(const char* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  static uint64_t mix(uint64_t x, uint64_t y) {
    auto p = static_cast<unsigned __int128>(x) * y;
    return uint64_t(p) ^ uint64_t(p >> 64);
  }
  uint64_t a_ = 0x2d358dccaa6c78a5u, b_ = 0x8bb84b93962eacc9u;
};

// 16 digits.
inline std::string hexadecimal(uint64_t x) {
  char text[17];
  std::snprintf(
      text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
  return text;
}

} // namespace mlx::core::vulkan

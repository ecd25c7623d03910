// The argument block of a kernel whose arrays are sized by its variant, for
// those without an interface header yet.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "ops/layout.h"

namespace mlx::core::vulkan {

// A parameter struct written member by member. Put 8-byte members first.
class ArgBlock {
 public:
  template <typename T>
  ArgBlock& add(T value) {
    size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    if (size_ + sizeof(T) > sizeof(bytes_)) {
      throw std::logic_error("[vulkan] An argument block exceeds 4 KiB.");
    }
    std::memcpy(bytes_ + size_, &value, sizeof(T));
    size_ += sizeof(T);
    return *this;
  }
  // `n` values as Index of the variant (64-bit when wide), zero padded.
  template <typename Values>
  ArgBlock& indices(const Values& values, int n, bool wide, int divisor = 1) {
    int have = static_cast<int>(values.size());
    for (int d = 0; d < n; ++d) {
      index(d < have ? values[d] / divisor : 0, wide);
    }
    return *this;
  }
  ArgBlock& index(int64_t value, bool wide) {
    return wide ? add<int64_t>(value) : add<int32_t>(value);
  }
  ArgBlock& extents(const Shape& shape, int n) {
    int have = static_cast<int>(shape.size());
    for (int d = 0; d < n; ++d) {
      add<uint32_t>(d < have ? shape[d] : 1);
    }
    return *this;
  }
  const void* data() const {
    return bytes_;
  }
  size_t size() const {
    return size_;
  }

 private:
  alignas(8) std::byte bytes_[4096];
  size_t size_ = 0;
};

// A launch with one output and a block of arguments.
inline void dispatch(
    StreamEncoder& enc,
    const Kernel& k,
    std::span<const Operand> reads,
    const Operand& write,
    const ArgBlock& args,
    Grid grid) {
  enc.dispatch_bytes(k, reads, {&write, 1}, args.data(), args.size(), grid);
}

} // namespace mlx::core::vulkan

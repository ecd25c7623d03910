// Loop nests of strided moves: collapsing, byte ranges, wide words, and the
// argument block of a kernel whose arrays are sized by its variant. Shared by
// copies, gathers and scatters. Strides and offsets are in elements unless a
// name says bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "mlx/array.h"
#include "ops/layout.h"

namespace mlx::core::vulkan {

// Drops axes of size one and merges neighbours that every operand walks as
// one. `strides` is any container of Strides. Leaves at least one dimension.
template <typename Container>
void collapse(Shape& shape, Container& strides) {
  int n = 0;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (shape[d] == 1) {
      continue;
    }
    bool merge = n > 0 &&
        int64_t(shape[n - 1]) * shape[d] <= std::numeric_limits<int32_t>::max();
    for (const auto& s : strides) {
      merge = merge && s[d] * shape[d] == s[n - 1];
    }
    n += merge ? 0 : 1;
    shape[n - 1] = merge ? shape[n - 1] * shape[d] : shape[d];
    for (auto& s : strides) {
      s[n - 1] = s[d];
    }
  }
  if (n == 0) {
    shape = {1};
    for (auto& s : strides) {
      s = {1};
    }
    return;
  }
  shape.resize(n);
  for (auto& s : strides) {
    s.resize(n);
  }
}

inline int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (auto s : shape) {
    n *= s;
  }
  return n;
}

// The lowest and one past the highest element that a nest reaches, relative to
// its first element.
inline std::pair<int64_t, int64_t> reach(
    const Shape& shape,
    const Strides& strides) {
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t span = strides[d] * (int64_t(shape[d]) - 1);
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

// Accumulates what a move is aligned to; see word().
class Alignment {
 public:
  explicit Alignment(size_t itemsize) : item_(itemsize) {}

  // A byte offset, or anything else that must be a multiple of the word.
  void bytes(int64_t n) {
    bits_ |= static_cast<uint64_t>(n);
  }
  void elements(int64_t n) {
    bytes(n * static_cast<int64_t>(item_));
  }
  // The strides of an operand whose last axis must be contiguous.
  void operand(const Strides& strides) {
    contiguous_ = contiguous_ && strides.back() == 1;
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      elements(strides[d]);
    }
  }
  // The widest word, 1 to 16 bytes, that moves whole items.
  int word() const {
    auto widest = static_cast<size_t>(bits_ & (~bits_ + 1));
    return static_cast<int>(contiguous_ && widest > item_ ? widest : item_);
  }

 private:
  size_t item_;
  uint64_t bits_ = 16;
  bool contiguous_ = true;
};

// The dimension count of a variant: exact up to 4, else max_ndim.
inline int variant_ndim(size_t ndim, const char* op) {
  if (ndim > max_ndim) {
    throw std::invalid_argument(
        std::string("[") + op + "] The Vulkan backend handles at most " +
        std::to_string(max_ndim) + " dimensions that do not collapse; got " +
        std::to_string(ndim) + ". Make the array contiguous first.");
  }
  return ndim <= 4 ? static_cast<int>(ndim) : max_ndim;
}

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

// True if byte distances of this many items leave 32 bits.
inline bool beyond_32_bits(int64_t items, size_t itemsize) {
  return items * static_cast<int64_t>(itemsize) >
      std::numeric_limits<int32_t>::max();
}

} // namespace mlx::core::vulkan

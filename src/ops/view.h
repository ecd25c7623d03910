// Algebra of strided views: a shape, and the strides of each operand. Units are
// elements unless a name says bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

#include "kernels/common/nest.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Most dimensions of a kernel after collapsing (MAX_NDIM).
constexpr int max_ndim = 16;

// Drops axes of size one and merges adjacent axes that are contiguous in every
// operand. `strides`: a container of Strides. Leaves at least one dimension.
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

// The axes of one operand.
struct Axes {
  Shape shape;
  Strides strides;
};
Axes collapsed(Shape shape, Strides strides);

// All but the last `n` axes of a shape or of strides.
template <typename T>
T leading(const T& axes, int n) {
  return T(axes.begin(), axes.end() - n);
}

// Fills the beginning of an array of an argument block.
template <typename T, size_t N, typename Values>
void assign(T (&to)[N], const Values& from) {
  std::copy(from.begin(), from.end(), to);
}

// The loop nest of an argument block over collapsed axes, at most NDIM.
template <int NDIM>
Nest<NDIM> nest_args(const Shape& shape, const Strides& strides) {
  Nest<NDIM> nest{static_cast<int>(shape.size())};
  assign(nest.shape, shape);
  assign(nest.strides, strides);
  return nest;
}

int64_t elements(const Shape& shape);

// The lowest element of a view, and one past the highest, from its first one.
std::pair<int64_t, int64_t> reach(const Shape& shape, const Strides& strides);

// A view of the memory of `a` from its item `offset` on.
array view(const array& a, Shape shape, Strides strides, int64_t offset = 0);

// Dimension count of a variant: exact up to 4, else max_ndim. Throws
// std::invalid_argument, naming `op`, beyond max_ndim.
int variant_ndim(size_t ndim, const char* op);

// Index width (LARGE): whether 64-bit offsets are needed; 32-bit kernels
// multiply them by the item size in signed arithmetic (common/types.glsl).
inline bool beyond_32_bits(int64_t items, size_t itemsize) {
  return items * static_cast<int64_t>(itemsize) >
      std::numeric_limits<int32_t>::max();
}
bool needs_large_index(const array& a);

// Calls f(N) for the first of ascending constants >= n, or for the last.
template <int N, int... More, typename F>
void with_constant(int n, F&& f) {
  if constexpr (sizeof...(More) > 0) {
    if (n > N) {
      return with_constant<More...>(n, f);
    }
  }
  f(std::integral_constant<int, N>{});
}

// Calls f.operator()<NDIM, Index>() for a variant of `ndim` dimensions from
// variant_ndim(), which sizes the arrays of argument blocks.
template <typename F>
void with_index(int ndim, bool large, F&& f) {
  with_constant<1, 2, 3, 4, max_ndim>(ndim, [&](auto n) {
    large ? f.template operator()<n, int64_t>()
          : f.template operator()<n, int32_t>();
  });
}

// Whether items can be accessed four at a time (common/vector.glsl), from the
// first one on and after any of `steps`. Buffers are aligned to 16 bytes.
inline bool by_fours(
    const array& a,
    std::initializer_list<int64_t> steps = {}) {
  bool aligned = a.offset() % std::min<int64_t>(16, 4 * a.itemsize()) == 0;
  for (int64_t step : steps) {
    aligned = aligned && step % 4 == 0;
  }
  return aligned;
}

// Accumulates the alignment of a move; see word().
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

} // namespace mlx::core::vulkan

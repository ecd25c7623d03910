// Parameter blocks of the matrix product kernels, member for member as in
// kernels/gemm/*.comp and batch.glsl.
#pragma once

#include <cstdint>
#include <cstring>

namespace mlx::core::vulkan {

constexpr int batch_dims = 8;

// Index is int32_t, or int64_t for the BIG variants.
template <typename Index>
struct GemmParams {
  uint32_t m, n, k;
  uint32_t tiles_m, tiles_n;
  uint32_t splits, k_split;
  uint32_t batches;
  Index a_row, a_col, b_row, b_col, c_row, c_col;
  float alpha, beta;
};

template <typename Index>
struct GemvParams {
  uint32_t rows, vectors, k;
  uint32_t row_groups;
  uint32_t splits, k_split;
  uint32_t batches;
  uint32_t pad;
  Index w_row, w_k, x_k, x_vec, y_row, y_vec, c_row, c_vec;
  float alpha, beta;
};

struct SplitSumParams {
  uint32_t m, n, splits, batches;
  int64_t c_row, c_col;
  float alpha, beta;
};

struct BatchParams {
  int64_t a, b, c;
};

struct BatchDims {
  int32_t ndim;
  int32_t pad;
  int32_t shape[batch_dims];
  int64_t a[batch_dims], b[batch_dims], c[batch_dims];
};

struct GatherDims {
  int32_t ndim, a_ndim, b_ndim, pad;
  int32_t shape[batch_dims], a_shape[batch_dims], b_shape[batch_dims];
  int64_t lhs[batch_dims], rhs[batch_dims], a[batch_dims], b[batch_dims];
};

// Several structs, one after the other.
class ParamBytes {
 public:
  template <typename S>
  void add(const S& s) {
    static_assert(sizeof(S) % 8 == 0);
    static_assert(std::is_trivially_copyable_v<S>);
    std::memcpy(bytes_ + size_, &s, sizeof(S));
    size_ += sizeof(S);
  }
  const void* data() const {
    return bytes_;
  }
  size_t size() const {
    return size_;
  }

 private:
  alignas(8) unsigned char bytes_[768];
  size_t size_ = 0;
};

} // namespace mlx::core::vulkan

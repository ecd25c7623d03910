// Blocks of matrices in memory, and triangular systems by blocks.
//
// Large factorizations take linalg_block columns at a time, or several times as
// many: kernels of kernels/linalg factor a block, and what it explains of other
// columns is one product, run_gemm (Golub & Van Loan, Matrix Computations, 3.2
// and 4.2).
#pragma once

#include <algorithm>
#include <optional>

#include "backend/stream_encoder.h"
#include "kernels/linalg/linalg.h"

namespace mlx::core::vulkan {

// A float32 or float64 matrix of the same size in each item of a batch, in the
// memory of an array.
struct Matrices {
  array of;
  int64_t offset = 0; // items from of's first
  uint32_t count = 0, rows = 0, cols = 0;
  Strided strides{};

  Matrices part(uint32_t row, uint32_t col, uint32_t rows, uint32_t cols) const;
  Matrices transposed() const;
  Matrices rows_reversed() const;
  Matrices reversed() const; // rows and columns
  array view() const; // (count, rows, cols)
};

// The last two axes of `a`, copied if the other axes have no common stride.
Matrices matrices(const array& a, StreamEncoder& enc);
// Uninitialized; column-major, in memory of their own.
Matrices new_matrices(
    uint32_t count,
    uint32_t rows,
    uint32_t cols,
    Dtype type,
    StreamEncoder& enc);

// Row-major.
Matrices zero_matrices(
    uint32_t count,
    uint32_t rows,
    uint32_t cols,
    Dtype type,
    StreamEncoder& enc);

// Memory for one set of matrices after the other, of at most this size.
struct Room {
  uint32_t count, rows, cols;
  std::optional<array> memory; // once it is used

  // Uninitialized; row-major.
  Matrices take(uint32_t rows, uint32_t cols, Dtype type, StreamEncoder& enc);
};

// Two in turn, as each set of matrices is made from the last.
struct Rooms {
  Room last, other;

  explicit Rooms(const Room& each) : last(each), other(each) {}
  Matrices take(uint32_t rows, uint32_t cols, Dtype type, StreamEncoder& enc);
};

// Allocates an output whose matrices are row-major, or column-major.
void alloc_by_rows(array& a);
void alloc_by_columns(array& a);

void copy_to(const Matrices& from, const Matrices& to, StreamEncoder& enc);

// y = a b, and y = c - a b, in memory of its own or in rooms; row-major.
Matrices product(const Matrices& a, const Matrices& b, StreamEncoder& enc);
Matrices reduced(
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    StreamEncoder& enc);
Matrices reduced(
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    Rooms& rooms,
    StreamEncoder& enc);

// Writes c - a b to y, allocated.
void reduce_into(
    array& y,
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    StreamEncoder& enc);

inline uint32_t block_width(uint32_t at, uint32_t end) {
  return std::min(linalg_block, end - at);
}

struct Triangle {
  const Matrices& t;
  bool upper = false, unit = false;
};
// x = t^-1 b. Without b: x = t^-1 e, where e is the identity with its rows in
// `places`, uint32 (count, rows); or the identity, for lower triangles and an x
// of zeros.
void solve_triangle(
    const Triangle& triangle,
    const Matrices* b,
    const array* places,
    const Matrices& x,
    StreamEncoder& enc);

// y becomes the factors of a, with partial pivoting; the rows of l u are a's in
// their `places`. Pivots are LAPACK's, from 0 on. uint32 (count, min(rows,
// cols)) and (count, rows), allocated.
void factor_lu(
    const Matrices& a,
    const Matrices& y,
    array& pivots,
    array& places,
    StreamEncoder& enc);

} // namespace mlx::core::vulkan

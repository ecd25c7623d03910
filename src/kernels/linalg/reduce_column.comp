// A column of a block of the reduction to a tridiagonal matrix (Dongarra,
// Hammarling & Sorensen, 1989; Golub & Van Loan, Matrix Computations, 8.3):
// the reflector I - v v^T of u, |v|^2 = 2, which is a multiple of u but for its
// first item; w, by which a - v w^T - w v^T is the product with it from both
// sides; and the next column. Products with u are known (reduce_product.comp),
// those with v follow. An invocation has a row, a workgroup what all need.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"

#define GROUP COLUMN_GROUP
#define FEW 8 // loads of each at once
layout(local_size_x = GROUP) in;

// A column whose squares add up to no more is taken for zero, as smaller squares
// may be flushed; and so is one that is a rounding error of the matrix. Such
// columns of a matrix of low rank are nearly parallel, so that products of their
// reflectors would be less orthogonal.
#if FLOAT64
#define LEAST 1e-280lf
#else
#define LEAST 1e-26
#endif

shared T sums[2][GROUP / 4];
shared T v_v[BLOCK], v_w[BLOCK]; // products of this v with earlier v and w
shared T v_row[BLOCK], w_row[BLOCK]; // their items in row j + 1

void work(uint matrix, uint group) {
  uint local = gl_LocalInvocationIndex;
  uint j = A.column, m = A.n - A.at;
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t u = state + ((A.at + j) % 2) * A.n + A.at;
  uint64_t next = state + ((A.at + j + 1) % 2) * A.n + A.at;
  uint64_t y = state + 2 * A.n;
  uint64_t panel = uint64_t(matrix) * 3 * BLOCK * A.n;
  uint64_t row = (uint64_t(matrix) * m + (j + 1)) * m; // of a: its column, too

  T alpha = load(A.state, u + (j + 1));
  T square = load(A.state, y + (m + 2 * j));
  uint64_t most_at = y + (A.n + 2 * BLOCK + 1);
  T most = load(A.state, most_at + (A.at + j) % 2), least = 2.0 * EPSILON * most;
  bool none = square <= max(T(LEAST), least * least);
  T length_ = sqrt(square);
  T beta = none ? alpha : alpha > 0.0 ? -length_ : length_;
  T s = none ? 0.0 : 1.0 / sqrt(length_ * (length_ + abs(alpha)));
  T first_y = load(A.state, y + (j + 1)) - beta * load(A.a, row + (j + 1));
  T first_v = s * (alpha - beta);

  uint r = group * GROUP + local, at = min(r, m - 1);
  T here = load(A.a, row + at);
  T v = at == j + 1 ? first_v : s * load(A.state, u + at);
  T w = s * (load(A.state, y + at) - beta * here);

  // v^T a v / 2 less what earlier columns take off it, and off a v in row j + 1.
  T half_ = 0.0, less = 0.0;
  for (uint first = j + 1; first < m; first += FEW * GROUP) {
    [[unroll]] for (uint t = 0; t < FEW; ++t) {
      uint i = first + t * GROUP + local, c = min(i, m - 1);
      T x = load(A.state, u + c) * load(A.state, y + c);
      half_ += i < m ? x : 0.0;
    }
  }
  half_ *= 0.5 * s * s;
  uint k = min(local, BLOCK - 1);
  bool mine = local < j;
  T vk = load(A.panel, panel + uint64_t(k) * A.n + (j + 1));
  T wk = load(A.panel, panel + uint64_t(BLOCK + k) * A.n + (j + 1));
  vk = mine ? vk : 0.0;
  wk = mine ? wk : 0.0;
  T to_v = s * (load(A.state, y + (m + k)) - beta * vk);
  T to_w = s * (load(A.state, y + (m + j + k)) - beta * wk);
  to_v = mine ? to_v : 0.0;
  to_w = mine ? to_w : 0.0;
  half_ -= to_v * to_w;
  less = vk * to_w + wk * to_v;
  if (local < BLOCK) {
    v_v[local] = to_v;
    v_w[local] = to_w;
    v_row[local] = vk;
    w_row[local] = wk;
  }
  half_ += shuffle_xor(half_, 1u);
  less += shuffle_xor(less, 1u);
  half_ += shuffle_xor(half_, 2u);
  less += shuffle_xor(less, 2u);
  if (local % 4 == 0) {
    sums[0][local / 4] = half_;
    sums[1][local / 4] = less;
  }
  barrier();
  // (u - beta e)^T a (u - beta e) = u^T a u - beta (2 y - beta a e)
  T a_first = load(A.a, row + (j + 1));
  half_ = -0.5 * s * s * beta * (2.0 * first_y + beta * a_first);
  less = 0.0;
  for (uint i = 0; i < GROUP / 4; ++i) {
    half_ += sums[0][i];
    less += sums[1][i];
  }
  T first_w = s * first_y - less - half_ * first_v;

  w -= half_ * v;
  // Columns from j on are finite, and their factors zero.
  for (uint first = 0; first < j; first += FEW) {
    [[unroll]] for (uint i = first; i < first + FEW; ++i) {
      T vi = load(A.panel, panel + uint64_t(i) * A.n + at);
      T wi = load(A.panel, panel + uint64_t(BLOCK + i) * A.n + at);
      w -= vi * v_w[i] + wi * v_v[i];
      here -= vi * w_row[i] + wi * v_row[i];
    }
  }
  here -= v * first_w + w * first_v;
  bool below = r > j;
  v = below ? v : 0.0;
  w = below ? w : 0.0;
  if (r < m) {
    store(A.panel, panel + uint64_t(j) * A.n + r, v);
    store(A.panel, panel + uint64_t(BLOCK + j) * A.n + r, w);
    store(A.panel, panel + uint64_t(2 * BLOCK + j) * A.n + r, v);
    store(A.state, next + r, r > j + 1 ? here : 0.0);
#if KEEP
    uint64_t column = uint64_t(matrix) * A.n + (A.at + j);
    store(A.reflectors, column * A.n + (A.at + r), v);
#endif
    if (r == j + 1) {
      uint64_t diagonal = uint64_t(matrix) * 2 * A.n + (A.at + j);
      store(A.diagonals, diagonal + 1, here);
      store(A.diagonals, diagonal + A.n, beta);
      most = max(most, max(abs(beta), abs(here)));
      store(A.state, most_at + (A.at + j + 1) % 2, most);
    }
  }
}

void main() {
  uint matrix = group_index() / A.groups;
  if (matrix < A.count) { // uniform
    work(matrix, group_index() % A.groups);
  }
}

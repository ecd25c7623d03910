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

uint j, m; // column of the block; rows
uint64_t u, y, row; // of the column, its products, and row j + 1 of a: its column
uint64_t panel, most_at;
T beta, s; // v = s (u - beta e), beta what the reflector makes of u
T first_v, first_w, first_y; // in row j + 1: v, w, (a (u - beta e))
T most;

void choose_reflector() {
  T alpha = load(A.state, u + (j + 1));
  T square = load(A.state, y + (m + 2 * j));
  most = load(A.state, most_at + (A.at + j) % 2);
  T least = 2.0 * EPSILON * most, length_ = sqrt(square);
  bool none = square <= max(T(LEAST), least * least);
  beta = none ? alpha : alpha > 0.0 ? -length_ : length_;
  s = none ? 0.0 : 1.0 / sqrt(length_ * (length_ + abs(alpha)));
  first_y = load(A.state, y + (j + 1)) - beta * load(A.a, row + (j + 1));
  first_v = s * (alpha - beta);
}

// v^T a v / 2 for a without what earlier columns take off it; sets first_w.
T half_product() {
  uint local = gl_LocalInvocationIndex;
  T half_ = 0.0;
  for (uint start = j + 1; start < m; start += FEW * GROUP) {
    [[unroll]] for (uint t = 0; t < FEW; ++t) {
      uint i = start + t * GROUP + local, c = min(i, m - 1);
      T x = load(A.state, u + c) * load(A.state, y + c);
      half_ += i < m ? x : 0.0;
    }
  }
  uint k = min(local, BLOCK - 1);
  bool mine = local < j;
  T vk = load(A.panel, panel + uint64_t(k) * A.n + (j + 1));
  T wk = load(A.panel, panel + uint64_t(BLOCK + k) * A.n + (j + 1));
  T to_v = s * (load(A.state, y + (m + k)) - beta * vk);
  T to_w = s * (load(A.state, y + (m + j + k)) - beta * wk);
  half_ = 0.5 * s * s * half_ - (mine ? to_v * to_w : 0.0);
  T less = mine ? vk * to_w + wk * to_v : 0.0;
  if (local < BLOCK) {
    v_v[local] = mine ? to_v : 0.0;
    v_w[local] = mine ? to_w : 0.0;
    v_row[local] = mine ? vk : 0.0;
    w_row[local] = mine ? wk : 0.0;
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
  first_w = s * first_y - less - half_ * first_v;
  return half_;
}

void work(uint matrix, uint group) {
  j = A.column;
  m = A.n - A.at;
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t next = state + ((A.at + j + 1) % 2) * A.n + A.at;
  u = state + ((A.at + j) % 2) * A.n + A.at;
  y = state + 2 * A.n;
  most_at = y + (A.n + 2 * BLOCK + 1);
  panel = uint64_t(matrix) * 3 * BLOCK * A.n;
  row = (uint64_t(matrix) * m + (j + 1)) * m;
  choose_reflector();

  uint r = group * GROUP + gl_LocalInvocationIndex, at = min(r, m - 1);
  T here = load(A.a, row + at);
  T v = at == j + 1 ? first_v : s * load(A.state, u + at);
  T w = s * (load(A.state, y + at) - beta * here) - half_product() * v;
  // Columns from j on are finite, and their factors zero.
  for (uint start = 0; start < j; start += FEW) {
    [[unroll]] for (uint t = 0; t < FEW; ++t) {
      uint i = start + t;
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

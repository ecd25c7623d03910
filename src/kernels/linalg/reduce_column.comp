// A column of a block of the reduction to a tridiagonal matrix (Dongarra,
// Hammarling & Sorensen, 1989; Golub & Van Loan, Matrix Computations, 8.3):
// the reflector I - v v^T of u, |v|^2 = 2, which is a multiple of u but for its
// first item; w, by which a - v w^T - w v^T is the product with it from both
// sides; and the next column. Products with u are known (reduce_product.comp),
// those with v follow. A workgroup has a row per lane of a team, and each team
// some earlier columns.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"
#define GROUPS A.groups
#include "linalg/per_matrix.glsl"

#define WG_SIZE COLUMN_GROUP
#include "common/lanes.glsl"

#define EACH(i, n) [[unroll]] for (uint i = 0; i < n; ++i)
#define COLUMNS (BLOCK / TEAMS) // of an invocation
#define FEW 4 // parts of u^T a u at once
layout(local_size_x = WG_SIZE) in;

// A column whose squares add up to no more is taken for zero, as smaller squares
// may be flushed; and so is one that is a rounding error of the matrix. Such
// columns of a matrix of low rank are nearly parallel, so that products of their
// reflectors would be less orthogonal.
#if FLOAT64
#define LEAST 1e-280lf
#else
#define LEAST 1e-26
#endif

#define PLUS(a, b) ((a) + (b))
TEAM_REDUCE_OF(WG_SIZE, group_sums, T2, PLUS, group_parts)
shared T2 to_vw[BLOCK], row_vw[BLOCK]; // v^T v_k, v^T w_k; their items in row j + 1
shared T2 team_parts[WG_SIZE];

void work(uint matrix, uint group) {
  uint j = A.column, m = A.n - A.at, local = gl_LocalInvocationIndex;
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t u = state + ((A.at + j) % 2) * A.n + A.at, y = state + 2 * A.n;
  uint64_t next = state + ((A.at + j + 1) % 2) * A.n + A.at;
  uint64_t most_at = y + (A.n + 2 * BLOCK + 1);
  uint64_t panel = uint64_t(matrix) * 3 * BLOCK * A.n;
  uint64_t row = (uint64_t(matrix) * m + (j + 1)) * m; // j + 1 of a: its column
  uint r = group * LANES + LANE, at = min(r, m - 1);

  // All loads, before anything waits for one. u is zero up to j, and columns from j
  // on are finite.
  T alpha = load(A.state, u + (j + 1));
  T square = load(A.state, y + (m + 2 * j));
  T most = load(A.state, most_at + (A.at + j) % 2);
  T y_first = load(A.state, y + (j + 1)), a_first = load(A.a, row + (j + 1));
  uint k = min(local, BLOCK - 1);
  T2 vw = T2(load(A.panel, panel + uint64_t(k) * A.n + (j + 1)),
             load(A.panel, panel + uint64_t(BLOCK + k) * A.n + (j + 1)));
  T2 to = T2(load(A.state, y + (m + k)), load(A.state, y + (m + j + k)));
  T uau = 0.0;
  EACH(i, FEW) {
    uint p = i * WG_SIZE + local;
    T part = load(A.state, most_at + (2 + min(p, A.parts - 1)));
    uau += p < A.parts ? part : T(0.0);
  }
  T here = load(A.a, row + at), u_here = load(A.state, u + at);
  T y_here = load(A.state, y + at);
  T2 earlier[COLUMNS];
  EACH(i, COLUMNS) {
    uint64_t of = panel + uint64_t(min(i * TEAMS + TEAM, j)) * A.n + at;
    earlier[i] = T2(load(A.panel, of), load(A.panel, of + BLOCK * A.n));
  }
  for (uint p = FEW * WG_SIZE + local; p < A.parts; p += WG_SIZE) {
    uau += load(A.state, most_at + (2 + p));
  }

  // v = s (u - beta e), beta what the reflector makes of u.
  T least = 2.0 * EPSILON * most, length_ = sqrt(square);
  bool none = square <= max(T(LEAST), least * least);
  T beta = none ? alpha : alpha > 0.0 ? -length_ : length_;
  T s = none ? 0.0 : 1.0 / sqrt(length_ * (length_ + abs(alpha)));
  // In row j + 1: a (u - beta e), v and then w.
  T first_y = y_first - beta * a_first, first_v = s * (alpha - beta);

  // v^T a v / 2 for a without what earlier columns take off it, and what those
  // take off w in row j + 1.
  bool mine = local < j;
  vw = mine ? vw : T2(0.0);
  to = mine ? s * (to - beta * vw) : T2(0.0);
  if (local < BLOCK) {
    to_vw[local] = to;
    row_vw[local] = vw;
  }
  // Has a barrier, as no subgroup is as wide.
  T2 sums = group_sums(
      T2(0.5 * s * s * uau - to.x * to.y, vw.x * to.y + vw.y * to.x));
  // (u - beta e)^T a (u - beta e) = u^T a u - beta (2 y - beta a e)
  T half_ = sums.x - 0.5 * s * s * beta * (2.0 * first_y + beta * a_first);
  T first_w = s * first_y - sums.y - half_ * first_v;

  T2 less = T2(0.0); // of w and of the next column
  EACH(i, COLUMNS) {
    T2 by = to_vw[i * TEAMS + TEAM], of = row_vw[i * TEAMS + TEAM];
    less.x += earlier[i].x * by.y + earlier[i].y * by.x;
    less.y += earlier[i].x * of.y + earlier[i].y * of.x;
  }
  team_parts[local] = less;
  barrier();
  if (TEAM == 0 && r < m) {
    EACH(i, TEAMS - 1) less += team_parts[(i + 1) * LANES + LANE];
    T v = r == j + 1 ? first_v : s * u_here;
    T w = s * (y_here - beta * here) - half_ * v - less.x;
    here -= less.y + v * first_w + w * first_v;
    store(A.panel, panel + uint64_t(j) * A.n + r, v);
    store(A.panel, panel + uint64_t(BLOCK + j) * A.n + r, r > j ? w : 0.0);
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

// A round of a sweep of block Jacobi rotations: a workgroup makes the columns of
// two blocks orthogonal, or nearly. It computes g, the products of the columns;
// q, the rotations that make g diagonal (Jacobi's method; Demmel & Veselic,
// Jacobi's method is more accurate than QR, 1992); and the columns times q. The
// first round of a sweep takes all pairs of the columns, others the pairs in
// different blocks, so that a sweep has each pair once. A matrix whose last
// sweep found all columns orthogonal is left as it is.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#include "linalg/rotation.glsl"
#define ARGS_BLOCK RoundArgs
#include "common/args.glsl"

#define HALF (WIDE / 2)
#define GROUP 128
#define EACH (WIDE * WIDE / GROUP)
layout(local_size_x = GROUP) in;

shared T g[WIDE][WIDE + 1];
shared T q[WIDE][WIDE + 1]; // columns
shared T2 turn[HALF];
shared uint turned;

uint64_t first; // column of the matrix
uvec2 blocks;
T items[EACH]; // of WIDE lines of the columns

uint64_t column_of(uint c) {
  return first + (c < HALF ? blocks.x : blocks.y) * HALF + c % HALF;
}

void fetch(uint line) {
  [[unroll]] for (uint i = 0; i < EACH; ++i) {
    uint at = gl_LocalInvocationIndex + i * GROUP;
    uint64_t column = column_of(at / WIDE);
    items[i] = load(A.stack, column * A.lines + (line + at % WIDE));
  }
}

// An invocation has items (y + 8 i, x + 16 j) of a product of WIDE x WIDE.
#define X (gl_LocalInvocationIndex % 16)
#define Y (gl_LocalInvocationIndex / 16)
#define EACH_ITEM(i, j)                                                       \
  [[unroll]] for (uint i = 0; i < WIDE / 8; ++i)                              \
      [[unroll]] for (uint j = 0; j < WIDE / 16; ++j)

// For each WIDE lines, TILE gets them, column by column, and BODY is done while
// the next ones are fetched.
#define OVER_LINES(LINES, TILE, BODY)                                         \
  fetch(0);                                                                   \
  for (uint line = 0; line < LINES; line += WIDE) {                           \
    barrier();                                                                \
    [[unroll]] for (uint i = 0; i < EACH; ++i) {                              \
      uint at = gl_LocalInvocationIndex + i * GROUP;                          \
      TILE[at / WIDE][at % WIDE] = items[i];                                  \
    }                                                                         \
    barrier();                                                                \
    fetch(line + WIDE < LINES ? line + WIDE : 0);                             \
    BODY                                                                      \
  }

void multiply() {
  T sum[WIDE / 8][WIDE / 16];
  EACH_ITEM(i, j) sum[i][j] = 0.0;
  OVER_LINES(A.rows, q,
      for (uint k = 0; k < WIDE; ++k) {
        EACH_ITEM(i, j) sum[i][j] += q[Y + 8 * i][k] * q[X + 16 * j][k];
      })
  EACH_ITEM(i, j) g[Y + 8 * i][X + 16 * j] = sum[i][j];
  barrier();
}

void update() {
  OVER_LINES(A.lines, g,
      T sum[WIDE / 8][WIDE / 16];
      EACH_ITEM(i, j) sum[i][j] = 0.0;
      for (uint k = 0; k < WIDE; ++k) {
        EACH_ITEM(i, j) sum[i][j] += q[Y + 8 * i][k] * g[k][X + 16 * j];
      }
      EACH_ITEM(i, j) {
        uint64_t to = column_of(Y + 8 * i) * A.lines + (line + X + 16 * j);
        store(A.stack, to, sum[i][j]);
      })
}

bool is_large(uvec2 at) {
  T tolerance = EPSILON * max(T(4.0), sqrt(T(A.rows)) / 4.0) *
      slack_of(A.sweep + 1 == MOST_SWEEPS);
  T a = max(g[at.x][at.x], T(0.0)), b = max(g[at.y][at.y], T(0.0));
  return abs(g[at.x][at.y]) > max(tolerance * sqrt(a) * sqrt(b), NEGLIGIBLE);
}

// Whether columns are to be rotated; q is the identity then.
bool any_large() {
  uint local = gl_LocalInvocationIndex;
  bool any = false;
  for (uint i = local; i < WIDE * WIDE; i += GROUP) {
    uvec2 at = uvec2(i / WIDE, i % WIDE);
    q[at.x][at.y] = at.x == at.y ? 1.0 : 0.0;
    any = any || (at.x < at.y && is_large(at));
  }
  if (any) {
    atomicOr(turned, 1u);
  }
  if (local < WIDE) {
    store(A.lengths, column_of(local), sqrt(g[local][local]));
  }
  barrier();
  return turned != 0;
}

uvec2 columns_of(uint i, uint k) {
  return A.round_ == 0 ? pair_of(i, k, WIDE) : uvec2(i, HALF + (i + k) % HALF);
}

// Chooses the rotation of pair `i`, which makes its product zero.
void choose(uint i, uint k) {
  uvec2 at = columns_of(i, k);
  T a = g[at.x][at.x], b = g[at.y][at.y], product = g[at.x][at.y];
  bool turns = is_large(at);
  T t = turns ? tangent_of(a, b, product) : 0.0;
  turn[i] = rotation_by(t);
  if (turns) {
    g[at.x][at.x] = a - t * product;
    g[at.y][at.y] = b + t * product;
    g[at.x][at.y] = 0.0;
    g[at.y][at.x] = 0.0;
  }
}

// Applies the rotations to the other items of g, and to q.
void apply(uint k) {
  uint local = gl_LocalInvocationIndex;
  for (uint e = local; e < HALF * HALF; e += GROUP) {
    T2 left = turn[e / HALF], right = turn[e % HALF];
    if (e / HALF != e % HALF && (left.x != 0.0 || right.x != 0.0)) {
      uvec2 r = columns_of(e / HALF, k), c = columns_of(e % HALF, k);
      T2 upper = rotated(T2(g[r.x][c.x], g[r.x][c.y]), right);
      T2 lower = rotated(T2(g[r.y][c.x], g[r.y][c.y]), right);
      T2 before = rotated(T2(upper.x, lower.x), left);
      T2 after = rotated(T2(upper.y, lower.y), left);
      g[r.x][c.x] = before.x;
      g[r.y][c.x] = before.y;
      g[r.x][c.y] = after.x;
      g[r.y][c.y] = after.y;
    }
  }
  for (uint e = local; e < HALF * WIDE; e += GROUP) {
    uvec2 c = columns_of(e / WIDE, k);
    T2 v = rotated(T2(q[c.x][e % WIDE], q[c.y][e % WIDE]), turn[e / WIDE]);
    q[c.x][e % WIDE] = v.x;
    q[c.y][e % WIDE] = v.y;
  }
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
  if (local == 0) {
    turned = 0;
  }
  multiply();
  if (any_large()) { // uniform
    for (uint k = 0; k < (A.round_ == 0 ? WIDE - 1 : HALF); ++k) {
      if (local < HALF) {
        choose(local, k);
      }
      barrier();
      apply(k);
      barrier();
    }
    update();
    if (local == 0) {
      store(A.state, uint64_t(matrix) * MOST_SWEEPS + A.sweep, 1u);
      if (A.sweep + 1 == MOST_SWEEPS) {
        store(A.scales, 2 * matrix, T(NAN_F));
      }
    }
  }
}

void main() {
  uint pairs = A.rows / WIDE;
  uint matrix = group_index() / pairs;
  uint64_t last = uint64_t(matrix) * MOST_SWEEPS + A.sweep - 1;
  first = uint64_t(matrix) * A.rows;
  blocks = pair_of(group_index() % pairs, A.round_, 2 * pairs);
  if (matrix < A.count &&
      (A.sweep == 0 || load(A.state, last) != 0)) { // uniform
    work(matrix);
  }
}

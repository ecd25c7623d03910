// Singular values and vectors by one-sided Jacobi rotations (Hestenes 1958;
// Demmel & Veselic, Jacobi's method is more accurate than QR, 1992), in rounds
// of disjoint pairs (Brent & Luk 1985). Eigenvalues are the singular values of
// x + c, c the largest sum of a row's magnitudes, less c.
//
// A workgroup has a matrix, four invocations a pair of columns. The rotations
// of v are collected in shared memory up to 32 columns, and above by an
// invocation for each row.
#include "common/numeric.glsl"
#include "common/types.glsl"
#include "linalg/linalg.h"
#include "linalg/scale.glsl"
#define ARGS_BLOCK JacobiArgs
#include "common/args.glsl"

#define PAIRS (MOST / 2)
#define GROUP (PAIRS * 4)
layout(local_size_x = GROUP) in;

#define HELD (VECTORS && MOST <= 32)
#define COLLECTED (VECTORS && MOST > 32)
const float TOLERANCE = 1.1920929e-7; // times the root of the rows
// A part of the largest item's square: a column shorter than 1e-9 times that
// item changes no other.
const float NEGLIGIBLE = 1e-18;
const uint SWEEPS = 15; // 6 to 10 are usual

shared float a[MOST][MOST + 1]; // columns
#if HELD
shared float held[MOST][MOST + 1];
#endif
shared vec2 turns[PAIRS]; // sines, tangents of half the angles
shared float values[MOST];
shared uint ranks[MOST];
shared float part[PAIRS];
shared uint rotated;

#if VECTORS
#define WORK(row, col)                                                        \
  (uint64_t(group_index()) * MOST + (col)) * MOST + (row)
#endif

// The largest of all invocations' x >= 0.
float group_max(float x) {
  uint local = gl_LocalInvocationIndex;
  x = max(x, subgroupShuffleXor(x, 1u));
  x = max(x, subgroupShuffleXor(x, 2u));
  if (local % 4 == 0) {
    part[local / 4] = x;
  }
  barrier();
  x = part[0];
  for (uint i = 1; i < PAIRS; ++i) {
    x = max(x, part[i]);
  }
  barrier();
  return x;
}

// Pair `i` of a round: a tournament of an even number of columns.
uvec2 pair_of(uint i, uint round_) {
  uint last = (A.cols + 1) / 2 * 2 - 1;
  uint p = i == 0 ? last : (round_ + i) % last;
  uint q = i == 0 ? round_ : (round_ + last - i) % last;
  return uvec2(min(p, q), max(p, q));
}

// Loads x, scaled and with zeros around; returns the scale, NaN if an item is
// not finite.
float load_scaled() {
  uint local = gl_LocalInvocationIndex;
  int64_t x = group_index() * A.xs.batch;
  float most = 0.0, bad = 0.0;
  for (uint i = local; i < MOST * MOST; i += GROUP) {
    uint row = i % MOST, col = i / MOST;
    bool inside = row < A.rows && col < A.cols;
    uint r = SYMMETRIC != 0 ? max(row, col) : row;
    uint c = SYMMETRIC != 0 ? min(row, col) : col;
    float v = load(A.x, inside ? x + r * A.xs.row + c * A.xs.col : x);
    v = inside ? v : 0.0;
    bad = is_finite(v) ? bad : 1.0;
    most = is_finite(v) ? max(most, abs(v)) : most;
    a[col][row] = v;
#if HELD
    held[col][row] = row == col ? 1.0 : 0.0;
#endif
  }
  float scale = scale_of(group_max(most));
  for (uint i = local; i < MOST * MOST; i += GROUP) {
    a[i / MOST][i % MOST] *= scale;
  }
  return group_max(bad) > 0.0 ? NAN_F : scale;
}

// Adds c to the diagonal and returns it.
float shift() {
  uint local = gl_LocalInvocationIndex;
  float sum = 0.0;
  for (uint c = 0; local < A.rows && c < A.cols; ++c) {
    sum += abs(a[c][local]);
  }
  float most = group_max(sum);
  if (local < A.cols) {
    a[local][local] += most;
  }
  return most;
}

// Makes the columns of one pair orthogonal, by rotations in Rutishauser's form
// (1966), which round less at small angles.
void rotate(uint round_) {
  uint i = gl_LocalInvocationIndex / 4, lane = gl_LocalInvocationIndex % 4;
  uvec2 pair = pair_of(i, round_);
  bool paired = i < (A.cols + 1) / 2 && pair.y < A.cols;
  uint p = paired ? pair.x : 0, q = paired ? pair.y : 0;
  float alpha = 0.0, beta = 0.0, gamma = 0.0;
  for (uint row = lane; row < A.rows; row += 4) {
    float x = a[p][row], y = a[q][row];
    alpha += x * x;
    beta += y * y;
    gamma += x * y;
  }
  [[unroll]] for (uint mask = 1; mask < 4; mask *= 2) {
    alpha += subgroupShuffleXor(alpha, mask);
    beta += subgroupShuffleXor(beta, mask);
    gamma += subgroupShuffleXor(gamma, mask);
  }
  float limit = TOLERANCE * sqrt(float(A.rows)) * sqrt(alpha) * sqrt(beta);
  bool turn = paired && abs(gamma) > max(limit, NEGLIGIBLE);
  float zeta = (beta - alpha) / (2.0 * gamma);
  float t = 1.0 / (abs(zeta) + sqrt(1.0 + min(zeta * zeta, 1e37)));
  t = turn ? (zeta < 0.0 ? -t : t) : 0.0;
  float c = 1.0 / sqrt(1.0 + t * t), s = c * t, tau = s / (1.0 + c);
  for (uint row = lane; turn && row < A.rows; row += 4) {
    float x = a[p][row], y = a[q][row];
    a[p][row] = x - s * (y + tau * x);
    a[q][row] = y + s * (x - tau * y);
  }
#if HELD
  for (uint row = lane; turn && row < A.cols; row += 4) {
    float x = held[p][row], y = held[q][row];
    held[p][row] = x - s * (y + tau * x);
    held[q][row] = y + s * (x - tau * y);
  }
#elif COLLECTED
  if (lane == 0) {
    turns[i] = vec2(s, tau);
  }
#endif
  if (turn && lane == 0) {
    rotated = 1;
  }
  barrier();
#if COLLECTED
  uint row = gl_LocalInvocationIndex;
  for (uint j = 0; row < A.cols && j < (A.cols + 1) / 2; ++j) {
    uvec2 at = pair_of(j, round_);
    float s = turns[j].x, tau = turns[j].y;
    if (at.y < A.cols && s != 0.0) {
      float x = load(A.work, WORK(row, at.x));
      float y = load(A.work, WORK(row, at.y));
      store(A.work, WORK(row, at.x), x - s * (y + tau * x));
      store(A.work, WORK(row, at.y), y + s * (x - tau * y));
    }
  }
  barrier();
#endif
}

void sweep() {
  uint rounds = (A.cols + 1) / 2 * 2 - 1;
  bool going = true;
  for (uint turn = 0; turn < SWEEPS && going; ++turn) {
    if (gl_LocalInvocationIndex == 0) {
      rotated = 0;
    }
    barrier();
    for (uint k = 0; k < rounds; ++k) {
      rotate(k);
    }
    going = rotated != 0;
    barrier();
  }
}

// Sorts the columns by their lengths; ties keep their order.
void rank_columns(float less) {
  uint local = gl_LocalInvocationIndex;
  if (local < A.cols) {
    float sum = 0.0;
    for (uint row = 0; row < A.rows; ++row) {
      sum += a[local][row] * a[local][row];
    }
    values[local] = sqrt(sum) - less;
  }
  barrier();
  if (local < A.cols) {
    float mine = values[local];
    uint rank = 0;
    for (uint c = 0; c < A.cols; ++c) {
      bool before = SYMMETRIC != 0 ? values[c] < mine : values[c] > mine;
      rank += before || (values[c] == mine && c < local) ? 1 : 0;
    }
    ranks[local] = rank;
  }
  barrier();
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
#if COLLECTED
  for (uint c = 0; local < A.cols && c < A.cols; ++c) {
    store(A.work, WORK(local, c), c == local ? 1.0 : 0.0);
  }
#endif
  float scale = load_scaled();
  bool bad = is_nan(scale);
  float back = inverse_power(scale);
  barrier();
  float less = 0.0;
#if SYMMETRIC
  less = shift();
  barrier();
#endif
  sweep();
  rank_columns(less);
  if (local < A.cols) {
    uint rank = bad ? local : ranks[local];
    float s = bad ? NAN_F : values[local] * back;
    store(A.s, uint64_t(matrix) * A.cols + rank, s);
  }
#if VECTORS
  for (uint i = local; i < MOST * MOST; i += GROUP) {
    uint row = i % MOST, col = i / MOST;
    uint rank = bad || col >= A.cols ? col : ranks[col];
#if !SYMMETRIC
    if (row < A.rows && col < A.cols) {
      float y = bad ? NAN_F : a[col][row] * back;
      int64_t at = matrix * A.ys.batch;
      store(A.y, at + row * A.ys.row + rank * A.ys.col, y);
    }
#endif
#if HELD
    if (row < A.cols && col < A.cols) {
      float v = bad ? NAN_F : held[col][row];
      int64_t at = matrix * A.vs.batch;
      store(A.v, at + row * A.vs.row + rank * A.vs.col, v);
    }
#endif
  }
#endif
#if COLLECTED
  for (uint c = 0; local < A.cols && c < A.cols; ++c) {
    float v = bad ? NAN_F : load(A.work, WORK(local, c));
    int64_t at = matrix * A.vs.batch;
    uint rank = bad ? c : ranks[c];
    store(A.v, at + local * A.vs.row + rank * A.vs.col, v);
  }
#endif
}

// A folded grid has more workgroups than there are matrices.
void main() {
  if (group_index() < A.count) { // uniform
    work(group_index());
  }
}

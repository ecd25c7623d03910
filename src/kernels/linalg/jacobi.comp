// One-sided Jacobi rotations of the columns of a small stack (Hestenes 1958;
// Demmel & Veselic, Jacobi's method is more accurate than QR, 1992), in rounds
// of disjoint pairs (Brent & Luk 1985), until all are orthogonal. A workgroup
// has a matrix in shared memory, four invocations a pair of columns.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#include "linalg/rotation.glsl"
#define ARGS_BLOCK JacobiArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

#define GROUP (MOST * 2)
layout(local_size_x = GROUP) in;

const uint SWEEPS = 30; // 6 to 10 are usual

shared T a[MOST][LINES + 1]; // columns
shared uint turned;

// Makes the columns of one pair orthogonal.
void rotate(uint round_, T tolerance) {
  uint i = gl_LocalInvocationIndex / 4, lane = gl_LocalInvocationIndex % 4;
  uvec2 pair = pair_of(i, round_, (A.rows + 1) / 2 * 2);
  bool paired = i < (A.rows + 1) / 2 && pair.y < A.rows;
  uint p = pair.x, q = pair.y;
  T alpha = 0.0, beta = 0.0, gamma = 0.0;
  for (uint row = lane; paired && row < A.rows; row += 4) {
    T x = a[p][row], y = a[q][row];
    alpha += x * x;
    beta += y * y;
    gamma += x * y;
  }
  [[unroll]] for (uint mask = 1; mask < 4; mask *= 2) {
    alpha += shuffle_xor(alpha, mask);
    beta += shuffle_xor(beta, mask);
    gamma += shuffle_xor(gamma, mask);
  }
  T limit = tolerance * sqrt(alpha) * sqrt(beta);
  bool turn = paired && abs(gamma) > max(limit, NEGLIGIBLE);
  T2 by = rotation_by(turn ? tangent_of(alpha, beta, gamma) : 0.0);
  for (uint line = lane; turn && line < A.lines; line += 4) {
    T2 v = rotated(T2(a[p][line], a[q][line]), by);
    a[p][line] = v.x;
    a[q][line] = v.y;
  }
  if (turn && lane == 0) {
    atomicOr(turned, 1u);
  }
  barrier();
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
  uint64_t stack = uint64_t(matrix) * A.rows * A.lines;
  for (uint i = local; i < A.rows * A.lines; i += GROUP) {
    a[i / A.lines][i % A.lines] = load(A.stack, stack + i);
  }
  bool going = true;
  for (uint sweep = 0; sweep < SWEEPS && going; ++sweep) {
    if (local == 0) {
      turned = 0;
    }
    barrier();
    T tolerance = EPSILON * sqrt(T(A.rows)) * slack_of(sweep + 1 == SWEEPS);
    for (uint k = 0; k < (A.rows + 1) / 2 * 2 - 1; ++k) {
      rotate(k, tolerance);
    }
    going = turned != 0;
    barrier();
  }
  for (uint i = local; i < A.rows * A.lines; i += GROUP) {
    store(A.stack, stack + i, a[i / A.lines][i % A.lines]);
  }
  if (going && local == 0) {
    store(A.scales, 2 * matrix, T(NAN_F));
  }
  if (local < A.rows) {
    T sum = 0.0;
    for (uint row = 0; row < A.rows; ++row) {
      sum += a[local][row] * a[local][row];
    }
    store(A.lengths, uint64_t(matrix) * A.rows + local, sqrt(sum));
  }
}

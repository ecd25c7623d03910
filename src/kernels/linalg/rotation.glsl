// Rotations of pairs of columns.
#pragma once

// Pair `i` of a round: a tournament of n columns, an even number.
uvec2 pair_of(uint i, uint round_, uint n) {
  uint last = n - 1;
  uint p = i == 0 ? last : (round_ + i) % last;
  uint q = i == 0 ? round_ : (round_ + last - i) % last;
  return uvec2(min(p, q), max(p, q));
}

// How far from orthogonal columns may be, as a multiple. A matrix whose last sweep
// rotates gives NaN, so that sweep leaves what is accurate enough: rotations never
// increase the sum of the squares of the columns' products.
T slack_of(bool last) {
  return last ? 10.0 : 1.0;
}

// The tangent of the angle that makes columns orthogonal, from the squares of
// their lengths and their product, which is not zero.
T tangent_of(T alpha, T beta, T gamma) {
  T zeta = (beta - alpha) / (2.0 * gamma);
  T t = 1.0 / (abs(zeta) + sqrt(1.0 + min(zeta * zeta, LARGE_SQUARE)));
  return zeta < 0.0 ? -t : t;
}

// The sine, and the tangent of half the angle: Rutishauser's form (1966), which
// rounds less at small angles.
T2 rotation_by(T t) {
  T c = 1.0 / sqrt(1.0 + t * t), s = c * t;
  return T2(s, s / (1.0 + c));
}
T2 rotated(T2 v, T2 by) {
  return T2(v.x - by.x * (v.y + by.y * v.x), v.y + by.x * (v.x - by.y * v.y));
}

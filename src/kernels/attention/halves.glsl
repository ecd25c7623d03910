// bfloat16 q, k and v of a head as float16, each scaled by a power of two so
// that its largest item is below 2^16. Weights are multiplied by WEIGHT_UNIT.
//
// A head is `exact` if all its items are finite, those of v are exact, and the
// rounding of q and k, 2^-41 of their largest items, moves a score by 2^-16 at
// most. prefill.comp computes the other heads (docs/dev/matrix-units.md).
#pragma once

#include "common/halves.glsl"

#define WEIGHT_UNIT 32768.0
// 2^(LEAST_V_TOP - 30), divided by a sum of weights, is a normal float.
#define LEAST_V_TOP (-64)

float power_of_two(int n) {
  return uintBitsToFloat(uint(n + 127) << 23);
}

// Exponents of the largest items; factors of scores and of y.
int q_top, k_top, v_top;
float score_scale, y_scale;

// Sets these variables; returns whether the head is exact.
bool take_ranges(uint batch, uint kv_head) {
  uint at = (batch * A.kv_heads + kv_head) * 6;
  uint q = load(A.ranges, at), k = load(A.ranges, at + 2);
  uint v = load(A.ranges, at + 4), least = load(A.ranges, at + 5);
  q_top = max(int(q >> 7) - 127, LEAST_TOP);
  k_top = max(int(k >> 7) - 127, LEAST_TOP);
  v_top = max(int(v >> 7) - 127, LEAST_V_TOP);
  int power = q_top + k_top - 30;
  score_scale =
      A.scale * power_of_two(power / 2) * power_of_two(power - power / 2);
  y_scale = power_of_two(v_top - 30);
  // Scaled items are below 2^16, so products are below 2^32.
  float largest = abs(score_scale) * (D * 4294967296.0);
  bool v_exact = int(min(least, 0x7fffu) >> 7) - 127 + 15 - v_top >= -17;
  return max(max(q, k), v) < 0x7f80u && largest < 16777216.0 && v_exact;
}

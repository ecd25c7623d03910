// RMS norm steps shared by norm.comp and fused products; `precise`, so that
// results are bit-identical.
#pragma once

float add_squares(float total, vec4 v) {
  precise float sum = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  precise float more = total + sum;
  return more;
}

// Factor of a row with the sum of squares `total`.
float rms_factor(float total, float inverse_n, float eps) {
  precise float mean = total * inverse_n + eps;
  return inversesqrt(mean);
}

// The root mean square norm, in parts that norm.comp and fused products share:
// precise, so that both have the same bits.
#ifndef RMS_GLSL
#define RMS_GLSL

float add_squares(float total, vec4 v) {
  precise float sum = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  precise float more = total + sum;
  return more;
}

// The factor of a row whose squares add up to `total`.
float rms_factor(float total, float inverse_n, float eps) {
  precise float mean = total * inverse_n + eps;
  return inversesqrt(mean);
}

#endif

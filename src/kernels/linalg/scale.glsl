// Scaling by powers of two, so that squares neither overflow nor vanish.
#pragma once

// About 2^-e for x in [2^e, 2^(e+1)); 1 for 0 and NaN. Its inverse is normal.
float scale_of(float x) {
  int e = int(floatBitsToUint(x) >> 23) - 127;
  return x > 0.0 ? uintBitsToFloat(uint(clamp(127 - e, 2, 252)) << 23) : 1.0;
}

// 1 / scale_of(x).
float inverse_power(float scale) {
  return uintBitsToFloat(0x7f000000u - floatBitsToUint(scale));
}

// Common part of attention kernels with cooperative matrices.
#pragma once

#include "common/matrices.glsl"

// Loads 16 bytes of row r from item 8 * c on; zero for rows from `end` on.
uvec4 fetch(T_PTR x, int64_t pitch, uint r, uint c, uint end) {
  uvec4 y = uvec4(0);
  if (r < end) {
    int64_t at = int64_t(r) * pitch + int64_t(c * 8);
    y = Ptr_u32x4(uint64_t(x) + uint64_t(at * 2)).v[0];
  }
  return y;
}

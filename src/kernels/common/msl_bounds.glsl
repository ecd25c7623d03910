// MLX_VK_DEBUG=bounds for translated Metal kernels: checks every access against
// the arrays of the call. MSL_ARRAYS(F) expands to F(i, begin, end) for each:
// the byte range of argument i, relative to its address A.ai.
#pragma once

#include "common/report.glsl"

// Returns p if the n bytes at p lie in an array; otherwise reports the access
// with the nearest array and returns a scratch address.
uint64_t msl_checked(uint64_t p, uint n, uint line) {
  int64_t least = 0x7fffffffffffffffl, near = 0l, size = 0l;
  uint argument = 0u;
#define NEAREST_(i, begin, end)                                               \
  {                                                                           \
    int64_t at = int64_t(p - A.a##i);                                         \
    int64_t over = max(int64_t(begin) - at, at + int64_t(n) - int64_t(end));  \
    if (over < least) {                                                       \
      least = over;                                                           \
      near = at;                                                              \
      size = int64_t(end);                                                    \
      argument = i;                                                           \
    }                                                                         \
  }
  MSL_ARRAYS(NEAREST_)
  if (least <= 0l) {
    return p;
  }
  KernelReport r = KernelReport(uvec2(REPORT_LOW, REPORT_HIGH));
  if (atomicCompSwap(r.index_kernel, 0u, REPORT_KERNEL) == 0u) {
    r.index = uint64_t(near);
    r.position = argument;
    r.size = uint64_t(size);
    r.line = line;
    r.bytes = n;
  }
  return packUint2x32(uvec2(REPORT_LOW, REPORT_HIGH)) + REPORT_NOBODYS;
}

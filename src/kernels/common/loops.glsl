// BOUNDED_WHILE(condition, bound): a `while` whose iteration count depends on
// data. `bound` is the largest count, as a uint; a comment derives it. `break`
// is allowed. All other loops of kernels are `for` loops.
//
// With MLX_VK_DEBUG=loops the host defines LOOP_LIMIT, the largest meaningful
// bound on the device. Loops then count, and one that exceeds its bound writes
// a report (pipeline/reports.h) and ends.
#pragma once

#ifdef LOOP_LIMIT
#include "common/report.glsl"

bool may_turn(uint turn, uint bound, uint line) {
  bound = min(bound, uint(LOOP_LIMIT));
  if (turn < bound) {
    return true;
  }
  // A single store, so that reports of several loops do not mix.
  KernelReport(uvec2(REPORT_LOW, REPORT_HIGH)).loop =
      packUint2x32(uvec2(REPORT_KERNEL << 12 | line, bound));
  return false;
}

// Bound of compare-and-swap loops. An attempt fails only if another invocation
// changed the word since it was read, and each changes it once; so there are
// fewer failures than invocations, at most 1,024 per workgroup. may_turn()
// lowers the bound to LOOP_LIMIT, more than run at once.
uint competitors() {
  uvec3 n = gl_NumWorkGroups;
  return uint(min(1024.0 * float(n.x) * float(n.y) * float(n.z), 4294967040.0));
}

#define BOUNDED_WHILE(condition, bound)                                       \
  for (uint turn_ = 0; (condition) && may_turn(turn_, bound, __LINE__); ++turn_)

#else
#define BOUNDED_WHILE(condition, bound) while (condition)
#endif

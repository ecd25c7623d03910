// BOUNDED_WHILE(condition, bound): a `while` whose number of turns depends on
// data. It states how many turns it takes at most, as a uint, which a comment
// derives; `break` works. Otherwise a kernel has `for` loops alone.
//
// With MLX_VK_DEBUG=loops the host defines LOOP_LIMIT, the largest bound that
// makes sense on the device. Loops then count, and one that would go beyond its
// bound says so in the word that pipeline/reports.h reads, and ends.
#ifndef LOOPS_GLSL
#define LOOPS_GLSL

#ifdef LOOP_LIMIT
#include "common/report.glsl"

bool may_turn(uint turn, uint bound, uint line) {
  bound = min(bound, uint(LOOP_LIMIT));
  if (turn < bound) {
    return true;
  }
  // One store, so that reports of several loops do not mix.
  KernelReport(uvec2(REPORT_LOW, REPORT_HIGH)).loop =
      packUint2x32(uvec2(REPORT_KERNEL << 12 | line, bound));
  return false;
}

// A bound for compare-and-swap loops. An attempt fails if another invocation
// has changed the word since it was read, and each changes it once: there are
// no more failures than invocations, 1,024 a workgroup at most. may_turn()
// lowers this to LOOP_LIMIT, more than run at once.
uint competitors() {
  uvec3 n = gl_NumWorkGroups;
  return uint(min(1024.0 * float(n.x) * float(n.y) * float(n.z), 4294967040.0));
}

#define BOUNDED_WHILE(condition, bound)                                       \
  for (uint turn_ = 0; (condition) && may_turn(turn_, bound, __LINE__); ++turn_)

#else
#define BOUNDED_WHILE(condition, bound) while (condition)
#endif

#endif

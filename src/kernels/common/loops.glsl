// BOUNDED_WHILE(condition, bound): a `while` whose number of turns depends on
// data. It states how many turns it takes at most, as a uint, which a comment
// derives; `break` works. Otherwise a kernel has `for` loops alone.
//
// With MLX_VK_DEBUG=loops the host defines LOOP_LIMIT, the largest bound that
// makes sense on the device. Loops then count, and one that would go beyond its
// bound says so in the word that pipeline/loops.h reads, and ends.
#ifndef LOOPS_GLSL
#define LOOPS_GLSL

#ifdef LOOP_LIMIT

layout(constant_id = 0) const uint LOOP_REPORT_LOW = 0;
layout(constant_id = 1) const uint LOOP_REPORT_HIGH = 0;
layout(constant_id = 2) const uint LOOP_KERNEL = 0;
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer LoopReport {
  uint64_t word;
};

bool may_turn(uint turn, uint bound, uint line) {
  bound = min(bound, uint(LOOP_LIMIT));
  if (turn < bound) {
    return true;
  }
  // One store, so that reports of several loops do not mix.
  LoopReport(uvec2(LOOP_REPORT_LOW, LOOP_REPORT_HIGH)).word =
      packUint2x32(uvec2(LOOP_KERNEL << 12 | line, bound));
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

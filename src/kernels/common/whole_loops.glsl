// For custom kernels on software devices: whether the driver has ended the loops
// of an invocation, as llvmpipe does in silence after 65,535 turns of all of them
// together (pipeline/cut_loops.h). Then no loop turns twice any more: not this one
// either, whose turns lie in memory so that no compiler knows them.
#ifndef WHOLE_LOOPS_GLSL
#define WHOLE_LOOPS_GLSL

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer WholeLoops {
  volatile uint kernel; // of the report
  volatile uint next[3]; // 1, 2, 2
  volatile uint cut[3]; // 1, 1, 0
};

void check_whole_loops(uint64_t report, uint kernel) {
  WholeLoops loops = WholeLoops(report);
  uint turn = 0u;
  for (uint i = 0u; i < loops.next[turn]; i = turn) {
    turn = loops.next[turn];
  }
  if (loops.cut[turn] != 0u) {
    loops.kernel = kernel;
  }
}

#endif

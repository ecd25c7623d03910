// Detects, for custom kernels on software devices, that the driver has ended an
// invocation's loops; llvmpipe does so silently after 65,535 iterations in
// total (pipeline/cut_loops.h). From then on every loop of the invocation ends
// after one turn. So this loop takes two; their count is read from memory, so that
// no compiler can unroll it.
#pragma once

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer WholeLoops {
  volatile uint kernel; // the number of a kernel whose loops were cut
  volatile uint next[3]; // by turns done, those after the next turn: 1, 2, 2
  volatile uint cut[3]; // whether the loop was cut after 0, 1, 2 turns: 1, 1, 0
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

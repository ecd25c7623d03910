// The argument block. Before including this file, a kernel writes
//   #define ARGS_BLOCK RopeArgs
// with the struct of its interface (common/interface.h). Members are then A.x,
// A.y, A.n. Blocks of up to 128 bytes are push constants; for larger ones the
// host defines ARGS_IN_MEMORY.
#pragma once

#include "common/argument_block.glsl"
#define A ARGUMENTS

// Linear index of the workgroup. The host folds grids above 65,535 groups into
// y and z (linear() in backend/stream_encoder.h) and may round up, so compare
// with the real count. A long dispatch may run in parts, each a grid of its own
// (runtime/work.h): this function keeps its value, other gl_ names do not, and
// the group count must come from the arguments.
uint group_index() {
  return gl_WorkGroupID.x +
      gl_NumWorkGroups.x *
      (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}
// Index of this invocation in the folded grid, for one-dimensional groups.
// 64-bit, because a grid may hold more than 2^32 invocations. Macros, because
// the workgroup size is declared after this file.
#define thread_index64()                                                      \
  (uint64_t(group_index()) * gl_WorkGroupSize.x + gl_LocalInvocationID.x)
#define thread_index()                                                        \
  (group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

// The argument block. A kernel writes, before including this file,
//   #define ARGS_BLOCK RopeArgs
// the struct of its interface (common/interface.h), and reads the members as
// A.x, A.y, A.n. Blocks of up to 128 bytes are push constants; the host defines
// ARGS_IN_MEMORY for larger ones.
#ifndef ARGS_GLSL
#define ARGS_GLSL

#include "common/argument_block.glsl"
#define A ARGUMENTS

// Grids above 65,535 groups are folded into y and z by the host (linear() in
// backend/stream_encoder.h), which may round up: always compare with the real
// count. A long dispatch may run in parts, each a grid of its own: of the gl_...
// names this function alone keeps its meaning there (runtime/work.h), and how
// many groups there are is for the arguments to say.
uint group_index() {
  return gl_WorkGroupID.x +
      gl_NumWorkGroups.x *
      (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}
// Index of this invocation in the folded grid, for one-dimensional groups.
// 64-bit: a grid may hold more than 2^32 invocations.
// Macros, since the workgroup's size is declared after this file.
#define thread_index64()                                                      \
  (uint64_t(group_index()) * gl_WorkGroupSize.x + gl_LocalInvocationID.x)
#define thread_index()                                                        \
  (group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#endif

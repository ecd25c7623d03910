// Declares only the argument block, as ARGUMENTS: for args.glsl, and for
// user-written sources, whose names must not clash (common/custom.glsl).
#pragma once

#ifdef ARGS_IN_MEMORY
// Not readonly, because glslang would then refuse to pass its addresses to
// functions.
layout(buffer_reference, scalar, buffer_reference_align = 8) restrict buffer
    ArgumentMemory {
  ARGS_BLOCK args;
};
layout(push_constant, scalar) uniform ArgumentPush {
  ArgumentMemory memory;
} pushed;
#define ARGUMENTS pushed.memory.args
#else
layout(push_constant, scalar) uniform ArgumentPush {
  ARGS_BLOCK args;
} pushed;
#define ARGUMENTS pushed.args
#endif

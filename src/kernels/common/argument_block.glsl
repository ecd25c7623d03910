// The argument block alone, as ARGUMENTS: for args.glsl, and for sources whose
// names are their author's (common/custom.glsl).
#ifndef ARGUMENT_BLOCK_GLSL
#define ARGUMENT_BLOCK_GLSL

#ifdef ARGS_IN_MEMORY
// Not readonly: glslang would not pass its addresses to functions.
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

#endif

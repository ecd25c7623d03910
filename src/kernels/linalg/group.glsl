// Reductions over a workgroup of GROUP invocations, in uniform control flow.
#pragma once

shared T quads_[GROUP / 4]; // subgroups have at least 4

#define GROUP_REDUCE(NAME, OP)                                                \
  T NAME(T x) {                                                               \
    x = OP(x, shuffle_xor(x, 1u));                                            \
    x = OP(x, shuffle_xor(x, 2u));                                            \
    if (gl_LocalInvocationIndex % 4 == 0) {                                   \
      quads_[gl_LocalInvocationIndex / 4] = x;                                \
    }                                                                         \
    barrier();                                                                \
    x = quads_[0];                                                            \
    for (uint i = 1; i < GROUP / 4; ++i) {                                    \
      x = OP(x, quads_[i]);                                                   \
    }                                                                         \
    barrier();                                                                \
    return x;                                                                 \
  }
#define PLUS_(a, b) ((a) + (b))
GROUP_REDUCE(group_sum, PLUS_)
GROUP_REDUCE(group_max, max)

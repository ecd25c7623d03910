// Rows of the gated delta rule's state, of DK floats, in the registers of teams
// of LANES invocations.
#pragma once

#include "common/lanes.glsl"
#include "common/vec4.glsl"

TEAM_REDUCE(team_sum, float, lane_add, sums)

#define PACKS (DK / (4 * LANES))

// Item of the lane's pack i, counted from its first item.
#define ITEM(i) ((i) * 4 * LANES)

// Four items of q or k stay packed until their use, so that no conversion waits
// for the loads of the next step.
#if VEC
#ifdef T_IS_f32
#define RAW4 vec4
#else
#define RAW4 uvec2
#endif
#define LOAD(p, i) VEC4_AT(p, i)
#define ITEMS(raw) UNPACK4(raw)
#define LOAD_STATE(p, i) Ptr_f32x4(uint64_t(p) + uint64_t(i) * 4).v[0]
#define STORE_STATE(p, i, value)                                              \
  Ptr_f32x4(uint64_t(p) + uint64_t(i) * 4).v[0] = value
#else
#define RAW4 vec4
#define LOAD(p, i)                                                            \
  vec4(load(p, i), load(p, (i) + 1), load(p, (i) + 2), load(p, (i) + 3))
#define ITEMS(raw) raw
#define LOAD_STATE(p, i) LOAD(p, i)
#define STORE_STATE(p, i, value)                                              \
  {                                                                           \
    [[unroll]] for (uint j_ = 0; j_ < 4; ++j_) {                              \
      store(p, (i) + j_, (value)[j_]);                                        \
    }                                                                         \
  }
#endif

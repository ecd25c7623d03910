// Rows of the gated delta rule's state: a team of LANES has one, DK floats, in
// registers.
#ifndef GATED_DELTA_GLSL
#define GATED_DELTA_GLSL

#define WG_SIZE 128
#include "common/lanes.glsl"
#include "common/vec4.glsl"

TEAM_REDUCE(team_sum, float, lane_add, sums)

#define PACKS (DK / (4 * LANES))

// Item of pack i that this lane holds.
#define ITEM(i) ((i) * 4 * LANES + LANE * 4)

#if VEC
#define LOAD(p, i) load_vec4(p, i)
#define LOAD_STATE(p, i) Ptr_f32x4(uint64_t(p) + item_index(i) * 4).v[0]
#define STORE_STATE(p, i, value) LOAD_STATE(p, i) = value
#else
#define LOAD(p, i)                                                            \
  vec4(load(p, i), load(p, (i) + 1), load(p, (i) + 2), load(p, (i) + 3))
#define LOAD_STATE(p, i) LOAD(p, i)
#define STORE_STATE(p, i, value)                                              \
  {                                                                           \
    [[unroll]] for (uint j_ = 0; j_ < 4; ++j_) {                              \
      store(p, (i) + j_, (value)[j_]);                                        \
    }                                                                         \
  }
#endif

#endif

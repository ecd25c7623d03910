// What a step does to the heads of q, k and v before attention
// (runtime/rewrite_rope.cpp): the root mean square norm, the rotary embedding,
// and a copy into the cache, of up to MAX_ROPE_PARTS arrays. The sums are in
// norm.comp's order, and values round where norm.comp and rope.comp store them.
//
// A team takes a head, an invocation the items that norm.comp gives it: what it
// writes over x, it has read. Heads of a workgroup share part, sequence and
// position, so that its invocations make each angle once.
#include "common/rms.glsl"
#include "common/rope.glsl"
#include "common/rows.glsl"
#include "rope_cache.h"
#define ARGS_BLOCK RopeCacheArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)

#define HEAD (4 * LANES * CHUNKS)
shared float heads[TEAMS * HEAD];
shared vec2 turns[HEAD / 2];

int head_offset(HeadStrides s, uint b, uint n, uint t) {
  return int(b) * s.b + int(n) * s.n + int(t) * s.t;
}

void make_turns(RopePart part, uint b, uint t) {
  int position =
      int(t) + load(Ptr_i32(part.offset), int(b) * part.offset_stride);
  float turn = part.scale * float(position);
  for (uint i = gl_LocalInvocationIndex; i < part.half_dims; i += WG_SIZE) {
    float inverse;
    if (part.freqs != 0) {
      inverse = 1.0 / load(Ptr_f32(part.freqs), int(i) * part.freqs_stride);
    } else {
      inverse = inverse_frequency(
          i, part.half_dims, part.log2_base, part.log2_base_low);
    }
    turns[i] = cos_sin(turn, inverse);
  }
}

// Item i of the head that starts at `first`; `own` is its value.
float turned(RopePart part, uint first, uint i, float own) {
  bool traditional = (part.flags & ROPE_TRADITIONAL) != 0;
  uint half_dims = part.half_dims;
  if (i >= 2 * half_dims) {
    return own;
  }
  bool second = traditional ? (i & 1) != 0 : i >= half_dims;
  uint other = traditional ? i ^ 1
      : second             ? i - half_dims
                           : i + half_dims;
  vec2 v = turns[traditional ? i >> 1 : min(i, other)];
  float partner = heads[first + other];
  return second ? turned_second(partner, own, v)
                : turned_first(own, partner, v);
}

// Items as they are.
void move4(T_PTR to, T_PTR from, uint i, uint n) {
#if VEC
  VEC4_AT(to, i) = VEC4_AT(from, i);
#else
  for (uint k = i; k < min(i + 4, n); ++k) {
    (to + uint64_t(k)).v[0] = (from + uint64_t(k)).v[0];
  }
#endif
}

void main() {
  uint group = group_index();
  bool exists = group < A.parts[MAX_ROPE_PARTS - 1].end; // or folded
  group = exists ? group : 0;
  uint p = 0, begin = 0;
  while (p < MAX_ROPE_PARTS - 1 && group >= A.parts[p].end) {
    begin = A.parts[p].end;
    ++p;
  }
  RopePart part = A.parts[p];
  uint rest = (group - begin) / part.blocks;
  uint head = (group - begin - rest * part.blocks) * TEAMS + TEAM;
  uint b = rest / part.L;
  uint t = rest - b * part.L;
  bool live = exists && head < part.N;
  head = live ? head : 0;
  uint n = part.D;
  T_PTR x = MOVED(T, T_PTR(part.x), head_offset(part.x_strides, b, head, t));
  T_PTR cache = MOVED(
      T, T_PTR(part.cache), head_offset(part.cache_strides, b, head, t));
  if (part.half_dims == 0) { // of the whole workgroup
    EACH4 {
      if (live && i < n) {
        move4(cache, x, i, n);
      }
    }
    return;
  }

  vec4 held[CHUNKS];
  EACH4 {
    held[c] = FETCH4(x, i, n, 0.0);
  }
  make_turns(part, b, t);
  bool normed = (part.flags & ROPE_NORMED) != 0;
  if (normed) {
    T_PTR to = MOVED(
        T, T_PTR(part.normed), head_offset(part.normed_strides, b, head, t));
    float total = 0.0;
    EACH4 {
      total = add_squares(total, held[c]);
    }
    float scale = rms_factor(team_sum(total), part.inverse_n, part.eps);
    EACH4 {
      vec4 v = held[c] * scale;
      if (part.weight != 0) {
        v = ROUND4_TO_T(v);
        v = v * FETCH4(T_PTR(part.weight), i, n, 0.0);
      }
      held[c] = ROUND4_TO_T(v);
      if (live && part.normed != 0) {
        STORE4(to, i, n, held[c]);
      }
    }
  }
  uint first = TEAM * HEAD;
  EACH4 {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      heads[first + i + k] = held[c][k];
    }
  }
  barrier();
  T_PTR y = MOVED(T, T_PTR(part.y), head_offset(part.y_strides, b, head, t));
  EACH4 {
    if (!live || i >= n) {
      continue;
    }
    if (VEC != 0 && !normed && i >= 2 * part.half_dims) {
      move4(y, x, i, n);
      if (part.cache != 0) {
        move4(cache, x, i, n);
      }
      continue;
    }
    vec4 v;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      v[k] = turned(part, first, i + k, held[c][k]);
    }
    STORE4(y, i, n, v);
    if (part.cache != 0) {
      STORE4(cache, i, n, v);
    }
  }
}

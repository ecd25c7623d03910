// RMS norm, rotary embedding and cache update of the heads of q, k and v before
// attention (runtime/rewrite_rope.cpp), for up to MAX_ROPE_PARTS arrays. Sums
// have norm.comp's order, and values round where norm.comp and rope.comp store
// them: heads pass through shared memory as T, which no compiler may skip.
//
// A team takes a head and an invocation the same items as in norm.comp, so that
// it overwrites only items of x that it has read. Heads of a workgroup share
// part, sequence and position and therefore their angles.
#include "common/rms.glsl"
#include "common/rope.glsl"
#include "common/rows.glsl"
#include "rope_cache.h"
#define ARGS_BLOCK RopeCacheArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)

// A Piece holds four items of T.
#ifdef T_IS_f32
#define Piece vec4
#define item_of(piece, k) (piece)[k]
#else
#define Piece uvec2
float item_of(Piece p, uint k) {
  return UNPACK4(p)[k];
}
#endif
#define PIECES (LANES * CHUNKS) // pieces per head
shared Piece heads[TEAMS * PIECES];
#define PAIRS (2 * PIECES)
shared vec2 turns[PAIRS];

// Bits pass unchanged: what is copied without a rotation may have another type.
Piece load_piece(T_PTR p, uint i, uint n) {
#if VEC
  return i < n ? VEC4_AT(p, i) : Piece(0);
#elif defined(T_IS_f32)
  return FETCH4(p, i, n, 0.0);
#else
  u16vec4 v;
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    v[k] = i + k < n ? load(Ptr_u16(p), i + k) : uint16_t(0);
  }
  return uvec2(pack32(v.xy), pack32(v.zw));
#endif
}
void store_piece(T_PTR p, uint i, uint n, Piece piece) {
#if VEC
  VEC4_AT(p, i) = piece;
#elif defined(T_IS_f32)
  STORE4(p, i, n, piece);
#else
  u16vec4 v = u16vec4(unpack16(piece.x), unpack16(piece.y));
  STORE4(Ptr_u16(p), i, n, v);
#endif
}

int head_offset(RopeStrides s, uint b, uint n, uint t) {
  return int(b) * s.b + int(n) * s.n + int(t) * s.t;
}

void make_turns(RopePart part, uint b, uint t) {
  int offset = load(Ptr_i32(part.offset), int(b) * part.offset_stride);
  [[unroll]] for (uint k = 0; k < (PAIRS + WG_SIZE - 1) / WG_SIZE; ++k) {
    uint i = gl_LocalInvocationIndex + k * WG_SIZE;
    if (i < part.half_dims) {
      float inverse;
      if (part.freqs != 0) {
        inverse = math_divide(
            1.0, load(Ptr_f32(part.freqs), int(i) * part.freqs_stride));
      } else {
        inverse = inverse_frequency(
            i, part.half_dims, part.log2_base, part.log2_base_low);
      }
      turns[i] = cos_sin(part.scale * float(int(t) + offset), inverse);
    }
  }
}

// The op rounds the normalized value to T before it applies the weight.
Piece normed(vec4 v, vec4 weight, bool weighted) {
  if (weighted) {
    v = ROUND4_TO_T(v) * weight;
  }
  return PACK4(v);
}

// Rotates items i to i + 3 of the head whose pieces start at `first`; items
// beyond the pairs are unchanged.
Piece turned(RopePart part, uint first, uint i) {
  uint half_dims = part.half_dims;
  bool traditional = (part.flags & ROPE_TRADITIONAL) != 0;
  vec4 v = UNPACK4(heads[first + i / 4]);
#if VEC
  bool all_second = !traditional && i >= half_dims;
  uint across = all_second ? i - half_dims : i + half_dims;
  vec4 partners =
      traditional ? v.yxwz : UNPACK4(heads[first + across / 4]);
#endif
  vec4 r = v;
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    uint j = i + k;
    bool second = traditional ? (j & 1) != 0 : j >= half_dims;
    uint other = traditional ? j ^ 1 : second ? j - half_dims : j + half_dims;
    if (j < 2 * half_dims) {
#if VEC
      float partner = partners[k];
#else
      float partner = item_of(heads[first + other / 4], other % 4);
#endif
      vec2 turn = turns[traditional ? j / 2 : min(j, other)];
      r[k] = second ? turned_second(partner, v[k], turn)
                    : turned_first(v[k], partner, turn);
    }
  }
  return PACK4(r);
}

void main() {
  uint group = group_index();
  uint p = group % MAX_ROPE_PARTS;
  group /= MAX_ROPE_PARTS;
  RopePart part = A.parts[p];
  uint rest = group / max(part.blocks, 1u);
  uint head = (group - rest * part.blocks) * TEAMS + TEAM;
  uint b = rest / max(part.L, 1u);
  uint t = rest - b * part.L;
  // 0 disables loads and stores.
  uint n = group < part.groups && head < part.N ? part.D : 0;
  T_PTR x = MOVED(T, T_PTR(part.x), head_offset(part.x_strides, b, head, t));
  T_PTR cache = MOVED(
      T, T_PTR(part.cache), head_offset(part.cache_strides, b, head, t));
  Piece held[CHUNKS];
  vec4 weight[CHUNKS];
  bool weighted = part.weight != 0;
  EACH4 {
    held[c] = load_piece(x, i, n);
    weight[c] =
        weighted ? FETCH4(T_PTR(part.weight), i, n, 0.0) : vec4(1.0);
  }
  bool turns_any = part.half_dims > 0; // uniform in the workgroup
  if (turns_any && group < part.groups) {
    make_turns(part, b, t);
  }
  if ((part.flags & ROPE_NORMED) != 0) {
    T_PTR to = MOVED(
        T, T_PTR(part.normed), head_offset(part.normed_strides, b, head, t));
    float total = 0.0;
    EACH4 {
      total = add_squares(total, UNPACK4(held[c]));
    }
    float scale = rms_factor(team_sum(total), part.inverse_n, part.eps);
    EACH4 {
      held[c] = normed(UNPACK4(held[c]) * scale, weight[c], weighted);
      if (i < n && part.normed != 0) {
        store_piece(to, i, n, held[c]);
      }
    }
  }
  uint first = TEAM * PIECES;
  EACH4 {
    heads[first + i / 4] = held[c];
  }
  barrier();
  T_PTR y = MOVED(T, T_PTR(part.y), head_offset(part.y_strides, b, head, t));
  EACH4 {
    if (i < n) {
      Piece piece = turns_any && i < 2 * part.half_dims
          ? turned(part, first, i)
          : held[c];
      if (turns_any) {
        store_piece(y, i, n, piece);
      }
      if (part.cache != 0) {
        store_piece(cache, i, n, piece);
      }
    }
  }
}

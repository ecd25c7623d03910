// Rotary embedding (Su et al., RoFormer, 2021) of (B, N, T, D). Rotates pairs
// (i, i + half) of the first 2 half items of a head, or (2i, 2i + 1) if
// TRADITIONAL, by
//   scale * (t + offset[b]) / base^(i / half), or / freqs[i].
// An invocation takes PAIRS pairs of `heads` heads, or copies as many items
// beyond the pairs. y is row-contiguous and may alias x.
#include "common/index.glsl"
#include "common/rope.glsl"
#include "common/vec4.glsl"

#if VEC
#define PAIRS 4
#else
#define PAIRS 1
#endif
#include "rope.h"
#define ARGS_BLOCK RopeArgs
#include "common/args.glsl"

layout(local_size_x = 128) in;

vec2 turn_of(uint i, float turn) {
#if FREQS
  float inverse =
      math_divide(1.0, load(A.freqs, Index(i) * Index(A.freqs_stride)));
#else
  float inverse =
      inverse_frequency(i, A.half_dims, A.log2_base, A.log2_base_low);
#endif
  vec2 v = cos_sin(turn, inverse);
#if !FORWARD
  v.y = -v.y;
#endif
  return v;
}

void main() {
  UIndex rest = flat_index();
  uint blocks = (A.N + A.heads - 1) / A.heads;
  uint column = uint(take_axis(rest, UIndex(A.columns)));
  uint t = uint(take_axis(rest, UIndex(A.L)));
  uint n = uint(take_axis(rest, UIndex(blocks))) * A.heads;
  if (rest >= UIndex(A.B)) {
    return;
  }
  uint b = uint(rest);
  uint n_end = min(n + A.heads, A.N);
  uint first = column * PAIRS;

  Index n_stride = Index(A.n_stride);
  Index x_at = Index(b) * Index(A.b_stride) + Index(n) * n_stride +
      Index(t) * Index(A.t_stride);
  Index y_at =
      ((Index(b) * Index(A.N) + Index(n)) * Index(A.L) + Index(t)) *
      Index(A.D);
  Index y_stride = Index(A.L) * Index(A.D);
  Index d_stride = Index(A.d_stride);

  if (first >= A.half_dims) { // items that are not rotated
    Index i = Index(2 * A.half_dims + (first - A.half_dims));
    for (; n < n_end; ++n, x_at += n_stride, y_at += y_stride) {
#if VEC
      VEC4_AT(A.y, y_at + i) = VEC4_AT(A.x, x_at + i);
#else
      store(A.y, y_at + i, load(A.x, x_at + i * d_stride));
#endif
    }
    return;
  }

  int position = int(t) + load(A.offset, Index(b) * Index(A.offset_stride));
  float turn = A.scale * float(position);
  vec2 cs[PAIRS];
  [[unroll]] for (uint k = 0; k < PAIRS; ++k) {
    cs[k] = turn_of(first + k, turn);
  }
#if TRADITIONAL
  Index i = Index(2 * first);
  Index j = i + PAIRS;
#else
  Index i = Index(first);
  Index j = i + Index(A.half_dims);
#endif
  for (; n < n_end; ++n, x_at += n_stride, y_at += y_stride) {
#if VEC
    vec4 u = load_vec4(A.x, x_at + i);
    vec4 v = load_vec4(A.x, x_at + j);
#if TRADITIONAL
    vec4 p = vec4(u.xz, v.xz), q = vec4(u.yw, v.yw);
#else
    vec4 p = u, q = v;
#endif
    vec4 r, s;
    [[unroll]] for (uint k = 0; k < PAIRS; ++k) {
      r[k] = turned_first(p[k], q[k], cs[k]);
      s[k] = turned_second(p[k], q[k], cs[k]);
    }
#if TRADITIONAL
    store_vec4(A.y, y_at + i, vec4(r.x, s.x, r.y, s.y));
    store_vec4(A.y, y_at + j, vec4(r.z, s.z, r.w, s.w));
#else
    store_vec4(A.y, y_at + i, r);
    store_vec4(A.y, y_at + j, s);
#endif
#else
    float p = load(A.x, x_at + i * d_stride);
    float q = load(A.x, x_at + j * d_stride);
    store(A.y, y_at + i, turned_first(p, q, cs[0]));
    store(A.y, y_at + j, turned_second(p, q, cs[0]));
#endif
  }
}

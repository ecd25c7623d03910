// Rotary embedding of (B, N, T, D): pairs (i, i + half) of the first 2 half
// items of a head, or (2i, 2i + 1) if TRADITIONAL, turned by
//   scale * (t + offset[b]) / base^(i / half), or / freqs[i].
// An invocation takes PAIRS pairs of `heads` heads, or copies as many items
// beyond the pairs. y is row-contiguous and may be x itself.
#include "common/math.glsl"
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

// 1 / base^(i / half), from log2(base) in two parts.
float inverse_frequency(uint i) {
#if FREQS
  return 1.0 / load(A.freqs, int64_t(i) * A.freqs_stride);
#else
  precise float d = float(i) / float(A.half_dims);
  precise float high = upper12(d) * upper12(A.log2_base);
  precise float low = (d - upper12(d)) * A.log2_base +
      upper12(d) * (A.log2_base - upper12(A.log2_base)) +
      d * A.log2_base_low;
  return math_exp2(-high) * math_exp2(-low);
#endif
}

vec2 cos_sin(float angle) {
  CircleParts p = reduce_circle(angle);
  float s = sin_kernel(p.r, p.tail);
  float c = cos_kernel(p.r, p.tail);
  vec2 v = (p.q & 1) != 0 ? vec2(s, c) : vec2(c, s);
  v.x = ((p.q + 1) & 2) != 0 ? -v.x : v.x;
  v.y = (p.q & 2) != 0 ? -v.y : v.y;
  return is_finite(angle) ? v : vec2(NAN_F);
}

void main() {
  uint64_t at = thread_index64();
  uint blocks = (A.N + A.heads - 1) / A.heads;
  uint64_t rest = at / A.columns;
  uint column = uint(at - rest * A.columns);
  at = rest;
  rest = at / A.L;
  uint t = uint(at - rest * A.L);
  at = rest;
  uint b = uint(at / blocks);
  uint n = uint(at - uint64_t(b) * blocks) * A.heads;
  if (b >= A.B) {
    return;
  }
  uint n_end = min(n + A.heads, A.N);
  uint first = column * PAIRS;

  int64_t x_at = int64_t(b) * A.b_stride + int64_t(n) * A.n_stride +
      int64_t(t) * A.t_stride;
  int64_t y_at =
      ((int64_t(b) * A.N + int64_t(n)) * A.L + int64_t(t)) * A.D;
  int64_t y_stride = int64_t(A.L) * A.D;

  if (first >= A.half_dims) { // what is not turned
    uint i = 2 * A.half_dims + (first - A.half_dims);
    for (; n < n_end; ++n, x_at += A.n_stride, y_at += y_stride) {
#if VEC
      VEC4_AT(A.y, y_at + int64_t(i)) = VEC4_AT(A.x, x_at + int64_t(i));
#else
      store(
          A.y,
          y_at + int64_t(i),
          load(A.x, x_at + int64_t(i) * A.d_stride));
#endif
    }
    return;
  }

  int position = int(t) + load(A.offset, int64_t(b) * A.offset_stride);
  float turn = A.scale * float(position);
  vec2 cs[PAIRS];
  [[unroll]] for (uint k = 0; k < PAIRS; ++k) {
    cs[k] = cos_sin(turn * inverse_frequency(first + k));
#if !FORWARD
    cs[k].y = -cs[k].y;
#endif
  }
#if TRADITIONAL
  uint i = 2 * first;
  uint j = i + PAIRS;
#else
  uint i = first;
  uint j = i + A.half_dims;
#endif
  for (; n < n_end; ++n, x_at += A.n_stride, y_at += y_stride) {
#if VEC
    vec4 c = vec4(cs[0].x, cs[1].x, cs[2].x, cs[3].x);
    vec4 s = vec4(cs[0].y, cs[1].y, cs[2].y, cs[3].y);
    vec4 u = load_vec4(A.x, x_at + int64_t(i));
    vec4 v = load_vec4(A.x, x_at + int64_t(j));
#if TRADITIONAL
    vec4 p = vec4(u.xz, v.xz), q = vec4(u.yw, v.yw);
    vec4 r = p * c - q * s;
    q = p * s + q * c;
    store_vec4(A.y, y_at + int64_t(i), vec4(r.x, q.x, r.y, q.y));
    store_vec4(A.y, y_at + int64_t(j), vec4(r.z, q.z, r.w, q.w));
#else
    store_vec4(A.y, y_at + int64_t(i), u * c - v * s);
    store_vec4(A.y, y_at + int64_t(j), u * s + v * c);
#endif
#else
    float p = load(A.x, x_at + int64_t(i) * A.d_stride);
    float q = load(A.x, x_at + int64_t(j) * A.d_stride);
    store(A.y, y_at + int64_t(i), p * cs[0].x - q * cs[0].y);
    store(A.y, y_at + int64_t(j), p * cs[0].y + q * cs[0].x);
#endif
  }
}

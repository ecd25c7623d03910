// One pass of Fourier transforms along an axis of `extent` items, viewed as
// prefix x n x suffix. The pass transforms lines of n items in shared memory,
// several per workgroup, with one Stockham stage per factor of n. A pass other
// than the last multiplies by twiddle factors and writes in place; the last
// one, with suffix 1, writes item k of the line with prefix index p to
//   p / n2 + n1 * (p % n2) + prefix * k.
// x may hold only the first x_extent items of a Hermitian axis, y only the
// first y_extent items of the result. CAREFUL uses compensated (Kahan) sums,
// because long lines cancel.
#include "common/types.glsl"
#include "fft/unit_root.glsl"

#include "fft/fft.h"
#define ARGS_BLOCK FftArgs
#include "common/args.glsl"

#define THREADS 256
layout(local_size_x = THREADS) in;

shared vec2 items[ITEMS * THREADS];
shared vec2 roots[ITEMS * THREADS];

// Index of item j of the axis in an array that holds `held` of them.
uint64_t place(uint64_t outer, uint64_t j, uint held, uint64_t i) {
  return (outer * uint64_t(held) + j) * A.inner + i;
}

struct Line {
  uint64_t outer, inner;
  uint prefix, suffix;
};

Line line_at(uint64_t l) {
  Line r;
  uint64_t rest = l / A.inner;
  r.inner = l - rest * A.inner;
  uint64_t next = rest / A.suffix;
  r.suffix = uint(rest - next * A.suffix);
  rest = next;
  r.outer = rest / A.prefix;
  r.prefix = uint(rest - r.outer * A.prefix);
  return r;
}

vec2 fetch(uint64_t l, uint j) {
  Line r = line_at(l);
  uint at = (r.prefix * A.n + j) * A.suffix + r.suffix;
  bool mirrored = at >= A.x_extent;
  at = mirrored ? A.extent - at : at;
  vec2 v = to_c64(load(A.x, place(r.outer, uint64_t(at), A.x_extent, r.inner)));
  v.y = mirrored ? -v.y : v.y;
  return v;
}

void put(uint64_t l, uint k, vec2 v) {
  Line r = line_at(l);
  uint at;
  if (A.last != 0u) {
    at = r.prefix / A.n2 + A.n1 * (r.prefix % A.n2) + A.prefix * k;
    v *= A.scale;
  } else {
    at = (r.prefix * A.n + k) * A.suffix + r.suffix;
    vec2 w = unit_root(uint64_t(r.suffix) * k, uint64_t(A.n) * A.suffix);
    w.y = A.inverse != 0u ? -w.y : w.y;
    v = times(v, w);
  }
  if (at < A.y_extent) {
    store(A.y, place(r.outer, uint64_t(at), A.y_extent, r.inner), U_CAST(v));
  }
}

// Item e after a stage of radix `radix`. `done` is the product of the earlier
// factors, `left` that of the later ones.
vec2 stage_sum(uint e, uint radix, uint done) {
  uint n = A.n;
  uint left = n / (done * radix);
  uint line = e / n;
  uint o = e - line * n;
  uint rest = o / done;
  uint q = o - rest * done;
  uint p = rest / radix;
  uint u = rest - p * radix;
  uint from = line * n + q + done * p;
  uint root = u * p * done;
  uint step = u * (n / radix);
  vec2 sum = vec2(0.0);
  precise vec2 lost = vec2(0.0);
  for (uint v = 0; v < radix; ++v) {
    vec2 term = times(items[from], roots[root]);
#if CAREFUL
    precise vec2 kept = term - lost;
    precise vec2 next = sum + kept;
    precise vec2 over = next - sum;
    lost = over - kept;
    sum = next;
#else
    sum += term;
#endif
    from += done * left;
    root += step;
    root = root >= n ? root - n : root;
  }
  return sum;
}

void main() {
  uint t = gl_LocalInvocationIndex;
  uint n = A.n;
  uint64_t first = uint64_t(group_index()) * A.group_lines;
  uint count = A.group_lines * n;

  for (uint k = t; k < n; k += THREADS) {
    vec2 w = unit_root(uint64_t(k), uint64_t(n));
    roots[k] = vec2(w.x, A.inverse != 0u ? -w.y : w.y);
  }
  // Adjacent invocations take adjacent lines if those are closer in memory than
  // the items of a line.
  bool across = A.inner > 1ul || A.suffix > 1u;
  for (uint e = t; e < count; e += THREADS) {
    uint line = across ? e % A.group_lines : e / n;
    uint j = across ? e / A.group_lines : e % n;
    vec2 v = vec2(0.0);
    if (first + uint64_t(line) < A.lines) {
      v = fetch(first + uint64_t(line), j);
    }
    items[line * n + j] = v;
  }
  barrier();

  uint done = 1;
  for (uint stage = 0; stage < A.stages; ++stage) {
    uint radix = A.radices[stage];
    vec2 sums[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      uint e = t + i * THREADS;
      sums[i] = e < count ? stage_sum(e, radix, done) : vec2(0.0);
    }
    barrier();
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      uint e = t + i * THREADS;
      if (e < count) {
        items[e] = sums[i];
      }
    }
    barrier();
    done *= radix;
  }

  across = across || A.prefix > 1u;
  for (uint e = t; e < count; e += THREADS) {
    uint line = across ? e % A.group_lines : e / n;
    uint k = across ? e / A.group_lines : e % n;
    if (first + uint64_t(line) < A.lines) {
      put(first + uint64_t(line), k, items[line * n + k]);
    }
  }
}

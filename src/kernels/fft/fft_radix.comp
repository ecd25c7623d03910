// One pass of Fourier transforms along an axis whose length has only small
// factors. A line of LINE items takes LINE / R1 invocations, which compute
// whole butterflies in registers and exchange items through shared memory
// between Stockham stages.
//
// An axis of several passes is factored as n1 x n2 x ..., and each pass
// transforms its first factor (Bailey's four-step FFT, J. Supercomputing 4,
// 1990). A pass other than the last reads lines of stride `suffix`, multiplies
// item k of column s by exp(-2 pi i s k / (LINE suffix)) and writes in place;
// an axis of `suffix` items remains, LINE times as often. The last pass reads
// rows k1 n2 + k2 of results and writes item k of a row to
//   k1 + n1 (k2 + n2 k).
// Hermitian data is stored by half. With x_held < x_extent, the rest of x are
// conjugates from the other end. A real axis keeps y_rows = LINE / 2 + 1 items
// of its first pass; in the last pass, rows with k1 <= n1 / 2 hold all results
// or their conjugates.
#include "common/types.glsl"
#include "fft/radix.glsl"

#include "fft/fft.h"
#define ARGS_BLOCK FftRadixArgs
#include "common/args.glsl"

#define LANES (LINE / R1) // invocations per line
#define THREADS (LANES * LINES)
layout(local_size_x = THREADS) in;

// Slot of item j of a line in shared memory: one slot of padding per R1 items,
// and a line pitch such that neither items of a line nor items of adjacent
// lines share a bank.
#define SLOT(j) ((j) + (j) / R1)
#define APART (LINES < 32 ? 32 / LINES : 1)
#define PITCH ((SLOT(LINE) + 31) / 32 * 32 + APART)

// Twiddle factors. With `done` the product of the earlier radices, item u of
// butterfly b takes root (b % done) * u of order done * RADIX, tabulated at
// done * u + b % done, which is unique across stages. Lines beyond MOST_ROOTS
// compute roots on the fly, which is faster there.
#define TABLE (LINE <= MOST_ROOTS && R2 > 1)

#if R2 > 1
shared float plane[LINES * PITCH];
#endif
#if TABLE
shared vec2 roots[LINE];
#define ROOT(u, phase, DONE, RADIX) roots[(DONE) * (u) + (phase)]
#else
#define ROOT(u, phase, DONE, RADIX)                                           \
  root_at(turns((u) * (phase) * (LINE / ((DONE) * RADIX)), A.line_turn))
#endif

#if R4 > 1
#define R_LAST R4
#elif R3 > 1
#define R_LAST R3
#elif R2 > 1
#define R_LAST R2
#else
#define R_LAST R1
#endif

// A stage has LINE / RADIX butterflies; butterfly b takes items b + u * (LINE /
// RADIX). The invocation's m-th butterfly is lane + m * LANES, if that exists,
// with items from v[m * RADIX] on.
#define EACH_BUTTERFLY(RADIX)                                                 \
  [[unroll]] for (uint m = 0, b = lane; m < (LINE / (RADIX) + LANES - 1) / LANES; \
                  ++m, b += LANES)
#define EXISTS(b, RADIX)                                                      \
  (LINE / (RADIX) % LANES == 0 || (b) < LINE / (RADIX))

vec2 v[ITEMS];
uint line, lane;

// k / n in units of 2^-32, with `turn` = 2^64 / n.
uint turns(uint k, uint64_t turn) {
  return uint((uint64_t(k) * turn) >> 32);
}

void take_place(uint across) {
  uint t = gl_LocalInvocationIndex;
  line = across != 0u ? t % LINES : t / LANES;
  lane = across != 0u ? t / LINES : t % LANES;
}

// Position of the invocation's line: outer index, column or row, and inner
// index.
struct Place {
  uint outer, column;
  uint64_t inner;
};
Place place() {
  uint l = group_index() * LINES + line;
  Place p = Place(0, l, 0ul);
  if (A.inner != 1ul) {
    p.column = uint(l / uint(A.inner));
    p.inner = uint64_t(l - p.column * uint(A.inner));
  }
  p.outer = p.column / A.columns;
  p.column -= p.outer * A.columns;
  return p;
}
bool is_line() {
  return group_index() * LINES + line < A.lines;
}

void fetch() {
  Place p = place();
  uint64_t base = uint64_t(p.outer) * A.x_outer + p.inner;
#if LAST
  uint k2 = p.column / A.rows_1;
  uint row = (p.column - k2 * A.rows_1) * A.n2 + k2;
  base += uint64_t(row) * A.x_held * A.inner;
  uint column = 0;
#else
  uint column = p.column;
#endif
  [[unroll]] for (uint i = 0; i < R1; ++i) {
    v[i] = vec2(0.0);
    if (is_line()) {
      uint at = (lane + i * LANES) * A.suffix + column;
      bool mirrored = at >= A.x_held;
      at = mirrored ? A.x_extent - at : at;
      vec2 z = to_c64(load(A.x, base + at * A.inner));
      z.y = mirrored ? -z.y : z.y;
      v[i] = A.inverse != 0u ? z.yx : z;
    }
  }
}

#if LAST
void put() {
  Place p = place();
  uint64_t base = uint64_t(p.outer) * A.y_outer + p.inner;
  uint k2 = p.column / A.rows_1;
  uint k1 = p.column - k2 * A.rows_1;
  // Whether the row's conjugate counterpart is stored by the row itself.
  bool whole = k1 == 0u || 2u * k1 == A.n1;
  EACH_BUTTERFLY(R_LAST) {
    [[unroll]] for (uint u = 0; u < R_LAST; ++u) {
      uint k = b + u * (LINE / R_LAST);
      uint at = k1 + A.n1 * (k2 + A.n2 * k);
      vec2 z = v[m * R_LAST + u] * A.scale;
      z = A.inverse != 0u ? z.yx : z;
      bool mirrored = at >= A.y_held;
      at = mirrored ? A.extent - at : at;
      z.y = mirrored ? -z.y : z.y;
      if (is_line() && EXISTS(b, R_LAST) && !(mirrored && whole)) {
        store(A.y, base + at * A.inner, U_CAST(z));
      }
    }
  }
}
#else
void put() {
  Place p = place();
  uint64_t base = uint64_t(p.outer) * A.y_outer + p.inner;
  EACH_BUTTERFLY(R_LAST) {
    [[unroll]] for (uint u = 0; u < R_LAST; ++u) {
      uint k = b + u * (LINE / R_LAST);
      vec2 w = root_at(turns(p.column * k, A.axis_turn));
      vec2 z = times(v[m * R_LAST + u], w);
      z = A.inverse != 0u ? z.yx : z;
      if (is_line() && EXISTS(b, R_LAST) && k < A.y_rows) {
        uint at = k * A.columns + p.column;
        store(A.y, base + at * A.inner, U_CAST(z));
      }
    }
  }
}
#endif

#define CALL_(f, RADIX) f##RADIX
#define CALL(f, RADIX) CALL_(f, RADIX)

// Computes the butterflies of a stage.
#define STAGE(RADIX)                                                          \
  EACH_BUTTERFLY(RADIX) {                                                     \
    vec2 x[RADIX];                                                            \
    [[unroll]] for (uint u = 0; u < RADIX; ++u) {                             \
      x[u] = v[m * RADIX + u];                                                \
    }                                                                         \
    CALL(dft, RADIX)(x);                                                      \
    [[unroll]] for (uint u = 0; u < RADIX; ++u) {                             \
      v[m * RADIX + u] = x[u];                                                \
    }                                                                         \
  }

// Applies the twiddle factors of a stage; DONE: product of earlier radices.
#define TURN(RADIX, DONE)                                                     \
  EACH_BUTTERFLY(RADIX) {                                                     \
    uint phase = b % (DONE);                                                  \
    [[unroll]] for (uint u = 1; u < RADIX; ++u) {                             \
      if (EXISTS(b, RADIX)) {                                                 \
        vec2 w = ROOT(u, phase, DONE, RADIX);                                 \
        v[m * RADIX + u] = times(v[m * RADIX + u], w);                        \
      }                                                                       \
    }                                                                         \
  }

// Moves results of a stage to the invocations that need them in the next.
#define PUT_PART(RADIX, DONE, c)                                              \
  EACH_BUTTERFLY(RADIX) {                                                     \
    uint at = b / (DONE) * ((DONE) * RADIX) + b % (DONE);                     \
    [[unroll]] for (uint u = 0; u < RADIX; ++u) {                             \
      if (EXISTS(b, RADIX)) {                                                 \
        plane[line * PITCH + SLOT(at + (DONE) * u)] = v[m * RADIX + u].c;     \
      }                                                                       \
    }                                                                         \
  }
#define TAKE_PART(RADIX, c)                                                   \
  EACH_BUTTERFLY(RADIX) {                                                     \
    [[unroll]] for (uint u = 0; u < RADIX; ++u) {                             \
      if (EXISTS(b, RADIX)) {                                                 \
        uint at = b + u * (LINE / RADIX);                                     \
        v[m * RADIX + u].c = plane[line * PITCH + SLOT(at)];                  \
      }                                                                       \
    }                                                                         \
  }
// Exchanges real parts, then imaginary parts, which halves the memory and lets
// more workgroups fit a core.
#define EXCHANGE(RADIX, DONE, NEXT)                                           \
  PUT_PART(RADIX, DONE, x)                                                    \
  barrier();                                                                  \
  uint from_line = line, from_lane = lane;                                    \
  take_place(ACROSS_OUT);                                                     \
  TAKE_PART(NEXT, x)                                                          \
  barrier();                                                                  \
  line = from_line;                                                           \
  lane = from_lane;                                                           \
  PUT_PART(RADIX, DONE, y)                                                    \
  barrier();                                                                  \
  take_place(ACROSS_OUT);                                                     \
  TAKE_PART(NEXT, y)                                                          \
  barrier();

#if TABLE
void make_roots() {
  for (uint k = R1 + gl_LocalInvocationIndex; k < LINE; k += THREADS) {
    uint done = k < R1 * R2 ? R1 : k < R1 * R2 * R3 ? R1 * R2 : R1 * R2 * R3;
    uint radix = k < R1 * R2 ? R2 : k < R1 * R2 * R3 ? R3 : R4;
    uint u = k / done;
    uint root = (k - done * u) * u * (LINE / (done * radix));
    roots[k] = root_at(turns(root, A.line_turn));
  }
}
#endif

void main() {
#if TABLE
  make_roots();
#endif
  take_place(ACROSS_IN);
  fetch();
  STAGE(R1)
#if R2 > 1
  {
    EXCHANGE(R1, 1, R2)
    TURN(R2, R1)
    STAGE(R2)
  }
#endif
#if R3 > 1
  {
    EXCHANGE(R2, R1, R3)
    TURN(R3, R1 * R2)
    STAGE(R3)
  }
#endif
#if R4 > 1
  {
    EXCHANGE(R3, R1 * R2, R4)
    TURN(R4, R1 * R2 * R3)
    STAGE(R4)
  }
#endif
  put();
}

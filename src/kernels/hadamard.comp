// Walsh-Hadamard transform of rows of M pieces of n items, n a power of two.
// STEP:
//   Tiles   a workgroup applies the butterflies of 2^b items `stride` apart,
//           for `columns` neighbouring sets
//   Rows    a workgroup transforms a row: butterflies in each piece, then the
//           M x M matrix across pieces
//   Across  an invocation applies the matrix across item i of the pieces
// Bit k of signs[j] is set where entry (j, k) of the matrix is +1. y may alias
// x: all reads of a workgroup (Across: an invocation) precede its writes.
#include "common/types.glsl"

#define Tiles 0
#define Rows 1
#define Across 2
#include "hadamard.h"
#define ARGS_BLOCK HadamardArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

#if STEP != Across
shared float tile[TILE];

// Butterflies of pairs of items low, 2 low, ... below high apart.
void butterflies(uint low, uint high) {
  for (uint h = low; h < high; h *= 2) {
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < TILE / 2; i += 256) {
      uint at = (i & ~(h - 1)) * 2 + (i & (h - 1));
      float a = tile[at], b = tile[at + h];
      tile[at] = a + b;
      tile[at + h] = a - b;
    }
  }
  barrier();
}
#endif

// Writes the product of the M x M matrix and v to y at `first`, with stride n.
#if STEP != Tiles
void across(float v[M], uint64_t first) {
  [[dont_unroll]] for (uint j = 0; j < M; ++j) {
    uint signs = A.signs[j];
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < M; ++k) {
      sum += (signs >> k & 1u) != 0u ? v[k] : -v[k];
    }
    store(A.y, first + uint64_t(j) * A.n, sum * A.scale);
  }
}
#endif

void main() {
#if STEP == Tiles
  uint64_t group = uint64_t(group_index());
  uint64_t first = group * TILE;
  if (A.stride > 1) {
    uint64_t parts = A.stride / A.columns;
    uint64_t outer = group / parts;
    first = outer * A.stride * (TILE / A.columns) +
        (group - outer * parts) * A.columns;
  }
#define PLACE(e) (first + (e) / A.columns * A.stride + (e) % A.columns)
  for (uint e = gl_LocalInvocationIndex; e < TILE; e += 256) {
    uint64_t at = PLACE(e);
    float v = 0.0;
    if (at < A.size) {
      v = load(A.x, at);
    }
    tile[e] = v;
  }
  butterflies(A.columns, A.high);
  for (uint e = gl_LocalInvocationIndex; e < TILE; e += 256) {
    uint64_t at = PLACE(e);
    if (at < A.size) {
      store(A.y, at, tile[e] * A.scale);
    }
  }
#elif STEP == Rows
  uint64_t first = uint64_t(group_index()) * TILE;
  bool live = first < A.size;
  for (uint e = gl_LocalInvocationIndex; e < TILE; e += 256) {
    float v = 0.0;
    if (live) {
      v = load(A.x, first + uint64_t(e));
    }
    tile[e] = v;
  }
  butterflies(1, A.n);
  for (uint i = gl_LocalInvocationIndex; live && i < A.n; i += 256) {
    float v[M];
    [[unroll]] for (uint k = 0; k < M; ++k) {
      v[k] = tile[k * A.n + i];
    }
    across(v, first + uint64_t(i));
  }
#else
  uint64_t i = thread_index64();
  if (i < A.size / M) {
    uint64_t row = i / A.n;
    uint64_t first = row * A.n * M + (i - row * A.n);
    float v[M];
    [[unroll]] for (uint k = 0; k < M; ++k) {
      v[k] = load(A.x, first + uint64_t(k) * A.n);
    }
    across(v, first);
  }
#endif
}

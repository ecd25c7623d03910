// Reduction for outputs that are adjacent in memory. Consecutive invocations
// take consecutive outputs (four each with VEC), and LANES rows of them share a
// workgroup. Part s of output o goes to y[s * outputs + o]. With NDIM=1 outputs
// are contiguous and elements evenly spaced, else strided in up to 16
// dimensions each. With VEC elements are evenly spaced, and four outputs are
// aligned and contiguous.
#define WG_SIZE 256
#define COLUMNS (WG_SIZE / LANES)

#include "common/reduce_operands.glsl"
#if VEC
#include "common/vec4.glsl"
#include "common/vector.glsl"
#define OUTPUTS 4
#define Accs vec4
#define SPREAD vec4
Accs join(Accs a, Accs b) {
  return vec4(
      reduce_op(a.x, b.x),
      reduce_op(a.y, b.y),
      reduce_op(a.z, b.z),
      reduce_op(a.w, b.w));
}
#else
#define OUTPUTS 1
#define Accs Acc
#define SPREAD
#define join reduce_op
#endif

layout(local_size_x = WG_SIZE) in;

shared Accs tile[WG_SIZE];

#if VEC
// Reduces the elements i, i + LANES, ... below `end` of four outputs into acc.
Accs reduce_columns(Accs acc, T_PTR p, UIndex i, UIndex end) {
  Index stride = Index(A.reduced.strides[0]);
  for (; i + 3 * LANES < end; i += 4 * LANES) {
    vec4 v[4];
    [[unroll]] for (uint u = 0; u < 4; ++u) {
      v[u] = load_vec4(p, Index(i + u * LANES) * stride);
    }
#if LANES == 1
    acc = join(join(join(join(acc, v[0]), v[1]), v[2]), v[3]);
#else
    acc = join(acc, join(join(v[0], v[1]), join(v[2], v[3])));
#endif
  }
  for (; i < end; i += LANES) {
    acc = join(acc, load_vec4(p, Index(i) * stride));
  }
  return acc;
}
#else
#define reduce_columns reduce_elements
#endif

void main() {
  uint t = gl_LocalInvocationIndex;
  uint lane = t / COLUMNS;
  const uint wide = COLUMNS * OUTPUTS;
  UIndex blocks = (UIndex(A.parts.outputs) + (wide - 1)) / wide;
  UIndex group = UIndex(group_index());
  UIndex part = group / blocks;
  UIndex o = (group - part * blocks) * wide + t % COLUMNS * OUTPUTS;
  bool live = part < UIndex(A.parts.splits) && o < UIndex(A.parts.outputs);

  Accs acc = SPREAD(neutral());
  if (live) {
    UIndex i = part * UIndex(A.parts.chunk);
    UIndex end = min(i + UIndex(A.parts.chunk), UIndex(A.parts.extent));
    acc = reduce_columns(acc, output_elements(o), i + lane, end);
  }
#if LANES > 1
  tile[t] = acc;
  barrier();
  for (uint reach = LANES / 2; reach > 0; reach /= 2) {
    if (lane < reach) {
      acc = join(acc, tile[t + reach * COLUMNS]);
      tile[t] = acc;
    }
    barrier();
  }
#endif
  if (live && lane == 0) {
    UIndex at = part * UIndex(A.parts.outputs) + o;
#if VEC
    STORE_FOUR(U_PTR, A.y, at / 4, float[4](acc.x, acc.y, acc.z, acc.w));
#else
    store(A.y, at, U_CAST(acc));
#endif
  }
}

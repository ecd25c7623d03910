// variants: T=f32 U=f32 Acc=f32 OP=Sum,Prod,Min,Max,LogSum REVERSE=0,1 INCLUSIVE=0,1 MODE=0; T=f32 U=f32 Acc=f32 OP=Sum,Max REVERSE=1 INCLUSIVE=0 MODE=1,2,3; T=f16 U=f16 Acc=f32 OP=LogSum REVERSE=0 INCLUSIVE=1 MODE=0; T=bool U=i32 Acc=i32 OP=Sum REVERSE=0 INCLUSIVE=1 MODE=0,3; T=u8 U=u8 Acc=u32 OP=Min REVERSE=0 INCLUSIVE=0 MODE=0; T=i64 U=i64 Acc=i64 OP=Sum,Min REVERSE=0 INCLUSIVE=0 MODE=0,1,2; T=c64 U=c64 Acc=c64 OP=Sum,Prod,Max,LogSum REVERSE=0 INCLUSIVE=1 MODE=0,3
// Scans of lines of dense memory: line l starts at
//   (l / stride) * stride * extent + l % stride
// and its items are `stride` apart. Position j of a scan is item j, or with
// REVERSE item extent - 1 - j. MODE 0: one workgroup a line. Long lines in
// parts of `chunk` items: MODE 1 reduces each part into `partial`, which the
// host scans exclusively, MODE 2 scans each part from there. MODE 3: one
// invocation a line. y may be x itself.
#define WG_SIZE 256
#define ITEMS 4

#include "common/reduce_ops.glsl"

// The log of a sum of exponentials is long: one copy of it a loop.
#if OP == LogSum
#define UNROLL [[dont_unroll]]
#else
#define UNROLL [[unroll]]
#endif

#if MODE == 1
#define OPERANDS T_PTR x; Acc_PTR partial;
#elif MODE == 2
#define OPERANDS T_PTR x; Acc_PTR partial; U_PTR y;
#else
#define OPERANDS T_PTR x; U_PTR y;
#endif
#define ARGS                                                                  \
  OPERANDS uint64_t lines; uint64_t stride; uint64_t extent; uint64_t chunk;  \
  uint64_t parts;
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

shared Acc tile[WG_SIZE];

uint64_t item(uint64_t line, uint64_t j) {
  uint64_t outer = A.stride == 1 ? line : line / A.stride;
  uint64_t i = REVERSE == 1 ? A.extent - 1 - j : j;
  return outer * A.stride * A.extent + (line - outer * A.stride) +
      i * A.stride;
}

void main() {
  uint t = gl_LocalInvocationIndex;
#if MODE == 3
  uint64_t line = thread_index64();
  if (line < A.lines) {
    uint64_t at = item(line, 0);
    int64_t step = REVERSE == 1 ? -int64_t(A.stride) : int64_t(A.stride);
    Acc carry = neutral();
    for (uint64_t j = 0; j < A.extent; ++j) {
      Acc next = reduce_op(carry, Acc(LIFT(load(A.x, at))));
      next = j == 0 ? Acc(LIFT(load(A.x, at))) : next;
      store(A.y, at, U_CAST(INCLUSIVE == 1 ? next : carry));
      carry = next;
      at += uint64_t(step);
    }
  }
#else
  uint64_t job = uint64_t(group_index());
  uint64_t line = MODE == 0 ? job : job / A.parts;
  bool live = line < A.lines;
  line = live ? line : uint64_t(0);
  uint64_t begin = MODE == 0 ? uint64_t(0) : (job % A.parts) * A.chunk;
  uint64_t end =
      !live ? begin : MODE == 0 ? A.extent : min(begin + A.chunk, A.extent);
#if MODE == 1
  Acc acc = neutral();
  for (uint64_t j = begin + t * ITEMS; j < end; j += WG_SIZE * ITEMS) {
    for (uint k = 0; k < ITEMS && j + k < end; ++k) {
      acc = reduce_op(acc, Acc(LIFT(load(A.x, item(line, j + k)))));
    }
  }
  tile[t] = acc;
  barrier();
  for (uint reach = WG_SIZE / 2; reach > 0; reach /= 2) {
    if (t < reach) {
      acc = reduce_op(acc, tile[t + reach]);
      tile[t] = acc;
    }
    barrier();
  }
  if (live && t == 0) {
    store(A.partial, job, acc);
  }
#else
#if MODE == 2
  Acc carry = live ? load(A.partial, job) : neutral();
#else
  Acc carry = neutral();
#endif
  for (uint64_t start = begin; start < end; start += WG_SIZE * ITEMS) {
    uint64_t j = start + t * ITEMS;
    Acc v[ITEMS];
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      v[k] = neutral();
      if (j + k < end) {
        v[k] = Acc(LIFT(load(A.x, item(line, j + k))));
      }
    }
    UNROLL for (uint k = 1; k < ITEMS; ++k) {
      v[k] = reduce_op(v[k - 1], v[k]);
    }
    // The inclusive scan of the invocations' totals.
    Acc total = v[ITEMS - 1];
    tile[t] = total;
    barrier();
    for (uint reach = 1; reach < WG_SIZE; reach *= 2) {
      Acc before = neutral();
      if (t >= reach) {
        before = tile[t - reach];
      }
      barrier();
      if (t >= reach) {
        total = reduce_op(before, total);
        tile[t] = total;
      }
      barrier();
    }
    Acc prefix = carry;
    if (t > 0) {
      prefix = reduce_op(carry, tile[t - 1]);
    }
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      if (j + k < end) {
#if INCLUSIVE
        Acc r = reduce_op(prefix, v[k]);
#else
        Acc r = prefix;
        if (k > 0) {
          r = reduce_op(prefix, v[max(k, 1u) - 1]);
        }
#endif
        store(A.y, item(line, j + k), U_CAST(r));
      }
    }
    carry = reduce_op(carry, tile[WG_SIZE - 1]);
    barrier();
  }
#endif
#endif
}

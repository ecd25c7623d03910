// Prefix scans of lines of dense memory. Line l starts at
//   (l / stride) * stride * extent + l % stride
// and its items are `stride` apart. REVERSE scans from the end. STEP Lines
// takes one workgroup per line. A long line is split into parts of `chunk`
// items: Totals reduces each part into `totals`, which the host scans
// exclusively, and Parts scans each part from there. Threads takes one
// invocation per line. With FOURS lines are whole aligned vectors of four. y
// may alias x.
#define WG_SIZE WG
#define LANES WG_SIZE
#define ITEMS 4

#include "common/lanes.glsl"
#include "common/reduce_ops.glsl"
#include "common/vector.glsl"

// LogSum expands to long code and is therefore not unrolled.
#if OP == LogSum
#define UNROLL [[dont_unroll]]
#else
#define UNROLL [[unroll]]
#endif

#define Lines 0
#define Totals 1
#define Parts 2
#define Threads 3
#include "scan.h"
#define ARGS_BLOCK ScanArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

uint64_t item(uint64_t line, uint64_t j) {
  uint64_t outer = A.stride == 1 ? line : line / A.stride;
  uint64_t i = REVERSE == 1 ? A.extent - 1 - j : j;
  return outer * A.stride * A.extent + (line - outer * A.stride) +
      i * A.stride;
}

Acc operand(uint64_t at) {
  return Acc(LIFT(load(A.x, at)));
}

#if STEP == Totals
TEAM_REDUCE(team_reduce, Acc, reduce_op, scratch)

void run(uint64_t job, uint64_t line, uint64_t begin, uint64_t end) {
  uint t = gl_LocalInvocationIndex;
  Acc acc = neutral();
  for (uint64_t j = begin + t * ITEMS; j < end; j += WG_SIZE * ITEMS) {
    for (uint k = 0; k < ITEMS && j + k < end; ++k) {
      acc = reduce_op(acc, operand(item(line, j + k)));
    }
  }
  acc = team_reduce(acc);
  if (end > begin && t == 0) {
    store(A.totals, job, acc);
  }
}

#elif STEP != Threads
shared Acc sums[WG_SIZE / 4]; // per subgroup; subgroups have at least 4 lanes

// Exclusive prefix over the workgroup, starting from `carry`; updates `carry`
// to include all invocations.
Acc scan_tile(Acc total, inout Acc carry) {
  uint lane = gl_LocalInvocationIndex % gl_SubgroupSize;
  uint own = gl_LocalInvocationIndex / gl_SubgroupSize;
  for (uint reach = 1; reach < gl_SubgroupSize; reach *= 2) {
    Acc before = shuffle_up(total, lane, reach);
    total = lane >= reach ? reduce_op(before, total) : total;
  }
  if (lane == gl_SubgroupSize - 1) {
    sums[own] = total;
  }
  barrier();
  Acc prefix = carry;
  for (uint s = 0; s < WG_SIZE / gl_SubgroupSize; ++s) {
    prefix = s == own ? carry : prefix;
    carry = reduce_op(carry, sums[s]);
  }
  Acc before = shuffle_up(total, lane, 1);
  barrier();
  return lane > 0 ? reduce_op(prefix, before) : prefix;
}

// Item k of this invocation's scan: v is its local inclusive scan, `prefix` the
// total before it.
Acc scanned(Acc prefix, Acc v[ITEMS], uint k) {
#if INCLUSIVE
  return reduce_op(prefix, v[k]);
#else
  Acc r = prefix;
  if (k > 0) {
    r = reduce_op(prefix, v[max(k, 1u) - 1]);
  }
  return r;
#endif
}

#if FOURS
// Index of the vector with positions j to j + 3.
uint64_t four_at(uint64_t line, uint64_t j) {
  return item(line, REVERSE == 1 ? j + 3 : j) / 4;
}
#endif

void run(uint64_t job, uint64_t line, uint64_t begin, uint64_t end) {
  uint t = gl_LocalInvocationIndex;
  Acc carry = neutral();
#if STEP == Parts
  if (end > begin) {
    carry = load(A.totals, job);
  }
#endif
  for (uint64_t start = begin; start < end; start += WG_SIZE * ITEMS) {
    uint64_t j = start + t * ITEMS;
    Acc v[ITEMS];
#if FOURS
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      v[k] = neutral();
    }
    if (j < end) {
      T four[4] = LOAD_FOUR(T_PTR, A.x, four_at(line, j));
      UNROLL for (uint k = 0; k < ITEMS; ++k) {
        v[k] = Acc(LIFT(four[REVERSE == 1 ? 3 - k : k]));
      }
    }
#else
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      v[k] = neutral();
      if (j + k < end) {
        v[k] = operand(item(line, j + k));
      }
    }
#endif
    UNROLL for (uint k = 1; k < ITEMS; ++k) {
      v[k] = reduce_op(v[k - 1], v[k]);
    }
    Acc prefix = scan_tile(v[ITEMS - 1], carry);
#if FOURS
    U four[4];
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      four[REVERSE == 1 ? 3 - k : k] = U_CAST(scanned(prefix, v, k));
    }
    if (j < end) {
      STORE_FOUR(U_PTR, A.y, four_at(line, j), four);
    }
#else
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      if (j + k < end) {
        store(A.y, item(line, j + k), U_CAST(scanned(prefix, v, k)));
      }
    }
#endif
  }
}
#endif

#if STEP == Threads
void main() {
  uint64_t line = thread_index64();
  if (line < A.lines) {
    uint64_t at = item(line, 0);
    int64_t step = REVERSE == 1 ? -int64_t(A.stride) : int64_t(A.stride);
    Acc carry = neutral();
    for (uint64_t j = 0; j < A.extent; ++j) {
      Acc next = j == 0 ? operand(at) : reduce_op(carry, operand(at));
      store(A.y, at, U_CAST(INCLUSIVE == 1 ? next : carry));
      carry = next;
      at += uint64_t(step);
    }
  }
}
#else
// A workgroup scans one part of a line; beyond the last line the part is empty.
void main() {
  uint64_t job = uint64_t(group_index());
  uint64_t line = job / A.parts;
  uint64_t begin = (job - line * A.parts) * A.chunk;
  uint64_t end = line < A.lines ? min(begin + A.chunk, A.extent) : begin;
  run(job, line, begin, end);
}
#endif

// Prefix scans of lines of dense memory. Line l starts at
//   (l / stride) * stride * extent + l % stride
// and its items are `stride` apart. REVERSE scans from the end. STEP Lines
// takes a team of LANES invocations per line; fewer than 128, but not one, take
// the line at once. A long line is split into parts of `chunk` items: Totals
// reduces each part into `totals`, which the host scans exclusively, and Parts
// scans each part from there. With FOURS lines are whole aligned vectors of
// four. y may alias x.
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
#include "scan.h"
#define ARGS_BLOCK ScanArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

uint64_t line_start(uint64_t line) {
  uint64_t outer = A.stride == 1 ? line : line / A.stride;
  return outer * A.stride * A.extent + (line - outer * A.stride);
}

// Index of item j of a scan that starts at `first`.
uint64_t item(uint64_t first, uint64_t j) {
  return first + (REVERSE == 1 ? A.extent - 1 - j : j) * A.stride;
}

Acc operand(uint64_t at) {
  return Acc(LIFT(load(A.x, at)));
}

#if STEP == Totals
TEAM_REDUCE(team_reduce, Acc, reduce_op, scratch)

void run(uint64_t job, uint64_t first, uint64_t begin, uint64_t end) {
  Acc acc = neutral();
  for (uint64_t j = begin + LANE * ITEMS; j < end; j += LANES * ITEMS) {
    for (uint k = 0; k < ITEMS && j + k < end; ++k) {
      acc = reduce_op(acc, operand(item(first, j + k)));
    }
  }
  acc = team_reduce(acc);
  if (end > begin && LANE == 0) {
    store(A.totals, job, acc);
  }
}

#elif LANES > 1
shared Acc sums[WG_SIZE / 4]; // per subgroup; subgroups have at least 4 lanes

// Exclusive prefix over the team, starting from `carry`; updates `carry` to
// include all invocations if the line may go on.
Acc scan_tile(Acc total, inout Acc carry) {
  uint width = min(uint(LANES), gl_SubgroupSize);
  uint lane = gl_LocalInvocationIndex % gl_SubgroupSize;
  uint place = LANE % width;
  for (uint reach = 1; reach < width; reach *= 2) {
    Acc before = shuffle_up(total, lane, reach);
    total = place >= reach ? reduce_op(before, total) : total;
  }
  Acc before = shuffle_up(total, lane, 1);
  Acc prefix = carry;
  if (LANES >= 128 || LANES > width) {
    uint own = gl_LocalInvocationIndex / width;
    if (place == width - 1) {
      sums[own] = total;
    }
    barrier();
    for (uint s = TEAM * LANES / width; s < (TEAM + 1) * LANES / width; ++s) {
      prefix = s == own ? carry : prefix;
      carry = reduce_op(carry, sums[s]);
    }
    barrier();
  }
  return place > 0 ? reduce_op(prefix, before) : prefix;
}

// Item k of this invocation's scan: v is its local inclusive scan, `prefix` the
// total before it.
Acc scanned(Acc prefix, Acc v[ITEMS], uint k) {
  return INCLUSIVE == 1 ? reduce_op(prefix, v[k])
      : k == 0          ? prefix
                        : reduce_op(prefix, v[max(k, 1u) - 1]);
}

void run(uint64_t job, uint64_t first, uint64_t begin, uint64_t end) {
  Acc carry = neutral();
#if STEP == Parts
  if (begin > 0 && end > begin) { // totals of int8 have int32's neutral item
    carry = load(A.totals, job);
  }
#endif
  // All teams pass the same barriers.
  for (uint64_t start = 0; start < A.chunk; start += LANES * ITEMS) {
    uint64_t j = begin + start + LANE * ITEMS;
    Acc v[ITEMS];
#if FOURS
    uint64_t vector = item(first, REVERSE == 1 ? j + 3 : j) / 4;
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      v[k] = neutral();
    }
    if (j < end) {
      T four[4] = LOAD_FOUR(T_PTR, A.x, vector);
      UNROLL for (uint k = 0; k < ITEMS; ++k) {
        v[k] = Acc(LIFT(four[REVERSE == 1 ? 3 - k : k]));
      }
    }
#else
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      v[k] = neutral();
      if (j + k < end) {
        v[k] = operand(item(first, j + k));
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
      STORE_FOUR(U_PTR, A.y, vector, four);
    }
#else
    UNROLL for (uint k = 0; k < ITEMS; ++k) {
      if (j + k < end) {
        store(A.y, item(first, j + k), U_CAST(scanned(prefix, v, k)));
      }
    }
#endif
  }
}
#endif

#if LANES == 1
void main() {
  uint64_t line = thread_index64();
  if (line < A.lines) {
    uint64_t at = item(line_start(line), 0);
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
// A team scans one part of a line; beyond the last line the part is empty.
void main() {
  uint64_t job = uint64_t(group_index()) * TEAMS + TEAM;
  uint64_t line = STEP == Lines ? job : job / A.parts;
  uint64_t begin = (job - line * A.parts) * A.chunk;
  uint64_t end = line < A.lines ? min(begin + A.chunk, A.extent) : begin;
  run(job, line_start(line), begin, end);
}
#endif

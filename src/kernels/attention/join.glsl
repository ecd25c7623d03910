// Query rows of a workgroup, and the join of partial results of workgroups that
// share keys. Include after common/args.glsl and
// attention/softmax.glsl.
#pragma once

// ROWS query rows of one KV head (heads of a GQA group times queries), starting
// at row0.
struct Rows {
  uint batch, kv_head, row0;
};

// Returns rest % n and divides rest by n. Skips the division when rest < n, the
// usual case, because division by a variable is slow.
uint cut(inout uint rest, uint n) {
  uint x = rest;
  if (rest < n) {
    rest = 0;
  } else {
    x = rest % n;
    rest /= n;
  }
  return x;
}

Rows rows_of(uint group) {
  Rows w;
  w.row0 = A.row_groups == 1 ? 0 : cut(group, A.row_groups) * ROWS;
  w.kv_head = cut(group, A.kv_heads);
  w.batch = group;
  return w;
}

struct Row {
  uint query, head;
};

Row row_of(Rows w, uint row) {
  Row x;
  x.head = cut(row, A.gqa) + w.kv_head * A.gqa;
  x.query = row;
  return x;
}

uint64_t out_row(Rows w, Row row) {
#if HEADS_FIRST
  return (uint64_t(w.batch) * HEADS + row.head) * A.queries + row.query;
#else
  return uint64_t(w.batch * A.queries + row.query) * HEADS + row.head;
#endif
}

// Result for a row without keys: zero. HEADS_FIRST replaces a decomposed
// softmax, whose result is NaN.
#if HEADS_FIRST
#define EMPTY(total) false
#else
#define EMPTY(total) ((total) == 0.0)
#endif

#if PARTS

// Layout [group][row][split][DV + 2]: unnormalized values, maximum, sum.
// Coherent, because one workgroup reads what others wrote.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent
    buffer PartItems {
  float v[];
};
#define PART (DV + 2)

PartItems parts_of(uint group, uint row) {
  return PartItems(
      uint64_t(A.parts) +
      uint64_t(group * ROWS + row) * uint64_t(A.splits * PART * 4));
}

// Parts that a lane loads at once.
#define JOINED_AT_ONCE 16

// Sum of one item over a row's splits. Each lane loads maximum and sum of a
// split; `total` is added in the order of splits, so that all kernels and
// subgroup sizes give the same bits.
float join_row(PartItems from, uint item, out float row_max, out float total) {
  uint lane = gl_SubgroupInvocationID;
  float part[JOINED_AT_ONCE];
  [[unroll]] for (uint i = 0; i < JOINED_AT_ONCE; ++i) {
    part[i] = from.v[min(i, A.splits - 1) * PART + item];
  }
  uint at = min(lane, A.splits - 1) * PART + DV;
  float m = from.v[at];
  float sum = from.v[at + 1];
  m = lane < A.splits ? m : ABSENT;
  row_max = m;
  for (uint s = lane + gl_SubgroupSize; s < A.splits; s += gl_SubgroupSize) {
    row_max = max(row_max, from.v[s * PART + DV]);
  }
  row_max = subgroupMax(row_max);

  total = 0.0;
  float x = 0.0;
  for (uint s0 = 0; s0 < A.splits; s0 += gl_SubgroupSize) {
    if (s0 > 0) {
      at = min(s0 + lane, A.splits - 1) * PART + DV;
      m = s0 + lane < A.splits ? from.v[at] : ABSENT;
      sum = from.v[at + 1];
    }
    float weight = exp2_diff(m, row_max);
    uint end = min(gl_SubgroupSize, A.splits - s0);
    for (uint s = 0; s < end; s += JOINED_AT_ONCE) {
      [[unroll]] for (uint i = 0; i < JOINED_AT_ONCE; ++i) {
        uint of = min(s + i, gl_SubgroupSize - 1);
        float w = subgroupShuffle(weight, of);
        float l = subgroupShuffle(sum, of);
        x = s + i < end ? fma(part[i], w, x) : x;
        total = s + i < end ? fma(l, w, total) : total;
      }
      uint next = s + JOINED_AT_ONCE < end ? s0 + s + JOINED_AT_ONCE
                                           : s0 + gl_SubgroupSize;
      if (next < A.splits) {
        [[unroll]] for (uint i = 0; i < JOINED_AT_ONCE; ++i) {
          part[i] = from.v[min(next + i, A.splits - 1) * PART + item];
        }
      }
    }
  }
  return x;
}

// Joins all rows of a group; subgroups take rows and slices in turn.
void join(uint group, Rows w) {
  uint slices = (DV + gl_SubgroupSize - 1) / gl_SubgroupSize;
  uint end = min(ROWS, A.gqa * A.queries - w.row0) * slices;
  for (uint i = gl_SubgroupID; i < end; i += gl_NumSubgroups) {
    uint r = i / slices;
    uint d = i % slices * gl_SubgroupSize + gl_SubgroupInvocationID;
    float row_max, total;
    float x =
        join_row(parts_of(group, r), min(d, DV - 1), row_max, total);
    Row row = row_of(w, w.row0 + r);
    x *= add_sink(row.head, row_max, total);
    if (d == 0) {
      store_lse(w.batch, row.head, row.query, row_max, total);
    }
    if (d < DV) {
      store(
          A.y,
          out_row(w, row) * DV + d,
          EMPTY(total) ? 0.0 : x / total);
    }
  }
}

#endif

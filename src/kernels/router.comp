// A workgroup routes one row (router.h). Its first team computes the softmax;
// each invocation then counts the items that sort after its own. That count
// gives the rank, which is unique because ties are ordered by position.
#include "common/softmax_row.glsl"
#include "router.h"
#define ARGS_BLOCK RouterArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

#define CAPACITY (4 * LANES * CHUNKS)
#define PASSED -1.0 // less than any softmax value
#define BEYOND 2.0 // replaces NaN: sorts after any softmax value

shared vec4 gate_at[CAPACITY / 4]; // rounded, in row order
shared float chosen[CAPACITY];

// The sort key of a gate; the order is that of sort.comp.
float key_of(float gate) {
  return is_nan(gate) ? BEYOND : gate;
}

uint sorting_after(uint i, float key) {
  uint count = 0;
  for (uint j = 0; j < CAPACITY / 4; ++j) {
    vec4 other = gate_at[j];
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      float k = key_of(other[c]);
      bool after = k > key || (k == key && 4 * j + c > i);
      count += after ? 1u : 0u;
    }
  }
  return count;
}

// Computes the row's gates into `gate_at`.
void find_gates(uint64_t at, bool live) {
  T_PTR x = MOVED(T, A.x, at);
  T_PTR y = MOVED(T, A.gates, at);
  vec4 v[CHUNKS];
  EACH4 {
    v[c] = FETCH4(x, i, A.n, -INF_F);
  }
  float scale = softmax_factor(v, A.n);
  if (TEAM == 0) {
    EACH4 {
      vec4 gate = v[c] * scale;
      if (live) {
        STORE4(y, i, A.n, gate);
      }
      gate_at[i / 4] = IN_ROW4(i, A.n, ROUND4_TO_T(gate), PASSED);
    }
  }
  barrier();
}

void main() {
  uint row = min(group_index(), A.rows - 1u);
  bool live = group_index() < A.rows;
  uint64_t at = uint64_t(row) * A.n;
  find_gates(at, live);

  for (uint i = gl_LocalInvocationIndex; i < A.n; i += WG_SIZE) {
    float gate = gate_at[i / 4][i % 4];
    uint place = A.n - 1u - sorting_after(i, key_of(gate));
    if (live) {
      store(A.order, at + place, i);
    }
    if (place >= A.first && place - A.first < A.k) {
      chosen[place - A.first] = gate;
    }
  }
  barrier();
  if (!live || uint64_t(A.chosen) == 0ul) {
    return;
  }
  float total = 0.0;
  for (uint i = 0; i < A.k; ++i) { // in the order of reduce.comp
    total = total + chosen[i];
  }
  if (uint64_t(A.total) != 0ul && gl_LocalInvocationIndex == 0) {
    store(A.total, row, total);
  }
  for (uint i = gl_LocalInvocationIndex; i < A.k; i += WG_SIZE) {
    uint64_t to = uint64_t(row) * A.k + i;
    // A.weights may alias A.chosen.
    store(A.chosen, to, chosen[i]);
    if (uint64_t(A.weights) != 0ul) {
      store(A.weights, to, math_divide(chosen[i], ROUND_TO_T(total)));
    }
  }
}

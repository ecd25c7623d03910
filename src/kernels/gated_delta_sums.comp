// Gradients of the gated delta rule that are sums over rows of the state. A
// workgroup takes a step, batch and key head, an invocation an item.
//   dq += dy s';  dk += ds' delta - dv a;  dg += da s;  dbeta += (v - p) ddelta
#include "common/types.glsl"

#include "gated_delta_vjp.h"
#define ARGS_BLOCK GatedDeltaSumsArgs
#include "common/args.glsl"

layout(local_size_x = DK) in;

shared float items[DK];

// Workgroup sum in a fixed order, returned to all invocations.
float sum_of_items(uint j, float x) {
  items[j] = x;
  barrier();
  for (uint n = DK; n > 1; n = (n + 1) / 2) {
    uint next = (n + 1) / 2;
    if (j + next < n) {
      items[j] += items[j + next];
    }
    barrier();
  }
  float sum = items[0];
  barrier();
  return sum;
}

void main() {
  uint j = gl_LocalInvocationIndex;
  uint key_heads = A.heads / A.repeat;
  uint group = group_index();
  bool live = group < A.count * A.batches * key_heads;
  group = live ? group : 0;
  uint hk = group % key_heads;
  uint64_t b = uint64_t(group / key_heads % A.batches);
  uint i = group / key_heads / A.batches;
  uint64_t t = uint64_t(A.first + i);
  uint64_t at_key = ((b * A.steps + t) * key_heads + hk) * DK + j;
  float k = load(A.k, at_key);
  float dq = 0.0, dk = 0.0;
  for (uint r = 0; r < A.repeat; ++r) {
    uint h = hk * A.repeat + r;
    uint64_t at = (b * A.steps + t) * A.heads + h;
    float beta = load(A.beta, at);
#if GATES > 1
    float gate = load(A.g, at * DK + j);
#else
    float gate = load(A.g, at);
#endif
    float dg = 0.0, dbeta = 0.0;
    uint64_t row = uint64_t(i) * A.rows + (b * A.heads + h) * A.dv_items;
    for (uint d = 0; d < A.dv_items; ++d, ++row) {
      float s = load(A.states, row * DK + j);
      float ds = load(A.grads, row * DK + j);
      float error = load(A.errors, row * 2);
      float ddelta = load(A.errors, row * 2 + 1);
      float dy = load(A.cotan, at * A.dv_items + d);
      float a = s * gate, delta = error * beta, dv = ddelta * beta;
      dq = fma(dy, fma(delta, k, a), dq);
      dk += ds * delta - dv * a;
      dg = fma(fma(-dv, k, ds), s, dg);
      dbeta = fma(error, ddelta, dbeta);
    }
#if GATES > 1
    if (live) {
      store(A.dg, at * DK + j, dg);
    }
#else
    dg = sum_of_items(j, dg);
    if (live && j == 0) {
      store(A.dg, at, dg);
    }
#endif
    if (live && j == 0) {
      store(A.dbeta, at, dbeta);
    }
  }
  if (live) {
    store(A.dq, at_key, dq);
    store(A.dk, at_key, dk);
  }
}

// Online softmax of a row in base 2: its maximum, and the sum of weights
// 2^(score - maximum). Include after common/args.glsl.
#pragma once

#ifndef HEADS
#define HEADS A.heads
#endif
#define LOG2E 1.4426950408889634
#define LN2 0.6931471805599453
// The score of a masked key is the lowest float, as in MLX's decomposition: a
// row without visible keys becomes the mean of the values.
#define HIDDEN (-3.402823466e38)
#define ABSENT uintBitsToFloat(0xff800000u) // score of a key out of range

// exp2(a - b) for a <= b; 0 if both are ABSENT.
float exp2_diff(float a, float b) {
  return a == ABSENT ? 0.0 : exp2(a - b);
}

// Adds the head's sink and returns the factor that rescales earlier sums.
float add_sink(uint head, inout float row_max, inout float row_sum) {
#if SINKS
  float sink = load(A.sinks, head) * LOG2E;
  float m = max(row_max, sink);
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + exp2(sink - m);
  row_max = m;
  return keep;
#else
  return 1.0;
#endif
}

// Stores the logarithm of the row's denominator for the backward pass.
void store_lse(
    uint batch,
    uint head,
    uint query,
    float row_max,
    float row_sum) {
#if LSE
  store(
      A.lse,
      (uint64_t(batch) * HEADS + head) * A.queries + query,
      row_sum == 0.0 ? ABSENT : LN2 * (row_max + log2(row_sum)));
#endif
}

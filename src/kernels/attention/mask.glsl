// Masking of scores. MASK: 0 none, 1 bool, 2 additive. Include after
// common/args.glsl.
#pragma once

#include "attention/softmax.glsl"

// The score of a masked key.
#if MASK == 1 && defined(BITS) && BITS
float hidden_score() {
  float score = load(A.hidden, 0);
  return max(score * LOG2E, isinf(score) ? score : HIDDEN);
}
#else
#define hidden_score() HIDDEN
#endif

// The score after the mask.
float masked(float s, uint batch, uint head, uint query, uint key) {
#if MASK
  int64_t at = mask_offset(A.mask_strides, batch, head, query, key);
#if MASK == 1
  return load(A.mask, at) ? s : hidden_score();
#else
  // A finite sum stays finite in base 2, so that rows with huge negative masks
  // keep their relative order or tie.
  float mask = load(A.mask, at);
  float sum = fma(mask, LOG2E, s);
  return isinf(sum) && !isinf(mask) && mask < 0.0 ? HIDDEN : sum;
#endif
#else
  return s;
#endif
}

// Causal mask, aligned so that the last query sees the last key.
bool is_later(uint key, uint query) {
#if CAUSAL
  return key + A.queries > A.keys + query;
#else
  return false;
#endif
}

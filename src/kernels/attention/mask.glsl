// What hides keys from queries. MASK: 0 none, 1 bool, 2 additive. After
// common/args.glsl.
#ifndef ATTENTION_MASK_GLSL
#define ATTENTION_MASK_GLSL

#include "attention/softmax.glsl"

// What a hidden key scores.
#if MASK == 1 && defined(BITS) && BITS
float hidden_score() {
  float score = load(A.hidden, 0);
  return max(score * LOG2E, isinf(score) ? score : HIDDEN);
}
#else
#define hidden_score() HIDDEN
#endif

// A score with the mask's item.
float masked(float s, uint batch, uint head, uint query, uint key) {
#if MASK
  int64_t at = mask_offset(A.mask_strides, batch, head, query, key);
#if MASK == 1
  return load(A.mask, at) ? s : hidden_score();
#else
  // A finite sum stays finite in base 2, so that rows of huge negative masks
  // keep their relative order or tie.
  float mask = load(A.mask, at);
  float sum = fma(mask, LOG2E, s);
  return isinf(sum) && !isinf(mask) && mask < 0.0 ? HIDDEN : sum;
#endif
#else
  return s;
#endif
}

// The key comes after the query: the last ones of both are level.
bool is_later(uint key, uint query) {
#if CAUSAL
  return key + A.queries > A.keys + query;
#else
  return false;
#endif
}

#endif

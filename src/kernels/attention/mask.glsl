// Scores in the base-2 logarithm domain, and the masks on them.
//
// MASK: 0 none, 1 bool, 2 additive. A masked key scores HIDDEN, the lowest
// float, as in MLX's own decomposition: a row without any visible key becomes
// the mean of the values. Keys that do not exist score ABSENT.
#ifndef ATTENTION_MASK_GLSL
#define ATTENTION_MASK_GLSL

#define LOG2E 1.4426950408889634
#define HIDDEN (-3.402823466e38)
#define ABSENT uintBitsToFloat(0xff800000u)

#if MASK == 1
#define MASK_POINTER Ptr_bool mask;
#define MASK_ITEM(s, at) (load(A.mask, at) ? (s) : HIDDEN)
#elif MASK == 2
#define MASK_POINTER T_PTR mask;
#define MASK_ITEM(s, at) add_mask(s, load(A.mask, at))
// A finite sum stays finite in base 2, so that rows of huge negative masks
// keep their relative order or tie.
float add_mask(float s, float mask) {
  float sum = fma(mask, LOG2E, s);
  return isinf(sum) && !isinf(mask) && mask < 0.0 ? HIDDEN : sum;
}
#else
#define MASK_POINTER
#endif

#if SINKS
#define SINKS_POINTER T_PTR sinks;
#else
#define SINKS_POINTER
#endif

// The logarithm of the row's softmax denominator, kept for the backward pass.
#if LSE
#define LSE_POINTER Ptr_f32 lse;
#define LN2 0.6931471805599453
float natural_lse(float row_max, float row_sum) {
  return row_sum == 0.0 ? ABSENT : LN2 * (row_max + log2(row_sum));
}
#else
#define LSE_POINTER
#endif

// exp2(a - b) where a <= b; 0 when both are ABSENT.
float exp2_diff(float a, float b) {
  return a == ABSENT ? 0.0 : exp2(a - b);
}

#endif

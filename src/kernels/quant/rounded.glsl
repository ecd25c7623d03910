// Epilogue operations of a product, rounded as by separate kernels.
#pragma once

#ifdef T_IS_bf16
#define ROUNDED round_bf16
#elif defined(T_IS_f16)
#define ROUNDED round_f16
#else
#define ROUNDED
#endif

#if GATE != GATE_NONE
#include "common/unary_ops.glsl"

// gate * sigmoid(gate) * up; the caller rounds the last product.
float silu_gate(float gate, float up) {
  float turned = ROUNDED(Sigmoid(gate));
  precise float silu = gate * turned;
  silu = ROUNDED(silu);
  precise float gated = silu * up;
  return gated;
}
#endif

// Common part of prefill_coopmat.comp and prefill_narrow.comp: items of q, k and
// v as those of matrices, weights, and pitches in shared memory.
#pragma once

#define BQ 64
#define TAKES_EXACT true
#include "attention/prefill.glsl"
#include "attention/row_lanes.glsl"
#include "attention/staging.glsl"

layout(local_size_x = WG) in;

#if HALVES
#define TO_ITEMS(q, top) q = half_items(q, top);
#define SCORE_SCALE score_scale
#define PACK_WEIGHTS(a, b) HALF_PAIR(a * WEIGHT_UNIT, b * WEIGHT_UNIT)
#else
#define TO_ITEMS(q, top)
#define SCORE_SCALE A.scale
#define PACK_WEIGHTS PACK2_NUMBERS
#endif

#define PITCH_K (D / 8 + 1)
#define PITCH_V (BK / 8 + 1)
#define S_PITCH (BK + 4) // floats per row of scores
#define P_PITCH (BK / 2 + 4) // uints per row of weights

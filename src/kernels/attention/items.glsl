// Items of q, k and v as those of matrices, and weights.
#pragma once

#if HALVES
#define TO_ITEMS(q, top) q = half_items(q, top);
#define SCORE_SCALE score_scale
#define PACK_WEIGHTS(a, b) HALF_PAIR(a * WEIGHT_UNIT, b * WEIGHT_UNIT)
#else
#define TO_ITEMS(q, top)
#define SCORE_SCALE A.scale
#define PACK_WEIGHTS PACK2_NUMBERS
#endif

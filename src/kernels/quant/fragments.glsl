// Cooperative matrices of qmm_fragments.comp and the codes loaded into them.
#pragma once

#include "quant/code_items.glsl"

#define SUBGROUPS (WN * WK)
#include "common/matrix_elements.glsl"

#if EMULATED
// Every part runs the same number of iterations, because the emulation contains
// barriers.
#define EACH_SPAN(span) ((span) - part < spans)
#else
#define EACH_SPAN(span) ((span) < spans)
#endif

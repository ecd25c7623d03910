// The matrices of qmm_fragments.comp, and the codes that go into them.
#ifndef QUANT_FRAGMENTS_GLSL
#define QUANT_FRAGMENTS_GLSL

#include "quant/code_items.glsl"

#define SUBGROUPS (WN * WK)
#include "common/matrix_elements.glsl"

#if EMULATED
// All parts run as often, for the barriers.
#define EACH_SPAN(span) ((span) - part < spans)
#else
#define EACH_SPAN(span) ((span) < spans)
#endif

#endif

// Products of the same few dozen rows of x with several matrices (fused.h),
// summed in the same order as by qmm_fragments.comp.
#define FUSED
#include "quant/qmm_fragments.comp"

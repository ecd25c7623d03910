// Products of the same few dozen rows of x with several matrices (fused.h), each
// as qmm_fragments.comp makes it, in the order of its sums.
#define FUSED
#include "quant/qmm_fragments.comp"

// Products of the same rows of x with several matrices (fused.h), summed in the
// same order as by qmv.comp.
#define FUSED
#include "quant/qmv.comp"

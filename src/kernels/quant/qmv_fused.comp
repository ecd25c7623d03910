// Products of the same rows of x with several matrices (fused.h), each as
// qmv.comp makes it, in the order of its sums.
#define FUSED
#include "quant/qmv.comp"

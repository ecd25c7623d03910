// Products of rows with experts, and what follows them (experts.h), each as
// qmv.comp makes it, in the order of its sums.
#define FUSED
#define BY_EXPERTS
#define NORM 0
#define SETS 1
#include "quant/qmv.comp"

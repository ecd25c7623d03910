// Products of rows with experts and their epilogue (experts.h), summed in the
// same order as by qmv.comp.
#define FUSED
#define BY_EXPERTS
#define NORM 0
#define SETS 1
#include "quant/qmv.comp"

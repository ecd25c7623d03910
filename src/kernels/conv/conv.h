#include "common/interface.h"

// MODE selects the algorithm.
#define CONV_DIRECT 0
#define CONV_DEPTHWISE 1
#define CONV_UNFOLD 2

BEGIN_INTERFACE

struct ConvArgs { // axes are d, h, w
  PTR(T_PTR, x)
#if MODE != CONV_UNFOLD
  PTR(T_PTR, w)
#endif
  PTR(T_PTR, y)
  uint64_t items, first;
  int64_t x_n, x_c, w_o, w_c;
  int64_t x_s[3], w_s[3];
  int x_size[3], w_size[3], y_size[3];
  int stride[3], pad[3], w_dilation[3], x_dilation[3];
  uint outputs, group_outputs, channels, flip;
};

#ifdef __cplusplus
struct ConvVariant {
  Type T;
  uint MODE;
  uint AXES; // number of spatial axes, the last of d, h, w
  bool VEC; // channels are read four at a time
  uint RUN; // items of y per invocation; 1 except in CONV_DEPTHWISE
  bool LARGE;
  KERNEL_VARIANT("conv/conv", ConvArgs, T, MODE, AXES, VEC, RUN, LARGE)
};
#endif

END_INTERFACE

// Interface of depthwise.comp: convolution of each channel by itself along two
// axes.
#include "common/interface.h"

BEGIN_INTERFACE

struct ConvDepthwiseArgs { // axes are h, w
  PTR(T_PTR, x)
  PTR(T_PTR, w) // row-contiguous
  PTR(T_PTR, y)
  int64_t x_n, x_s[2];
  int x_size[2], w_size[2], y_size[2];
  int stride[2], pad[2], w_dilation[2];
  uint channels, taps;
  uint runs; // runs of RUN items of y along w
  uint flip;
};

#ifdef __cplusplus
// Channels are contiguous and accessed four at a time.
struct ConvDepthwiseVariant {
  Type T;
  uint TAPS; // capacity for taps in shared memory
  uint KW; // taps along w, if stride and dilation are 1; 0: any
  bool LARGE; // offsets are 64-bit
  // A workgroup computes GROUP_RUNS runs of RUN items for BLOCK channels.
  static constexpr uint RUN = 4, BLOCK = 64, GROUP_RUNS = 8;
  KERNEL_VARIANT(
      "conv/depthwise", ConvDepthwiseArgs, T, TAPS, KW, RUN, BLOCK, GROUP_RUNS,
      LARGE)
};
#endif

END_INTERFACE

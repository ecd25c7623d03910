// Depthwise convolution (depthwise.h). An invocation computes RUN adjacent
// items along w for four channels; a workgroup keeps the taps of its BLOCK
// channels in shared memory.
#include "common/index.glsl"
#include "common/types.glsl"
#include "common/vec4.glsl"

#include "conv/depthwise.h"
#define ARGS_BLOCK ConvDepthwiseArgs
#include "common/args.glsl"

#define LANES (BLOCK / 4)
#define THREADS (LANES * GROUP_RUNS)
layout(local_size_x = THREADS) in;

shared vec4 taps[TAPS * LANES];

// Adds the products of a row of taps from `tap` on. The first tap reads column
// `first` of a row of x, which may be out of range.
#if KW
void add_row(inout vec4 acc[RUN], Index row, int first, uint tap, uint lane) {
  vec4 w[KW];
  [[unroll]] for (int k = 0; k < KW; ++k) {
    w[k] = taps[(tap + uint(k)) * LANES + lane];
  }
  [[unroll]] for (int i = 0; i < RUN + KW - 1; ++i) {
    vec4 x = vec4(0.0);
    if (first + i >= 0 && first + i < A.x_size[1]) {
      x = load_vec4(A.x, row + Index(first + i) * Index(A.x_s[1]));
    }
    [[unroll]] for (int k = 0; k < KW; ++k) {
      if (i >= k && i - k < RUN) {
        acc[max(i - k, 0)] = fma(x, w[k], acc[max(i - k, 0)]);
      }
    }
  }
}
#else
void add_row(inout vec4 acc[RUN], Index row, int first, uint tap, uint lane) {
  for (int k = 0; k < A.w_size[1]; ++k) {
    vec4 w = taps[(tap + uint(k)) * LANES + lane];
    [[unroll]] for (int r = 0; r < RUN; ++r) {
      int at = first + r * A.stride[1] + k * A.w_dilation[1];
      if (at >= 0 && at < A.x_size[1]) {
        vec4 x = load_vec4(A.x, row + Index(at) * Index(A.x_s[1]));
        acc[r] = fma(x, w, acc[r]);
      }
    }
  }
}
#endif

void convolve(uint c, uint lane, uint run) {
  uint rest = run;
  int y_w = int(take_axis(rest, uint(A.y_size[1] + RUN - 1) / RUN)) * RUN;
  int y_h = int(take_axis(rest, uint(A.y_size[0])));
  Index base = Index(rest) * Index(A.x_n) + Index(c);
  int first_h = y_h * A.stride[0] - A.pad[0];
  int first_w = y_w * A.stride[1] - A.pad[1];

  vec4 acc[RUN];
  [[unroll]] for (int r = 0; r < RUN; ++r) {
    acc[r] = vec4(0.0);
  }
  for (int k = 0; k < A.w_size[0]; ++k) {
    int h = first_h + k * A.w_dilation[0];
    if (h >= 0 && h < A.x_size[0]) {
      Index row = base + Index(h) * Index(A.x_s[0]);
      add_row(acc, row, first_w, uint(k * A.w_size[1]), lane);
    }
  }

  uint64_t at = uint64_t(rest) * uint(A.y_size[0]) + uint(y_h);
  at = at * uint(A.y_size[1]) + uint(y_w);
  [[unroll]] for (int r = 0; r < RUN; ++r) {
    if (y_w + r < A.y_size[1]) {
      store_vec4(A.y, (at + uint(r)) * A.channels + c, acc[r]);
    }
  }
}

void main() {
  uint t = gl_LocalInvocationIndex;
  uint blocks = (A.channels + BLOCK - 1) / BLOCK;
  uint group = group_index();
  uint group_runs = group / blocks;
  uint c0 = (group - group_runs * blocks) * BLOCK;

  for (uint e = t; e < A.taps * BLOCK; e += THREADS) {
    uint c = e / A.taps;
    uint tap = e - c * A.taps;
    float w = 0.0;
    if (c0 + c < A.channels) {
      w = load(A.w, uint64_t(c0) * A.taps + e);
    }
    tap = A.flip != 0u ? A.taps - 1 - tap : tap;
    taps[tap * LANES + c / 4][c % 4] = w;
  }
  barrier();

  uint lane = t % LANES;
  uint run = group_runs * GROUP_RUNS + t / LANES;
  uint c = c0 + lane * 4;
  if (c < A.channels && run < A.runs) {
    convolve(c, lane, run);
  }
}

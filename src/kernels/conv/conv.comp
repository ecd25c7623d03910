// Convolution of x (n, d, h, w, channels) with w (outputs, d, h, w, channels of
// a group); the last AXES of d, h, w exist. flip reverses the taps of w.
// CONV_DIRECT: one invocation per item of y, fully general. CONV_DEPTHWISE: one
// channel per group along one axis, one invocation per RUN items of a channel.
// CONV_UNFOLD: im2col; writes the inputs of each row of y, tap by tap, as rows
// of a matrix, from row `first` on.
#include "common/index.glsl"
#include "common/vec4.glsl"
#include "conv/conv.h"
#define ARGS_BLOCK ConvArgs
#include "common/args.glsl"

layout(local_size_x = 128) in;

#define FIRST_AXIS (3 - AXES)

// Index of x that tap k of y's index reads along an axis, or -1.
int tap(int axis, int y, int k) {
  int at = y * A.stride[axis] - A.pad[axis] + k * A.w_dilation[axis];
  if (at >= 0 && A.x_dilation[axis] != 1) {
    int undilated = at / A.x_dilation[axis];
    at = undilated * A.x_dilation[axis] == at ? undilated : -1;
  }
  return at < A.x_size[axis] ? at : -1;
}

uint take(inout UIndex rest, uint extent) {
  return uint(take_axis(rest, UIndex(extent)));
}

#define WEIGHT_TAP(axis, k)                                                   \
  (A.flip != 0u ? A.w_size[axis] - 1 - (k) : (k))

#if MODE == CONV_DIRECT
void convolve(UIndex i) {
  UIndex rest = i;
  uint o = take(rest, A.outputs);
  int y[3] = int[3](0, 0, 0);
  [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
    y[d] = int(take(rest, uint(A.y_size[d])));
  }
  uint group = o / A.group_outputs;
  Index x_base = Index(rest) * Index(A.x_n) +
      Index(group * A.channels) * Index(A.x_c);
  Index w_base = Index(o) * Index(A.w_o);

#if VEC
  vec4 acc = vec4(0.0);
#else
  float acc = 0.0;
#endif
#if AXES > 2
  for (int kd = 0; kd < A.w_size[0]; ++kd) {
    int xd = tap(0, y[0], kd);
    if (xd < 0) {
      continue;
    }
    Index x_d = x_base + Index(xd) * Index(A.x_s[0]);
    Index w_d = w_base + Index(WEIGHT_TAP(0, kd)) * Index(A.w_s[0]);
#else
  {
    Index x_d = x_base, w_d = w_base;
#endif
#if AXES > 1
    for (int kh = 0; kh < A.w_size[1]; ++kh) {
      int xh = tap(1, y[1], kh);
      if (xh < 0) {
        continue;
      }
      Index x_h = x_d + Index(xh) * Index(A.x_s[1]);
      Index w_h = w_d + Index(WEIGHT_TAP(1, kh)) * Index(A.w_s[1]);
#else
    {
      Index x_h = x_d, w_h = w_d;
#endif
      for (int kw = 0; kw < A.w_size[2]; ++kw) {
        int xw = tap(2, y[2], kw);
        if (xw < 0) {
          continue;
        }
        Index xi = x_h + Index(xw) * Index(A.x_s[2]);
        Index wi = w_h + Index(WEIGHT_TAP(2, kw)) * Index(A.w_s[2]);
#if VEC
        for (uint c = 0; c < A.channels; c += 4) {
          vec4 x = load_vec4(A.x, xi + Index(c));
          acc = fma(x, load_vec4(A.w, wi + Index(c)), acc);
        }
#else
        for (uint c = 0; c < A.channels; ++c) {
          acc = fma(load(A.x, xi), load(A.w, wi), acc);
          xi += Index(A.x_c);
          wi += Index(A.w_c);
        }
#endif
      }
    }
  }
#if VEC
  store(A.y, i, sum4(acc));
#else
  store(A.y, i, acc);
#endif
}
#endif

#if MODE == CONV_DEPTHWISE
void convolve(UIndex i) {
  uint runs = (uint(A.y_size[2]) + RUN - 1) / RUN;
  UIndex rest = i;
  uint o = take(rest, A.outputs);
  int y = int(take(rest, runs)) * RUN;
  Index x_base = Index(rest) * Index(A.x_n) +
      Index(o / A.group_outputs) * Index(A.x_c);
  Index w_base = Index(o) * Index(A.w_o);

  float acc[RUN];
  [[unroll]] for (int r = 0; r < RUN; ++r) {
    acc[r] = 0.0;
  }
  for (int k = 0; k < A.w_size[2]; ++k) {
    float w = load(A.w, w_base + Index(WEIGHT_TAP(2, k)) * Index(A.w_s[2]));
    int at = y * A.stride[2] - A.pad[2] + k * A.w_dilation[2];
    [[unroll]] for (int r = 0; r < RUN; ++r) {
      if (at >= 0 && at < A.x_size[2]) {
        float x = load(A.x, x_base + Index(at) * Index(A.x_s[2]));
        acc[r] = fma(x, w, acc[r]);
      }
      at += A.stride[2];
    }
  }
  UIndex row = rest * UIndex(uint(A.y_size[2])) + UIndex(uint(y));
  [[unroll]] for (int r = 0; r < RUN; ++r) {
    if (y + r < A.y_size[2]) {
      UIndex at = (row + UIndex(uint(r))) * UIndex(A.outputs) + UIndex(o);
      store(A.y, at, acc[r]);
    }
  }
}
#endif

#if MODE == CONV_UNFOLD
#if VEC
#define WIDTH 4
#else
#define WIDTH 1
#endif
void convolve(UIndex i) {
  UIndex rest = i;
  uint c = take(rest, A.channels / WIDTH) * WIDTH;
  int k[3] = int[3](0, 0, 0);
  [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
    k[d] = int(take(rest, uint(A.w_size[d])));
  }
  rest += UIndex(A.first);
  int y[3] = int[3](0, 0, 0);
  [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
    y[d] = int(take(rest, uint(A.y_size[d])));
  }
  Index at = Index(rest) * Index(A.x_n) + Index(c) * Index(A.x_c);
  bool inside = true;
  [[unroll]] for (int d = FIRST_AXIS; d < 3; ++d) {
    int x = tap(d, y[d], WEIGHT_TAP(d, k[d]));
    inside = inside && x >= 0;
    at += Index(x) * Index(A.x_s[d]);
  }
#if VEC
  vec4 v = vec4(0.0);
  if (inside) {
    v = load_vec4(A.x, at);
  }
  store_vec4(A.y, i * 4, v);
#else
  float v = 0.0;
  if (inside) {
    v = load(A.x, at);
  }
  store(A.y, i, v);
#endif
}
#endif

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.items)) {
    convolve(i);
  }
}

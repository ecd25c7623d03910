// Gathers items of matrix a of conv/product.h from x. The base of each row and
// a mask of its taps inside x are computed once per workgroup. Item (row, tap,
// channel) is then at row_base[row] plus the tap's offset, if row_inside[row]
// contains all of the tap's bits, one per axis.
//
// Include after the argument block; the kernel defines THREADS and BM.
#pragma once

#define FIRST_AXIS (3 - AXES)

shared Index row_base[BM];
shared uint row_inside[BM];

T_PTR base_x, base_w;
Y_PTR base_y;
uint row0, col0;
uint split; // the workgroup's part of k

// Tap k of an axis reads x at (y * stride - pad + k * w_dilation) / x_dilation.
// If the division is exact, it equals the first term's quotient rounded up plus
// the second's rounded down.
int quotient_up(int n, int axis) {
#if DILATED
  int by = A.x_dilation[axis];
  int q = n / by;
  return q * by < n ? q + 1 : q;
#else
  return n;
#endif
}
bool inside(int n, int axis) {
#if DILATED
  int q = n / A.x_dilation[axis];
  return n >= 0 && q < A.x_size[axis] && q * A.x_dilation[axis] == n;
#else
  return n >= 0 && n < A.x_size[axis];
#endif
}

void find_rows() {
  for (uint r = gl_LocalInvocationIndex; r < BM; r += THREADS) {
    uint rest = row0 + r;
    bool real = rest < A.rows;
    Index base = Index(0);
    uint mask = 0, bit = 0;
    [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
      int first = int(take_axis(rest, uint(A.y_size[d]))) * A.stride[d] -
          A.pad[d];
      base += Index(quotient_up(first, d)) * Index(A.x_s[d]);
      for (int k = 0; k < A.w_size[d]; ++k) {
        uint is = inside(first + k * A.w_dilation[d], d) ? 1u : 0u;
        mask |= is << bit;
        ++bit;
      }
    }
    row_base[r] = base + Index(rest) * Index(A.x_n);
    row_inside[r] = real ? mask : 0u;
  }
}

// Copies of arguments used in the loop over k; the originals are in memory.
uint depth, channels, group_outputs, rows;
bool flipped;
int w_size[3], w_step[3], x_step[3];
Index x_s[3], x_c;

void take_arguments() {
  depth = A.depth;
  channels = A.channels;
  group_outputs = A.group_outputs;
  rows = A.rows;
  flipped = A.flip != 0u;
  x_c = Index(A.x_c);
  [[unroll]] for (int d = FIRST_AXIS; d < 3; ++d) {
    w_size[d] = A.w_size[d];
    w_step[d] = A.w_dilation[d];
    x_step[d] = A.x_dilation[d];
    x_s[d] = Index(A.x_s[d]);
  }
}

// A position along k: tap, its offset and bits, and channel.
struct Tap {
  int k[3];
  uint channel;
  Index offset;
  uint bits;
};

void find_offset(inout Tap t) {
  t.offset = Index(0);
  t.bits = 0;
  int bit = 0;
  [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
    int k = flipped ? w_size[d] - 1 - t.k[d] : t.k[d];
    int step = k * w_step[d];
#if DILATED
    step /= x_step[d];
#endif
    t.offset += Index(step) * x_s[d];
    t.bits |= 1u << (bit + k);
    bit += w_size[d];
  }
}

Tap tap_at(uint k) {
  Tap t;
  t.channel = take_axis(k, channels);
  [[unroll]] for (int d = 2; d > FIRST_AXIS; --d) {
    t.k[d] = int(take_axis(k, uint(w_size[d])));
  }
  t.k[FIRST_AXIS] = int(k);
  find_offset(t);
  return t;
}

// Advances by `step` channels, across at most WRAPS taps.
#define ADVANCE(t, step, WRAPS)                                               \
  {                                                                           \
    t.channel += step;                                                        \
    if (t.channel >= channels) {                                              \
      [[unroll]] for (int wrap_ = 0; wrap_ < WRAPS; ++wrap_) {                \
        if (t.channel >= channels) {                                          \
          t.channel -= channels;                                              \
          next_tap(t);                                                        \
        }                                                                     \
      }                                                                       \
      find_offset(t);                                                         \
    }                                                                         \
  }
void next_tap(inout Tap t) {
  t.k[2] += 1;
#if AXES > 1
  if (t.k[2] == w_size[2]) {
    t.k[2] = 0;
    t.k[1] += 1;
  }
#endif
#if AXES > 2
  if (t.k[1] == w_size[1]) {
    t.k[1] = 0;
    t.k[0] += 1;
  }
#endif
}

// Whether row r has an input at this tap, and its index. Beyond the last tap no
// bit is set, so callers must also compare k.
bool is_inside(Tap t, uint r) {
  return (row_inside[r] & t.bits) == t.bits;
}
Index item_of(Tap t, uint r) {
  return row_base[r] + (t.offset + Index(t.channel) * x_c);
}

// Selects the workgroup's tile. Column tiles are adjacent in dispatch order, so
// that they find rows of x in cache.
bool find_tile() {
  uint group = group_index();
  uint per_group = A.tiles_m * A.tiles_n;
  uint g = group / per_group;
  uint tile = group - g * per_group;
  split = g / A.groups;
  g -= split * A.groups;
  row0 = tile / A.tiles_n * BM;
  col0 = tile % A.tiles_n * BN;
  base_x = MOVED(T, A.x, int64_t(g * A.channels) * A.x_c);
  base_w = MOVED(T, A.w, int64_t(g * A.group_outputs) * int64_t(A.depth));
  int64_t part = int64_t(split) * (int64_t(A.rows) * int64_t(A.outputs));
  base_y = MOVED(Y, A.y, part + int64_t(g * A.group_outputs));
  return split < A.splits;
}

// Where items of the matrix a of conv/product.h are in x. A row's place and the
// taps of it that are inside of x are found once a workgroup; then item (row,
// tap, channel) is at row_base[row] + the tap's offset, if the tap's bits are
// all in row_inside[row]: one for each axis.
//
// Included after the argument block; THREADS and BM are the workgroup's.
#ifndef CONV_GATHER_GLSL
#define CONV_GATHER_GLSL

#define FIRST_AXIS (3 - AXES)

shared Index row_base[BM];
shared uint row_inside[BM];

T_PTR base_x, base_w;
T_PTR base_y;
uint row0, col0;

// Tap k of an axis reads from y * stride - pad + k * w_dilation, divided by
// x_dilation. The quotient is that of the first part rounded up plus that of
// the second rounded down, wherever the whole divides.
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

struct Tap {
  int k[3];
  uint channel;
};

Tap tap_at(uint k) {
  Tap t = Tap(int[3](0, 0, 0), 0);
  t.channel = take_axis(k, A.channels);
  [[unroll]] for (int d = 2; d > FIRST_AXIS; --d) {
    t.k[d] = int(take_axis(k, uint(A.w_size[d])));
  }
  t.k[FIRST_AXIS] = int(k);
  return t;
}

// Beyond the last tap no bit is set, and so none is missing: callers compare k.
Index tap_offset(Tap t, out uint bits) {
  Index at = Index(t.channel) * Index(A.x_c);
  bits = 0;
  int bit = 0;
  [[unroll]] for (int d = 2; d >= FIRST_AXIS; --d) {
    int k = A.flip != 0u ? A.w_size[d] - 1 - t.k[d] : t.k[d];
    int step = k * A.w_dilation[d];
#if DILATED
    step /= A.x_dilation[d];
#endif
    at += Index(step) * Index(A.x_s[d]);
    bits |= 1u << (bit + k);
    bit += A.w_size[d];
  }
  return at;
}

// The workgroup's tile: columns of it next to each other, so that they find
// rows of x in cache.
bool find_tile() {
  uint group = group_index();
  uint per_group = A.tiles_m * A.tiles_n;
  uint g = group / per_group;
  uint tile = group - g * per_group;
  row0 = tile / A.tiles_n * BM;
  col0 = tile % A.tiles_n * BN;
  base_x = MOVED(T, A.x, int64_t(g * A.channels) * A.x_c);
  base_w = MOVED(T, A.w, int64_t(g * A.group_outputs) * int64_t(A.depth));
  base_y = MOVED(T, A.y, int64_t(g * A.group_outputs));
  return g < A.groups;
}

#endif

// variants: T=f32,f16,bf16 TILE=32 OPERAND_MASKS=1 OUT_MASK=0 SEGMENTED=0; T=f32 TILE=32,64 OPERAND_MASKS=0,1,2 OUT_MASK=1,2 SEGMENTED=0; T=f32,bf16 TILE=64 OPERAND_MASKS=0 OUT_MASK=0 SEGMENTED=1; T=f32 TILE=32 OPERAND_MASKS=1 OUT_MASK=1 SEGMENTED=0 LARGE=1
// Matrix products in blocks. A workgroup makes a TILE x TILE tile of y and an
// invocation 4 x 4 of it; tiles of a and b pass through shared memory.
// OPERAND_MASKS, OUT_MASK: 0 none, 1 bool, 2 factors in T, one for each
// `block` x `block` of the matrix; TILE divides block. What a bool mask hides
// is not read. SEGMENTED: matrix s of y sums over [segments[2 s],
// segments[2 s + 1]) of k.
// a_t: a's rows are the unit-stride direction. b_t: b's k is.
#extension GL_EXT_control_flow_attributes : enable
#include "common/index.glsl"
#include "common/types.glsl"

#if OPERAND_MASKS == 1
#define OPERAND_MASK_POINTERS Ptr_bool a_mask; Ptr_bool b_mask;
#elif OPERAND_MASKS
#define OPERAND_MASK_POINTERS T_PTR a_mask; T_PTR b_mask;
#else
#define OPERAND_MASK_POINTERS
#endif
#if OUT_MASK == 1
#define OUT_MASK_POINTER Ptr_bool y_mask;
#elif OUT_MASK
#define OUT_MASK_POINTER T_PTR y_mask;
#else
#define OUT_MASK_POINTER
#endif
#if SEGMENTED
#define SEGMENT_POINTER Ptr_u32 segments;
#else
#define SEGMENT_POINTER
#endif

// Strides of a, b and the masks of a, b and y.
#define ARGS                                                                  \
  T_PTR a; T_PTR b; OPERAND_MASK_POINTERS OUT_MASK_POINTER SEGMENT_POINTER    \
  T_PTR y; uint m; uint n; uint k; uint block; uint tiles_m; uint tiles_n;    \
  uint batches; uint a_t; uint b_t; uint pad;                                 \
  int64_t rows[5]; int64_t cols[5];                                           \
  int ndim; int pad_ndim; int shape[MAX_NDIM];                                \
  int64_t a_batch[MAX_NDIM]; int64_t b_batch[MAX_NDIM];                       \
  int64_t a_mask_batch[MAX_NDIM]; int64_t b_mask_batch[MAX_NDIM];             \
  int64_t y_mask_batch[MAX_NDIM];
#include "common/args.glsl"

#define BK 16
#define GX (TILE / 4)
#define THREADS (GX * GX)
#define ROW (TILE + 4)

layout(local_size_x = THREADS) in;

shared float tile_a[BK * ROW];
shared float tile_b[BK * ROW];

#define BATCH_OFFSET(result, strides)                                         \
  int64_t result = 0l;                                                        \
  {                                                                           \
    uint rest_ = batch;                                                       \
    for (int d_ = A.ndim - 1; d_ >= 0; --d_) {                                \
      result += int64_t(take_axis(rest_, uint(A.shape[d_]))) * A.strides[d_]; \
    }                                                                         \
  }

#define MASK_AT(p, base, i, row, col)                                         \
  float(load(p, base + int64_t(row) * A.rows[i] + int64_t(col) * A.cols[i]))

void multiply(uint group) {
  uint t = gl_LocalInvocationIndex;
  uint col0 = group % A.tiles_n * TILE;
  uint rest = group / A.tiles_n;
  uint row0 = rest % A.tiles_m * TILE;
  uint batch = rest / A.tiles_m;
  uint tx = t % GX, ty = t / GX;

  float acc[16];
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    acc[i] = 0.0;
  }

#if SEGMENTED
  int64_t a0 = 0l, b0 = 0l;
  uint k_begin = load(A.segments, 2ul * uint64_t(batch));
  uint k_end = min(load(A.segments, 2ul * uint64_t(batch) + 1ul), A.k);
#else
  BATCH_OFFSET(a0, a_batch)
  BATCH_OFFSET(b0, b_batch)
  uint k_begin = 0, k_end = A.k;
#endif
#if OPERAND_MASKS
  BATCH_OFFSET(am0, a_mask_batch)
  BATCH_OFFSET(bm0, b_mask_batch)
#endif
  float factor = 1.0;
#if OUT_MASK
  BATCH_OFFSET(ym0, y_mask_batch)
  factor = MASK_AT(A.y_mask, ym0, 4, row0 / A.block, col0 / A.block);
#if OUT_MASK == 1
  k_end = factor == 0.0 ? 0 : k_end;
#endif
#endif
  T_PTR a = MOVED(T, A.a, a0);
  T_PTR b = MOVED(T, A.b, b0);

  // Uniform over the workgroup, hence the barriers.
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
#if OPERAND_MASKS
    float fa = MASK_AT(A.a_mask, am0, 2, row0 / A.block, k0 / A.block);
    float fb = MASK_AT(A.b_mask, bm0, 3, k0 / A.block, col0 / A.block);
#if OPERAND_MASKS == 1
    if (fa == 0.0 || fb == 0.0) {
      continue;
    }
#endif
#else
    const float fa = 1.0;
    const float fb = 1.0;
#endif
    barrier();
    [[dont_unroll]] for (uint e = t; e < TILE * BK; e += THREADS) {
      uint r = A.a_t != 0 ? e % TILE : e / BK;
      uint k = A.a_t != 0 ? e / TILE : e % BK;
      float x = 0.0;
      if (row0 + r < A.m && k0 + k < k_end) {
        Index at = Index(row0 + r) * Index(A.rows[0]) +
            Index(k0 + k) * Index(A.cols[0]);
        x = fa * load(a, at);
      }
      tile_a[k * ROW + r] = x;
    }
    [[dont_unroll]] for (uint e = t; e < TILE * BK; e += THREADS) {
      uint k = A.b_t != 0 ? e % BK : e / TILE;
      uint c = A.b_t != 0 ? e / BK : e % TILE;
      float x = 0.0;
      if (col0 + c < A.n && k0 + k < k_end) {
        Index at = Index(k0 + k) * Index(A.rows[1]) +
            Index(col0 + c) * Index(A.cols[1]);
        x = fb * load(b, at);
      }
      tile_b[k * ROW + c] = x;
    }
    barrier();
    for (uint kk = 0; kk < BK; ++kk) {
      float x[4], w[4];
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        x[i] = tile_a[kk * ROW + ty * 4 + i];
        w[i] = tile_b[kk * ROW + tx * 4 + i];
      }
      [[unroll]] for (uint i = 0; i < 16; ++i) {
        acc[i] = fma(x[i / 4], w[i % 4], acc[i]);
      }
    }
  }

  uint64_t y0 = uint64_t(batch) * uint64_t(A.m) * uint64_t(A.n);
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    uint r = row0 + ty * 4 + i / 4, c = col0 + tx * 4 + i % 4;
    if (r < A.m && c < A.n) {
      uint64_t at = y0 + uint64_t(r) * uint64_t(A.n) + uint64_t(c);
      store(A.y, at, acc[i] * factor);
    }
  }
}

void main() {
  uint group = group_index();
  if (group < A.tiles_m * A.tiles_n * A.batches) {
    multiply(group);
  }
}

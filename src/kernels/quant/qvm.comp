// variants: T=f32,f16,bf16 BITS=4 GROUP=64 FP=0 GLOBAL=0 BATCH=0,1 ROWS=1,4 TX=16 TY=16 ; T=bf16 BITS=1,2,3,5,6,8 GROUP=32 FP=0 GLOBAL=0 BATCH=0 ROWS=1 TX=16 TY=4 ; T=bf16 BITS=4 GROUP=16 FP=1 GLOBAL=0,1 BATCH=2 ROWS=2 TX=4 TY=16
// y = x @ W for few rows of x. W is (K, N), quantized along N.
//
// A workgroup makes 8 * TX outputs of ROWS rows: an invocation has 8 columns
// and every TY-th row of W, and the TY partial sums meet in shared memory.
#include "quant/operands.glsl"

layout(local_size_x = TX * TY) in;

shared float partial[TY][TX * 8 * ROWS];

void main() {
  uint group = min(group_index(), A.groups - 1u);
  bool live = group_index() < A.groups;
  uint n_tile = group % A.n_tiles;
  uint m0 = group / A.n_tiles % A.m_tiles * ROWS;
  locate(group / A.n_tiles / A.m_tiles);

  uint tx = gl_LocalInvocationID.x % TX;
  uint ty = gl_LocalInvocationID.x / TX;
  uint unit = min(n_tile * TX + tx, A.N / 8u - 1u);
  uint row_words = A.N / 16u * BITS / 2u;
  uint row_groups = A.N / GROUP;

  T_PTR x_rows[ROWS];
  float acc[ROWS][8];
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    x_rows[m] = ITEMS_AT(x_base, int64_t(min(m0 + m, A.M - 1u)) * A.x_row);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      acc[m][i] = 0.0;
    }
  }
  for (uint k = ty; k < A.K; k += TY) {
    uvec2 codes = load_codes8(WORDS_AT(w_base, int64_t(k) * row_words), unit);
    uint64_t g = uint64_t(k) * row_groups + unit / (GROUP / 8);
    float scale = load_scale(scale_base, g);
    float w[8];
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      w[i] = scale * code_value(code8(codes, i));
    }
#if !FP
    float bias = load(bias_base, g);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      w[i] += bias;
    }
#endif
    [[unroll]] for (uint m = 0; m < ROWS; ++m) {
      float x = load(x_rows[m], k);
      [[unroll]] for (uint i = 0; i < 8; ++i) {
        acc[m][i] += x * w[i];
      }
    }
  }
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      partial[ty][m * TX * 8 + tx * 8 + i] = acc[m][i];
    }
  }
  barrier();
  for (uint j = gl_LocalInvocationID.x; j < TX * 8 * ROWS; j += TX * TY) {
    float sum = 0.0;
    for (uint t = 0; t < TY; ++t) {
      sum += partial[t][j];
    }
    uint m = m0 + j / (TX * 8);
    uint n = n_tile * (TX * 8) + j % (TX * 8);
    if (live && m < A.M && n < A.N) {
      store(y_base, uint64_t(m) * A.N + n, sum * y_factor);
    }
  }
}

// variants: T=f32,f16,bf16 BITS=4 GROUP=64 FP=0 GLOBAL=0 BATCH=0 ROWS=1,2 OUTS=4 CHUNK=32 WG=128 BLOCK=16 WIDE=0 VEC=0,1 ; T=f32,f16,bf16 BITS=4 GROUP=64 FP=0 GLOBAL=0 BATCH=0 ROWS=8 OUTS=1,2 CHUNK=32 WG=128 BLOCK=8 WIDE=0 VEC=0,1 ; T=bf16 BITS=1,2,3,5,6,8 GROUP=32 FP=0 GLOBAL=0 BATCH=0 ROWS=1,2 OUTS=2 CHUNK=32 WG=128 BLOCK=2 WIDE=1 VEC=1 ; T=bf16 BITS=1,2,3,5,6,8 GROUP=32 FP=0 GLOBAL=0 BATCH=0 ROWS=8 OUTS=1 CHUNK=32 WG=128 BLOCK=4 WIDE=0 VEC=1; T=bf16 BITS=4 GROUP=16 FP=1 GLOBAL=0,1 BATCH=0,1,2 ROWS=4 OUTS=2 CHUNK=16 WG=64 BLOCK=8 WIDE=0 VEC=1 ; T=f16 BITS=8 GROUP=32 FP=1 GLOBAL=0 BATCH=2 ROWS=1 OUTS=2 CHUNK=8 WG=64 BLOCK=8 WIDE=0 VEC=1
// y = x @ W^T for few rows of x. W is (N, K), quantized along K.
//
// A workgroup makes BLOCK outputs of ROWS rows. Each subgroup (the whole
// workgroup if WIDE) makes OUTS of them at a time: its lanes take chunks of
// CHUNK elements of K in turn, keep the codes in registers, use each x for
// OUTS weights and each weight for ROWS rows, and add up at the end.
// CHUNK divides GROUP, so a chunk has one scale and one bias.
#include "quant/operands.glsl"

layout(local_size_x = WG) in;

#define WORDS (CHUNK * BITS / 32)

#if WIDE
shared float partial[(WG / 4) * OUTS * ROWS];
#define LANE gl_LocalInvocationID.x
#define LANES uint(WG)
#else
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#endif

// 8 values of x from element `at` of a row on.
#define LOAD_X8(dst, row, at)                                                   \
  LOAD_X8_(dst, row, at)
#if VEC && T_SIZE == 2
#ifdef T_IS_bf16
#define PAIR(dst, i, word)                                                      \
  dst[i] = uintBitsToFloat((word) << 16);                                       \
  dst[i + 1] = uintBitsToFloat((word) & 0xffff0000u);
#else
#define PAIR(dst, i, word)                                                      \
  {                                                                           \
    vec2 two_ = unpackHalf2x16(word);                                         \
    dst[i] = two_.x;                                                            \
    dst[i + 1] = two_.y;                                                        \
  }
#endif
#define LOAD_X8_(dst, row, at)                                                  \
  {                                                                           \
    uvec4 p_ = Ptr_u32x4(uint64_t(row)).v[(at) >> 3];                         \
    PAIR(dst, 0, p_.x)                                                          \
    PAIR(dst, 2, p_.y)                                                          \
    PAIR(dst, 4, p_.z)                                                          \
    PAIR(dst, 6, p_.w)                                                          \
  }
#elif VEC
#define LOAD_X8_(dst, row, at)                                                  \
  {                                                                           \
    vec4 a_ = Ptr_f32x4(uint64_t(row)).v[(at) >> 2];                          \
    vec4 b_ = Ptr_f32x4(uint64_t(row)).v[((at) >> 2) + 1u];                   \
    dst[0] = a_.x; dst[1] = a_.y; dst[2] = a_.z; dst[3] = a_.w;                       \
    dst[4] = b_.x; dst[5] = b_.y; dst[6] = b_.z; dst[7] = b_.w;                       \
  }
#else
#define LOAD_X8_(dst, row, at)                                                  \
  [[unroll]] for (uint i_ = 0; i_ < 8; ++i_) {                                \
    dst[i_] = load(row, (at) + i_);                                             \
  }
#endif

// The WORDS words of chunk c of a row.
#if VEC && WORDS % 4 == 0
#define LOAD_WORDS(dst, row, c)                                               \
  [[unroll]] for (uint i_ = 0; i_ < WORDS / 4; ++i_) {                        \
    uvec4 q_ = Ptr_u32x4(uint64_t(row)).v[(c) * (WORDS / 4) + i_];            \
    dst[4 * i_] = q_.x;                                                       \
    dst[4 * i_ + 1] = q_.y;                                                   \
    dst[4 * i_ + 2] = q_.z;                                                   \
    dst[4 * i_ + 3] = q_.w;                                                   \
  }
#elif VEC && WORDS % 2 == 0
#define LOAD_WORDS(dst, row, c)                                               \
  [[unroll]] for (uint i_ = 0; i_ < WORDS / 2; ++i_) {                        \
    uvec2 q_ = Ptr_u32x2(uint64_t(row)).v[(c) * (WORDS / 2) + i_];            \
    dst[2 * i_] = q_.x;                                                       \
    dst[2 * i_ + 1] = q_.y;                                                   \
  }
#else
#define LOAD_WORDS(dst, row, c)                                               \
  [[unroll]] for (uint i_ = 0; i_ < WORDS; ++i_) {                            \
    dst[i_] = load(row, (c) * WORDS + i_);                                    \
  }
#endif

void main() {
  uint group = min(group_index(), A.groups - 1u);
  bool live = group_index() < A.groups;
  uint n_tile = group % A.n_tiles;
  uint m_tile = group / A.n_tiles % A.m_tiles;
  locate(group / A.n_tiles / A.m_tiles);

  uint m0 = m_tile * ROWS;
  T_PTR x_rows[ROWS];
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    x_rows[m] = ITEMS_AT(x_base, int64_t(min(m0 + m, A.M - 1u)) * A.x_row);
  }
  uint chunks = A.K / CHUNK;
  uint row_words = A.K / 16u * BITS / 2u;
  uint row_groups = A.K / GROUP;

#if WIDE
  const uint first = 0u, step = OUTS;
#else
  uint first = gl_SubgroupID * OUTS;
  uint step = gl_NumSubgroups * OUTS;
#endif
  for (uint o = first; o < BLOCK; o += step) {
    uint n0 = n_tile * BLOCK + o;
    Ptr_u32 w_rows[OUTS];
    int64_t s_rows[OUTS];
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      int64_t n = int64_t(min(n0 + r, A.N - 1u));
      w_rows[r] = WORDS_AT(w_base, n * row_words);
      s_rows[r] = n * row_groups;
    }
    float acc[OUTS][ROWS];
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      [[unroll]] for (uint m = 0; m < ROWS; ++m) {
        acc[r][m] = 0.0;
      }
    }
    for (uint c = LANE; c < chunks; c += LANES) {
      uint words[OUTS][WORDS];
      float scale[OUTS];
#if !FP
      float bias[OUTS];
#endif
      uint g = c / (GROUP / CHUNK);
      [[unroll]] for (uint r = 0; r < OUTS; ++r) {
        LOAD_WORDS(words[r], w_rows[r], c)
        scale[r] = load_scale(scale_base, s_rows[r] + g);
#if !FP
        bias[r] = load(bias_base, s_rows[r] + g);
#endif
      }
      float product[OUTS][ROWS];
      float x_sum[ROWS];
      [[unroll]] for (uint e = 0; e < CHUNK; e += 8) {
        float xs[ROWS][8];
        [[unroll]] for (uint m = 0; m < ROWS; ++m) {
          LOAD_X8(xs[m], x_rows[m], c * CHUNK + e)
          float sum = ((xs[m][0] + xs[m][1]) + (xs[m][2] + xs[m][3])) +
              ((xs[m][4] + xs[m][5]) + (xs[m][6] + xs[m][7]));
          x_sum[m] = e == 0 ? sum : x_sum[m] + sum;
        }
        [[unroll]] for (uint r = 0; r < OUTS; ++r) {
          float w[8];
          [[unroll]] for (uint i = 0; i < 8; ++i) {
            w[i] = code_value(CODE_IN(words[r], e + i));
          }
          [[unroll]] for (uint m = 0; m < ROWS; ++m) {
            float p = e == 0 ? w[0] * xs[m][0] : product[r][m] + w[0] * xs[m][0];
            [[unroll]] for (uint i = 1; i < 8; ++i) {
              p += w[i] * xs[m][i];
            }
            product[r][m] = p;
          }
        }
      }
      [[unroll]] for (uint r = 0; r < OUTS; ++r) {
        [[unroll]] for (uint m = 0; m < ROWS; ++m) {
          acc[r][m] += scale[r] * product[r][m];
#if !FP
          acc[r][m] += bias[r] * x_sum[m];
#endif
        }
      }
    }
#if WIDE
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      [[unroll]] for (uint m = 0; m < ROWS; ++m) {
        float sum = subgroupAdd(acc[r][m]);
        if (subgroupElect()) {
          partial[(gl_SubgroupID * OUTS + r) * ROWS + m] = sum;
        }
      }
    }
    barrier();
    for (uint i = LANE; i < OUTS * ROWS; i += WG) {
      float sum = 0.0;
      for (uint s = 0; s < gl_NumSubgroups; ++s) {
        sum += partial[s * OUTS * ROWS + i];
      }
      uint n = n0 + i / ROWS;
      uint m = m0 + i % ROWS;
      if (live && n < A.N && m < A.M) {
        store(y_base, uint64_t(m) * A.N + n, sum * y_factor);
      }
    }
    if (BLOCK > OUTS) {
      barrier();
    }
#else
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      [[unroll]] for (uint m = 0; m < ROWS; ++m) {
        float sum = subgroupAdd(acc[r][m]);
        if (live && n0 + r < A.N && m0 + m < A.M && subgroupElect()) {
          store(y_base, uint64_t(m0 + m) * A.N + (n0 + r), sum * y_factor);
        }
      }
    }
#endif
  }
}

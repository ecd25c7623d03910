// y = x @ W^T for few rows of x. W is (N, K), quantized along K.
//
// A workgroup computes BLOCK outputs of ROWS rows. Each subgroup, or with
// WHOLE_WORKGROUP the workgroup, computes OUTS at a time: lanes alternate over
// chunks of CHUNK elements of K, hold the codes in registers, use each x for
// OUTS weights and each weight for ROWS rows, and reduce at the end. CHUNK
// divides GROUP, so a chunk has one scale and one bias. With INT_DOT, x is
// integers (x_digits.glsl).
#include "quant/operands.glsl"

layout(local_size_x = WG) in;

#define WORDS (CHUNK * BITS / 32)
#if INT_DOT
#define K_ITEMS uint(ROW_ITEMS)
#else
#define K_ITEMS A.K
#endif

// qmv_fused.comp computes outputs of several matrices (fused.glsl).
#ifndef FUSED
#define first_output(tile, o) (tile.n * BLOCK + (o))
#define outputs() A.N
#define finish(tile)
#endif

#if COOPMAT
#include "quant/qmv_matrix.glsl"
#else

#ifndef X_OF_PASS
#define X_OF_PASS(rows)
#define X_OF_ALL(rows, tile)                                                  \
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {                                \
    rows[m] = x_row(min((tile).m * ROWS + m, A.M - 1u));                      \
  }
#endif

// Codes of 2, 4 and 8 bits become floats by one shift per CLASSES codes and one
// AND-OR each. At the top of the mantissa of 1.0, code n is 1 + n / 2^BITS; one
// place lower, 1 + n / 4^BITS. Each class has its own sum, from which the sum
// of x (due to the ones) is subtracted. Products are exact; a sum loses at most
// BITS * CLASSES of 24 bits. Not used with many outputs (software devices),
// where twice the sums exceed the registers.
#if CODE == CODE_INTEGER && VEC && OUTS <= QMV_FEW_OUTS &&                    \
    (BITS == 2 || BITS == 4 || BITS == 8)
#define CODES_FROM_ONE
#define CLASSES (T_SIZE == 4 || BITS == 8 ? 1 : BITS == 4 ? 2 : 4)
#define CLASS(i) (CLASSES - 1 - (i) % CLASSES)
// Position of a code's lowest bit, and its left shift to get there.
#define CODE_PLACE(i) (23 - BITS * (1 + CLASS(i)))
#define CODE_LEFT(i) (CODE_PLACE(i) - CODE_SHIFT(i))
#define CODE_FLOAT(words, i)                                                  \
  uintBitsToFloat(                                                            \
      ((CODE_LEFT(i) >= 0 ? words[CODE_WORD(i)] << (CODE_LEFT(i) & 31)        \
                          : words[CODE_WORD(i)] >> (-CODE_LEFT(i) & 31)) &    \
       (CODE_MASK << CODE_PLACE(i))) |                                        \
      one)
#else
#define CLASSES 1
#define CLASS(i) 0
#define CODE_FLOAT(words, i) code_value(CODE_IN(words, i))
#endif

#if WHOLE_WORKGROUP
shared float partial[(WG / 4) * OUTS * ROWS];
#define LANE gl_LocalInvocationID.x
#define LANES uint(WG)
#else
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#endif

#define SPREAD4(dst, i, v)                                                    \
  dst[i] = v.x;                                                               \
  dst[i + 1] = v.y;                                                           \
  dst[i + 2] = v.z;                                                           \
  dst[i + 3] = v.w;

// Loads 8 values of x from element `at` of a row.
#if defined(FUSED) && NORM
#define X_PACK(row, at, i) normed_x[NORMED_AT(((at) * T_SIZE >> 4) + (i))]
#else
#define X_PACK(row, at, i)                                                    \
  Ptr_u32x4(uint64_t(row)).v[((at) * T_SIZE >> 4) + (i)]
#endif
#if VEC && T_SIZE == 2
#ifdef T_IS_bf16
#define PAIR(word)                                                            \
  vec2(uintBitsToFloat((word) << 16), uintBitsToFloat((word) & 0xffff0000u))
#else
#define PAIR unpackHalf2x16
#endif
#define LOAD_X8(dst, row, at)                                                 \
  {                                                                           \
    uvec4 p_ = X_PACK(row, at, 0u);                                           \
    vec4 a_ = vec4(PAIR(p_.x), PAIR(p_.y));                                   \
    vec4 b_ = vec4(PAIR(p_.z), PAIR(p_.w));                                   \
    SPREAD4(dst, 0, a_)                                                       \
    SPREAD4(dst, 4, b_)                                                       \
  }
#elif VEC
#define LOAD_X8(dst, row, at)                                                 \
  {                                                                           \
    vec4 a_ = uintBitsToFloat(X_PACK(row, at, 0u));                           \
    vec4 b_ = uintBitsToFloat(X_PACK(row, at, 1u));                           \
    SPREAD4(dst, 0, a_)                                                       \
    SPREAD4(dst, 4, b_)                                                       \
  }
#else
#define LOAD_X8(dst, row, at)                                                 \
  [[unroll]] for (uint i_ = 0; i_ < 8; ++i_) {                                \
    dst[i_] = load(row, (at) + i_);                                           \
  }
#endif

// Loads the WORDS words of chunk c of a row.
#if VEC && WORDS % 4 == 0
#define LOAD_WORDS(dst, row, c)                                               \
  [[unroll]] for (uint i_ = 0; i_ < WORDS / 4; ++i_) {                        \
    uvec4 q_ = Ptr_u32x4(uint64_t(row)).v[(c) * (WORDS / 4) + i_];            \
    SPREAD4(dst, 4 * i_, q_)                                                  \
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

float acc[OUTS][ROWS];

#if INT_DOT
#include "quant/x_digits.glsl"
#define STAGE_X(row) stage_x(row)
#else
#define STAGE_X(row)
#endif

void clear_sums() {
  [[unroll]] for (uint r = 0; r < OUTS; ++r) {
    [[unroll]] for (uint m = 0; m < ROWS; ++m) {
      acc[r][m] = 0.0;
    }
  }
}

// Reduces the sums over all lanes and stores them.
void store_sums(Tile tile, uint n0) {
  uint m0 = tile.m * ROWS;
  [[unroll]] for (uint r = 0; r < OUTS; ++r) {
    [[unroll]] for (uint m = 0; m < ROWS; ++m) {
      float sum = subgroupAdd(acc[r][m]);
      if (subgroupElect()) {
#if WHOLE_WORKGROUP
        partial[(gl_SubgroupID * OUTS + r) * ROWS + m] = sum;
#else
        store_y(tile.live, m0 + m, n0 + r, sum);
#endif
      }
    }
  }
#if WHOLE_WORKGROUP
  barrier();
  for (uint i = LANE; i < OUTS * ROWS; i += WG) {
    float sum = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      sum += partial[s * OUTS * ROWS + i];
    }
    store_y(tile.live, m0 + i % ROWS, n0 + i / ROWS, sum);
  }
  if (BLOCK > OUTS) {
    barrier();
  }
#endif
}

void main() {
  Tile tile = own_tile();
  locate(tile.product);
  T_PTR x_rows[ROWS];
  X_OF_ALL(x_rows, tile)
  STAGE_X(x_rows[0]);
  uint chunks = K_ITEMS / CHUNK;
#if WHOLE_WORKGROUP
  const uint first = 0u, step = OUTS;
#else
  uint first = gl_SubgroupID * OUTS;
  uint step = gl_NumSubgroups * OUTS;
#endif
  for (uint o = first; o < BLOCK; o += step) {
    uint n0 = first_output(tile, o);
    X_OF_PASS(x_rows)
    uint one = IN_REGISTER(0x3f800000u, n0); // 1.0
    Ptr_u32 w_rows[OUTS];
    uint64_t groups[OUTS];
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      uint n = min(n0 + r, outputs() - 1u);
      w_rows[r] = code_row(n, K_ITEMS);
      groups[r] = group_of(n, K_ITEMS, 0);
    }
    clear_sums();
    for (uint c0 = LANE; c0 < chunks; c0 += LANES * TURNS) {
      // All loads of weights are issued first, so that they are in flight
      // together.
      uint words[TURNS][OUTS][WORDS];
      float scale[TURNS][OUTS], bias[TURNS][OUTS];
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        uint c = c0 + t * LANES;
        [[unroll]] for (uint r = 0; r < OUTS; ++r) {
          LOAD_WORDS(words[t][r], w_rows[r], c)
        }
      }
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        uint g = (c0 + t * LANES) / (GROUP / CHUNK);
        [[unroll]] for (uint r = 0; r < OUTS; ++r) {
          scale[t][r] = load_scale(scale_base, groups[r] + g);
          bias[t][r] = load_bias(groups[r] + g);
        }
      }
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        uint c = c0 + t * LANES;
#if INT_DOT
        add_chunk(words[t], scale[t], bias[t], c);
#else
        float product[OUTS][ROWS][CLASSES];
        float x_sum[ROWS][CLASSES];
        [[unroll]] for (int e = 0; e < CHUNK; e += 8) {
          float xs[ROWS][8];
          [[unroll]] for (uint m = 0; m < ROWS; ++m) {
            LOAD_X8(xs[m], x_rows[m], c * CHUNK + e)
            [[unroll]] for (int i = 0; i < 8; ++i) {
              float x = xs[m][i];
              x_sum[m][CLASS(i)] =
                  e + i < CLASSES ? x : x_sum[m][CLASS(i)] + x;
            }
          }
          [[unroll]] for (uint r = 0; r < OUTS; ++r) {
            [[unroll]] for (int i = 0; i < 8; ++i) {
              float w = CODE_FLOAT(words[t][r], e + i);
              [[unroll]] for (uint m = 0; m < ROWS; ++m) {
                float p = w * xs[m][i];
                product[r][m][CLASS(i)] =
                    e + i < CLASSES ? p : product[r][m][CLASS(i)] + p;
              }
            }
          }
        }
        [[unroll]] for (uint m = 0; m < ROWS; ++m) {
          float all = x_sum[m][0];
          [[unroll]] for (uint k = 1; k < CLASSES; ++k) {
            all += x_sum[m][k];
          }
          [[unroll]] for (uint r = 0; r < OUTS; ++r) {
#ifdef CODES_FROM_ONE
            float p = 0.0;
            [[unroll]] for (uint k = 0; k < CLASSES; ++k) {
              p += float(1 << (BITS * (k + 1))) *
                  (product[r][m][k] - x_sum[m][k]);
            }
#else
            float p = product[r][m][0];
#endif
            acc[r][m] += scale[t][r] * p;
#if SIDE == SIDE_BIASES
            acc[r][m] += bias[t][r] * all;
#endif
          }
        }
#endif
      }
    }
    store_sums(tile, n0);
  }
  finish(tile);
}

#endif

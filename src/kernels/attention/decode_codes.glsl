// K and V as codes of BITS bits with a scale and a bias per GROUP items, for
// decode.comp. A lane's chunk of E items lies within a group, so products are
// summed over the codes, and scale and bias are applied once per chunk:
//   sum q_i (scale n_i + bias) = scale sum q_i n_i + bias sum q_i
//   sum w_k (scale_k n_ki + bias_k) = sum (w_k scale_k) n_ki + sum w_k bias_k
#pragma once

#define WORDS (E * BITS / 32)
#if WORDS == 4
#define CODES uvec4
#define CODES_AT(at) Ptr_u32x4(at).v[0]
#else
#define CODES uvec2
#define CODES_AT(at) Ptr_u32x2(at).v[0]
#endif

// Conversion of codes as in quant/qmv.comp: one shift per CLASSES codes and one
// AND-OR each give 1 + n / 2^(BITS * (1 + class)) for code n. q is multiplied
// by that power of two beforehand, values afterwards, and the contribution of
// the ones is subtracted. Only sums round; they lose at most BITS * CLASSES of
// 24 bits.
#define CLASSES (T_SIZE == 4 || BITS == 8 ? 1 : 2)
#define CLASS(i) (CLASSES - 1 - (i) % CLASSES)
#define CODE_UNIT(i) float(1 << (BITS * (1 + CLASS(i))))
#define CODE_PLACE(i) (23 - BITS * (1 + CLASS(i)))
#define CODE_LEFT(i) (CODE_PLACE(i) - ((i) * BITS & 31))
#define CODE_FLOAT(x, i)                                                      \
  uintBitsToFloat(                                                            \
      ((CODE_LEFT(i) >= 0                                                     \
            ? x[(i) * BITS >> 5] << (CODE_LEFT(i) & 31)                       \
            : x[(i) * BITS >> 5] >> (-CODE_LEFT(i) & 31)) &                   \
       (((1u << BITS) - 1u) << CODE_PLACE(i))) |                              \
      one)
#define CODE_FLOATS(x, i)                                                     \
  vec4(                                                                       \
      CODE_FLOAT(x, 4 * (i)),                                                 \
      CODE_FLOAT(x, 4 * (i) + 1),                                             \
      CODE_FLOAT(x, 4 * (i) + 2),                                             \
      CODE_FLOAT(x, 4 * (i) + 3))

uint one; // 1.0

#define QUERY_UNITS                                                           \
  vec4(CODE_UNIT(0), CODE_UNIT(1), CODE_UNIT(2), CODE_UNIT(3))
#include "attention/queries.glsl"
// Sums of a lane's items of q, with and without the codes' units.
float q_ones[ROWS * CHUNKS], q_sums[ROWS * CHUNKS];

CODES k[KU * CHUNKS], v[KU * CHUNKS_V];
float k_scale[KU * CHUNKS], k_bias[KU * CHUNKS];
float v_scale[KU * CHUNKS_V], v_bias[KU * CHUNKS_V];

// Sums of weight * scale and of weight * bias.
float ones[ROWS * CHUNKS_V], biases[ROWS * CHUNKS_V];

uint64_t k_scales, k_biases, v_scales, v_biases;

uint64_t at_head(uint64_t p, ItemStrides s, Rows w, uint item) {
  return p +
      uint64_t(
             (int64_t(w.batch) * s.batch + int64_t(w.kv_head) * s.head) *
             int64_t(item));
}

void begin_head(Rows w) {
  k_head = at_head(uint64_t(A.k), A.k_codes_strides, w, 4);
  k_scales = at_head(uint64_t(A.k_scales), A.k_scales_strides, w, T_SIZE);
  k_biases = at_head(uint64_t(A.k_biases), A.k_biases_strides, w, T_SIZE);
  v_head = at_head(uint64_t(A.v), A.v_codes_strides, w, 4);
  v_scales = at_head(uint64_t(A.v_scales), A.v_scales_strides, w, T_SIZE);
  v_biases = at_head(uint64_t(A.v_biases), A.v_biases_strides, w, T_SIZE);
  one = IN_REGISTER(0x3f800000u, A.keys);
  [[unroll]] for (uint i = 0; i < ROWS * CHUNKS_V; ++i) {
    ones[i] = 0.0;
    biases[i] = 0.0;
  }
}

// Offsets of rows of N items and of their groups. Rows are contiguous and a
// lane's rows are CLUSTERS apart, so that its addresses differ by constants.
#define ROW_BYTES(N) (N * BITS / 8)
#define ROW_GROUPS(N) (N / GROUP)
#define CHUNK_ITEM(j, N) (HAS(j, N) ? ITEM(j) : 0)

// Loads all chunks of KU keys. Only the branch for the last keys clamps each
// index to the last key.
#define LOAD_CODES(codes, scale, bias, head, scales, biases_, N, PIECES_)     \
  if (base + CLUSTERS * KU <= end_key) {                                      \
    uint64_t row = head + uint64_t(base + CLUSTER) * ROW_BYTES(N);            \
    uint64_t group = uint64_t(base + CLUSTER) * (ROW_GROUPS(N) * T_SIZE);     \
    [[unroll]] for (uint j = 0; j < PIECES_; ++j) {                           \
      uint item = CHUNK_ITEM(j, N);                                           \
      uint64_t at = row + item * BITS / 8;                                    \
      uint64_t side = group + item / GROUP * T_SIZE;                          \
      uint64_t scale_at = scales + side;                                      \
      uint64_t bias_at = biases_ + side;                                      \
      [[unroll]] for (uint u = 0; u < KU; ++u) {                              \
        const uint rows = u * CLUSTERS;                                       \
        const uint sides = rows * ROW_GROUPS(N) * T_SIZE;                     \
        codes[u * PIECES_ + j] = CODES_AT(at + rows * ROW_BYTES(N));          \
        scale[u * PIECES_ + j] = load(T_PTR(scale_at + sides), 0);            \
        bias[u * PIECES_ + j] = load(T_PTR(bias_at + sides), 0);              \
      }                                                                       \
    }                                                                         \
  } else {                                                                    \
    [[unroll]] for (uint u = 0; u < KU; ++u) {                                \
      uint64_t key = uint64_t(min(KEY(base, u), end_key - 1));                \
      [[unroll]] for (uint j = 0; j < PIECES_; ++j) {                         \
        uint item = CHUNK_ITEM(j, N);                                         \
        uint64_t group = key * ROW_GROUPS(N) + item / GROUP;                  \
        codes[u * PIECES_ + j] =                                              \
            CODES_AT(head + key * ROW_BYTES(N) + item * BITS / 8);            \
        scale[u * PIECES_ + j] = load(T_PTR(scales), group);                  \
        bias[u * PIECES_ + j] = load(T_PTR(biases_), group);                  \
      }                                                                       \
    }                                                                         \
  }

void load_keys(uint base) {
  LOAD_CODES(k, k_scale, k_bias, k_head, k_scales, k_biases, D, CHUNKS)
}

void load_values(uint base) {
  LOAD_CODES(v, v_scale, v_bias, v_head, v_scales, v_biases, DV, CHUNKS_V)
}

// q is zero beyond D, which cancels the codes read there.
void load_queries(Rows w) {
  share_queries(w);
  [[unroll]] for (uint i = 0; i < ROWS * CHUNKS; ++i) {
    q_ones[i] = 0.0;
    q_sums[i] = 0.0;
    [[unroll]] for (uint f = 0; f < FOURS; ++f) {
      vec4 x = QUERY_FOUR(i / CHUNKS, i % CHUNKS, f);
      q_ones[i] += x.x + x.y + (x.z + x.w);
      x /= QUERY_UNITS;
      q_sums[i] += x.x + x.y + (x.z + x.w);
    }
  }
}

// The lane's partial sums of all scores of a cluster.
void multiply_keys(uint base, out float s[ROWS * KU]) {
  [[unroll]] for (uint i = 0; i < ROWS * KU; ++i) {
    s[i] = 0.0;
  }
  [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
    float p[ROWS * KU];
    [[unroll]] for (uint i = 0; i < ROWS * KU; ++i) {
      p[i] = -q_ones[i / KU * CHUNKS + j];
    }
    [[unroll]] for (int f = 0; f < FOURS; ++f) {
      vec4 items[KU];
      [[unroll]] for (uint u = 0; u < KU; ++u) {
        items[u] = CODE_FLOATS(k[u * CHUNKS + j], f);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        vec4 x = QUERY_FOUR(r, j, f);
        [[unroll]] for (uint u = 0; u < KU; ++u) {
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            p[r * KU + u] = fma(x[e], items[u][e], p[r * KU + u]);
          }
        }
      }
    }
    [[unroll]] for (uint i = 0; i < ROWS * KU; ++i) {
      uint of = i % KU * CHUNKS + j;
      float bias = k_bias[of] * q_sums[i / KU * CHUNKS + j];
      s[i] += fma(k_scale[of], p[i], bias);
    }
  }
}

void add_values(uint base, float weights[SCORES]) {
  [[unroll]] for (uint u = 0; u < KU; ++u) {
    float x[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      x[r] = FROM(weights[u % SCORES], r * ROW_LANES + u / SCORES * COPIES);
    }
    [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
      uint of = u * CHUNKS_V + j;
      float scaled[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        scaled[r] = x[r] * v_scale[of];
        ones[r * CHUNKS_V + j] += scaled[r];
        biases[r * CHUNKS_V + j] =
            fma(x[r], v_bias[of], biases[r * CHUNKS_V + j]);
      }
      [[unroll]] for (int i = 0; i < STEPS; ++i) {
        vec2 items =
            vec2(CODE_FLOAT(v[of], 2 * i), CODE_FLOAT(v[of], 2 * i + 1));
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          uint at = (r * CHUNKS_V + j) * STEPS + i;
          acc[at] = fma(vec2(scaled[r]), items, acc[at]);
        }
      }
    }
  }
}

// Rescales the sums of row r by x.
void keep_values(uint r, float x) {
  [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
    ones[r * CHUNKS_V + j] *= x;
    biases[r * CHUNKS_V + j] *= x;
  }
}

void finish_values() {
  [[unroll]] for (uint n = 0; n < ROWS * CHUNKS_V; ++n) {
    [[unroll]] for (int i = 0; i < STEPS; ++i) {
      vec2 unit = vec2(CODE_UNIT(2 * i), CODE_UNIT(2 * i + 1));
      vec2 x = acc[n * STEPS + i] - ones[n];
      acc[n * STEPS + i] = fma(unit, x, vec2(biases[n]));
    }
  }
}

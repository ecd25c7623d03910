// variants: T=f16 COOPMAT=1 NATIVE_F16=1 SG=32 D=64,128 DV=128 MASK=0 CAUSAL=0,1 SINKS=0 LSE=0; T=bf16 COOPMAT=1 BF16_EXT=1 SG=32 D=80 DV=80 MASK=0,1,2 CAUSAL=0,1 SINKS=0,1 LSE=0; T=f16 COOPMAT=1 NATIVE_F16=1 SG=32 D=128 DV=128 MASK=0 CAUSAL=1 SINKS=0 LSE=1
//
// Tiled attention with cooperative matrices: 16-bit q, k, v with rows aligned
// to 16 bytes, head dims in multiples of 16 up to 128, subgroups of 32.
//
// Four subgroups take 16 query rows each and share tiles of 64 keys. q stays
// in registers as matrices. Per tile: scores go through the subgroup's corner
// of shared memory, where two lanes a row do the online softmax; weights come
// back as 16-bit matrices, and y's matrices are scaled by one that repeats the
// rows' factors. k and v share a buffer, the next one waits in registers.
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/mask.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

// Mirrors PrefillParams in ops/attention/params.h. Rows of y are laid out
// (batch, query, head).
#define ARGS                                                                  \
  T_PTR q; T_PTR k; T_PTR v; MASK_POINTER SINKS_POINTER T_PTR y; LSE_POINTER  \
  uint batches; uint heads; uint kv_heads; uint queries; uint keys;           \
  uint tiles; float scale; uint pad;                                          \
  int64_t q_batch; int64_t q_head; int64_t q_row;                             \
  int64_t k_batch; int64_t k_head; int64_t k_row;                             \
  int64_t v_batch; int64_t v_head; int64_t v_row;                             \
  int64_t m_batch; int64_t m_head; int64_t m_row; int64_t m_key;
#include "common/args.glsl"

#define WG (4 * SG)
layout(local_size_x = WG) in;

#define BQ 64
#define BK 64
#define PITCH_K (D / 8 + 1)
#define PITCH_V (DV / 8 + 1)
#define LOADS_K (D / 16)
#define LOADS_V (DV / 16)
#if D > DV
#define TILE (BK * PITCH_K)
#else
#define TILE (BK * PITCH_V)
#endif
#define S_PITCH 68 // floats a row of scores
#define P_PITCH 36 // uints a row of weights
#define S_CORNER (16 * S_PITCH)
#define P_CORNER (16 * P_PITCH)

shared uvec4 tile[TILE]; // q, then k and v by turns
shared float scores[4 * S_CORNER];
shared uint weights[4 * P_CORNER];

#define MATRIX_A coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_C                                                              \
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor

uint pack2(float a, float b) {
#ifdef T_IS_bf16
  return uint(f32_to_bf16(a)) | (uint(f32_to_bf16(b)) << 16);
#else
  return uint(f32_to_f16(a)) | (uint(f32_to_f16(b)) << 16);
#endif
}

// Sixteen bytes of row r, from item 8 * c on; zero from row `rows` on.
uvec4 fetch(uint64_t base, int64_t pitch, uint r, uint c, uint rows) {
  uvec4 x = uvec4(0);
  if (r < rows) {
    x = Ptr_u32x4(base + uint64_t((int64_t(r) * pitch + int64_t(c * 8)) * 2))
            .v[0];
  }
  return x;
}

void attend(uint group) {
  // Late tiles see the most keys under a causal mask: start them first.
  uint q_tile = A.tiles - 1 - group % A.tiles;
  uint rest = group / A.tiles;
  uint head = rest % A.heads;
  uint batch = rest / A.heads;
  uint kv_head = head / (A.heads / A.kv_heads);
  uint query0 = q_tile * BQ;
  uint t = gl_LocalInvocationIndex;
  uint sg = gl_SubgroupID;
  uint lane = gl_SubgroupInvocationID;
  uint row = lane / 2; // of the subgroup's sixteen
  uint half_row = lane % 2;
  uint query = query0 + sg * 16 + row;

  uint64_t q = uint64_t(A.q) +
      uint64_t((int64_t(batch) * A.q_batch + int64_t(head) * A.q_head) * 2);
  uint64_t k = uint64_t(A.k) +
      uint64_t((int64_t(batch) * A.k_batch + int64_t(kv_head) * A.k_head) * 2);
  uint64_t v = uint64_t(A.v) +
      uint64_t((int64_t(batch) * A.v_batch + int64_t(kv_head) * A.v_head) * 2);

  [[unroll]] for (uint i = 0; i < LOADS_K; ++i) {
    uint e = t + i * WG;
    tile[e / (D / 8) * PITCH_K + e % (D / 8)] =
        fetch(q, A.q_row, query0 + e / (D / 8), e % (D / 8), A.queries);
  }
  barrier();
  MATRIX_A qm[D / 16];
  [[unroll]] for (uint d = 0; d < D / 16; ++d) {
    coopMatLoad(qm[d], tile, sg * 16 * PITCH_K + d * 2, PITCH_K, ROW_MAJOR);
  }

  MATRIX_C acc[DV / 16];
  [[unroll]] for (uint j = 0; j < DV / 16; ++j) {
    acc[j] = MATRIX_C(0.0);
  }
  float row_max = ABSENT;
  float row_sum = 0.0;

  uint key_end = A.keys;
#if CAUSAL
  // Without enough keys the first rows see none, and average all.
  if (A.keys >= A.queries) {
    key_end = min(A.keys, query0 + BQ + (A.keys - A.queries));
  }
#endif

  uvec4 next_k[LOADS_K];
  [[unroll]] for (uint i = 0; i < LOADS_K; ++i) {
    uint e = t + i * WG;
    next_k[i] = fetch(k, A.k_row, e / (D / 8), e % (D / 8), key_end);
  }

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    barrier(); // q or v is no longer read
    [[unroll]] for (uint i = 0; i < LOADS_K; ++i) {
      uint e = t + i * WG;
      tile[e / (D / 8) * PITCH_K + e % (D / 8)] = next_k[i];
    }
    barrier();
    uvec4 next_v[LOADS_V];
    [[unroll]] for (uint i = 0; i < LOADS_V; ++i) {
      uint e = t + i * WG;
      next_v[i] =
          fetch(v, A.v_row, key0 + e / (DV / 8), e % (DV / 8), key_end);
    }

    [[unroll]] for (uint j = 0; j < BK / 16; ++j) {
      MATRIX_C s = MATRIX_C(0.0);
      [[unroll]] for (uint d = 0; d < D / 16; ++d) {
        MATRIX_B km;
        coopMatLoad(km, tile, j * 16 * PITCH_K + d * 2, PITCH_K, COLUMN_MAJOR);
        s = coopMatMulAdd(qm[d], km, s);
      }
      coopMatStore(s, scores, sg * S_CORNER + j * 16, S_PITCH, ROW_MAJOR);
    }
    barrier(); // scores are visible, k is no longer read

    [[unroll]] for (uint i = 0; i < LOADS_V; ++i) {
      uint e = t + i * WG;
      tile[e / (DV / 8) * PITCH_V + e % (DV / 8)] = next_v[i];
    }

    // Two lanes a row, 32 keys each, in pairs; rows start at different pairs
    // so that they hit different banks.
    uint s_row = sg * S_CORNER + row * S_PITCH + half_row * 32;
    float x[32];
    float m = row_max;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
      uint pair = (i + half_row + row / 8) % 16;
      [[unroll]] for (uint e = 0; e < 2; ++e) {
        uint key = key0 + half_row * 32 + pair * 2 + e;
        float s = scores[s_row + pair * 2 + e] * A.scale;
#if MASK
        if (query < A.queries && key < A.keys) {
          int64_t at = int64_t(batch) * A.m_batch + int64_t(head) * A.m_head +
              int64_t(query) * A.m_row + int64_t(key) * A.m_key;
          s = MASK_ITEM(s, at);
        }
#endif
#if CAUSAL
        if (key + A.queries > A.keys + query) {
          s = HIDDEN;
        }
#endif
        x[i * 2 + e] = key < A.keys ? s : ABSENT;
        m = max(m, x[i * 2 + e]);
      }
    }
    m = max(m, subgroupShuffleXor(m, 1));
    float total = 0.0;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
      uint pair = (i + half_row + row / 8) % 16;
      float a = exp2_diff(x[i * 2], m);
      float b = exp2_diff(x[i * 2 + 1], m);
      total += a + b;
      weights[sg * P_CORNER + row * P_PITCH + half_row * 16 + pair] =
          pack2(a, b);
    }
    total += subgroupShuffleXor(total, 1);
    float keep = exp2_diff(row_max, m);
    row_sum = row_sum * keep + total;
    row_max = m;
    subgroupBarrier(); // both lanes have read the row's scores
    // The factors as a matrix, over the scores just used.
    [[unroll]] for (uint e = 0; e < 8; ++e) {
      scores[sg * S_CORNER + row * 16 + half_row * 8 + e] = keep;
    }
    barrier(); // weights, factors and v are visible

    if (key0 + BK < key_end) {
      [[unroll]] for (uint i = 0; i < LOADS_K; ++i) {
        uint e = t + i * WG;
        next_k[i] =
            fetch(k, A.k_row, key0 + BK + e / (D / 8), e % (D / 8), key_end);
      }
    }
    MATRIX_C factors;
    coopMatLoad(factors, scores, sg * S_CORNER, 16, ROW_MAJOR);
    MATRIX_A pm[BK / 16];
    [[unroll]] for (uint i = 0; i < BK / 16; ++i) {
      coopMatLoad(pm[i], weights, sg * P_CORNER + i * 8, P_PITCH, ROW_MAJOR);
    }
    [[unroll]] for (uint j = 0; j < DV / 16; ++j) {
      acc[j] = acc[j] * factors;
      [[unroll]] for (uint i = 0; i < BK / 16; ++i) {
        MATRIX_B vm;
        coopMatLoad(vm, tile, i * 16 * PITCH_V + j * 2, PITCH_V, ROW_MAJOR);
        acc[j] = coopMatMulAdd(pm[i], vm, acc[j]);
      }
    }
  }

#if SINKS
  float sink = load(A.sinks, head) * LOG2E;
  float m = max(row_max, sink);
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + exp2(sink - m);
#else
  float m = row_max;
  float keep = 1.0;
#endif
#if LSE
  if (half_row == 0 && query < A.queries) {
    store(
        A.lse,
        (uint64_t(batch) * A.heads + head) * A.queries + query,
        natural_lse(m, row_sum));
  }
#endif
  float factor = row_sum == 0.0 ? 0.0 : keep / row_sum;
  uint64_t y = uint64_t(A.y) +
      ((uint64_t(batch) * A.queries + query) * A.heads + head) * (DV * 2);
  [[unroll]] for (uint j = 0; j < DV / 16; ++j) {
    barrier();
    coopMatStore(acc[j], scores, sg * S_CORNER, 16, ROW_MAJOR);
    barrier();
    uint at = sg * S_CORNER + row * 16 + half_row * 8;
    uvec4 packed;
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      packed[e] = pack2(
          scores[at + e * 2] * factor, scores[at + e * 2 + 1] * factor);
    }
    if (query < A.queries) {
      Ptr_u32x4(y + (j * 16 + half_row * 8) * 2).v[0] = packed;
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.tiles * A.heads * A.batches) {
    attend(group);
  }
}

// Tiled attention with cooperative matrices whose element layout is known from
// runtime/probe.cpp: scores stay in registers through the softmax and become
// weights of the second product there. Needs 16-bit q, k, v with rows aligned
// to 16 bytes, head dimensions in multiples of 16, and subgroups of 32.
//
// Each subgroup takes 16 * FM query rows and all share tiles of BK keys; q
// stays in registers. Follows FlashAttention-2 (Dao, 2023): k and v have
// separate buffers, and the other operand's next tile is prefetched into
// registers during each product.
#define BQ (16 * FM * SUBGROUPS)
#include "attention/prefill.glsl"

#define WG (SUBGROUPS * SG)
layout(local_size_x = WG) in;

#define PITCH_K (D / 8 + 1)
#define PITCH_V (DV / 8 + 1)
#define AT_V (BK * PITCH_K)
#define KV_ITEMS (BK * (PITCH_K + PITCH_V))
#define Q_ITEMS (BQ * PITCH_K)
#if Q_ITEMS > KV_ITEMS
#define ITEMS Q_ITEMS
#else
#define ITEMS KV_ITEMS
#endif
#define STAGED ITEMS // q, then k and v
#include "attention/products.glsl"
#include "attention/staging.glsl"

#define ND (D / 16)
#define NV (DV / 16)
#define NK (BK / 16)

MATRIX_C acc[FM * NV];
MATRIX_C s[FM * NK]; // scores, then weights
// Row sums cover the lane's own elements only.
float row_max[FM * LANE_ROWS], row_sum[FM * LANE_ROWS];

// s = q k^T.
#define SCORES(qm)                                                            \
  UNROLL for (uint d = 0; d < ND; ++d) {                                      \
    UNROLL for (uint j = 0; j < NK; ++j) {                                    \
      MATRIX_B km;                                                            \
      LOAD_B_TRANSPOSED(km, j * 16 * PITCH_K + d * 2, PITCH_K);               \
      UNROLL for (uint i = 0; i < FM; ++i) {                                  \
        MULTIPLY(s[i * NK + j], qm[i * ND + d], km, s[i * NK + j]);           \
      }                                                                       \
    }                                                                         \
  }

// Applies the masks to the scores and scales them to base 2.
void hide(Tile tile, uint query0, uint key0) {
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint j = 0; j < NK; ++j) {
      UNROLL for (uint e = 0; e < 8; ++e) {
        s[i * NK + j][e] = final_score(
            tile, query0 + i * 16 + FRAGMENT_ROW(e),
            key0 + j * 16 + FRAGMENT_COLUMN(e),
            s[i * NK + j][e] * A.scale);
      }
    }
  }
}

// Updates row_max and rescales sums and acc. `unit` (not negative) converts s
// to base 2. A row's maximum may lag by MOST_LAG, which bounds weights by its
// power of two without overflow of the sums, so that most tiles need no
// rescaling.
#define MOST_LAG 8.0
void raise_max(float unit) {
  float top[FM * LANE_ROWS];
  bool rises = false;
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint r = 0; r < LANE_ROWS; ++r) {
      float m = ABSENT;
      UNROLL for (uint j = 0; j < NK; ++j) {
        UNROLL for (uint e = 0; e < 8; ++e) {
          if (e / 4 == r) {
            m = max(m, s[i * NK + j][e]);
          }
        }
      }
      uint row = i * LANE_ROWS + r;
      top[row] = max(row_max[row], max_over_columns(m) * unit);
      rises = rises || top[row] > row_max[row] + MOST_LAG;
    }
  }
  if (subgroupAny(rises)) {
    UNROLL for (uint i = 0; i < FM; ++i) {
      float keep[LANE_ROWS];
      UNROLL for (uint r = 0; r < LANE_ROWS; ++r) {
        uint row = i * LANE_ROWS + r;
        keep[r] = exp2_diff(row_max[row], top[row]);
        row_sum[row] *= keep[r];
        row_max[row] = top[row];
      }
      UNROLL for (uint j = 0; j < NV; ++j) {
        UNROLL for (uint e = 0; e < 8; ++e) {
          acc[i * NV + j][e] *= keep[e / 4];
        }
      }
    }
  }
}

void make_weights(float unit) {
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint r = 0; r < LANE_ROWS; ++r) {
      // In a row where all keys are ABSENT any finite maximum gives zero
      // weights.
      float m = row_max[i * LANE_ROWS + r];
      m = m == ABSENT ? 0.0 : m;
      float total = 0.0;
      UNROLL for (uint j = 0; j < NK; ++j) {
        UNROLL for (uint e = 0; e < 8; ++e) {
          if (e / 4 == r) {
            float w = exp2(fma(s[i * NK + j][e], unit, -m));
            total += w;
            s[i * NK + j][e] = w;
          }
        }
      }
      row_sum[i * LANE_ROWS + r] += total;
    }
  }
}

void add_values() {
  UNROLL for (uint k = 0; k < NK; ++k) {
    MATRIX_A p[FM];
    UNROLL for (uint i = 0; i < FM; ++i) {
      UNROLL for (uint e = 0; e < 8; e += 2) { // if NaN, so is row_sum
        uint pair = PACK2_NUMBERS(s[i * NK + k][e], s[i * NK + k][e + 1]);
        SET_PAIR(p[i], e / 4, e % 4 / 2, pair)
      }
    }
    UNROLL for (uint j = 0; j < NV; ++j) {
      MATRIX_B vm;
      LOAD_B(vm, AT_V + k * 16 * PITCH_V + j * 2, PITCH_V);
      UNROLL for (uint i = 0; i < FM; ++i) {
        MULTIPLY(acc[i * NV + j], p[i], vm, acc[i * NV + j]);
      }
    }
  }
}

// Stores rows from i * 16 on of the subgroup.
void store_rows(Tile tile, uint query0, uint i) {
  UNROLL for (uint r = 0; r < LANE_ROWS; ++r) {
    uint query = query0 + i * 16 + FRAGMENT_ROW(ELEMENT(r, 0));
    float m = row_max[i * LANE_ROWS + r];
    float sum = sum_over_columns(row_sum[i * LANE_ROWS + r]);
    float keep = add_sink(tile.head, m, sum);
    if (query < A.queries) {
      if (LANE % 4 == 0) {
        store_lse(tile.batch, tile.head, query, m, sum);
      }
      float factor = sum == 0.0 ? 0.0 : keep / sum;
      uint64_t row =
          (uint64_t(tile.batch) * A.queries + query) * A.heads + tile.head;
      uint64_t y = uint64_t(A.y) + row * (DV * 2);
      UNROLL for (uint j = 0; j < NV; ++j) {
        UNROLL for (uint e = 0; e < 8; ++e) {
          if (e / 4 == r && e % 2 == 0) {
            Ptr_u32(y + (j * 16 + FRAGMENT_COLUMN(e)) * 2).v[0] = pack2(
                acc[i * NV + j][e] * factor,
                acc[i * NV + j][e + 1] * factor);
          }
        }
      }
    }
  }
}

void attend(Tile tile) {
  uint query0 = tile.query0 + SUBGROUP * (16 * FM);
  uint key_end = tile.key_end;
  T_PTR q = AT_HEAD(A.q, A.q_strides, tile.batch, tile.head);
  T_PTR k = AT_HEAD(A.k, A.k_strides, tile.batch, tile.kv_head);
  T_PTR v = AT_HEAD(A.v, A.v_strides, tile.batch, tile.kv_head);

  uvec4 next_q[PIECES(BQ, D)];
  FETCH_ROWS(next_q, BQ, D, q, A.q_strides.row, tile.query0, A.queries)
  STAGE_ROWS(next_q, BQ, D, 0)
  uvec4 next_k[PIECES(BK, D)];
  FETCH_ROWS(next_k, BK, D, k, A.k_strides.row, 0, key_end)
  barrier();
  MATRIX_A qm[FM * ND];
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint d = 0; d < ND; ++d) {
      uint r = (SUBGROUP * FM + i) * 16;
      LOAD_A(qm[i * ND + d], r * PITCH_K + d * 2, PITCH_K);
    }
  }
  barrier(); // q has been read
  STAGE_ROWS(next_k, BK, D, 0)

  UNROLL for (uint i = 0; i < FM * NV; ++i) {
    acc[i] = MATRIX_ZERO;
  }
  UNROLL for (uint i = 0; i < FM * LANE_ROWS; ++i) {
    row_max[i] = ABSENT;
    row_sum[i] = 0.0;
  }
  // End of the keys that any query of the subgroup sees, and of those that all
  // of its queries see.
  uint seen_end = query0 < A.queries ? key_end : 0;
  uint plain_end = MASK != 0 || A.scale < 0.0 ? 0 : A.keys;
#if CAUSAL
  // As in tile_of(); with fewer keys than queries the first rows see none.
  uint later = A.keys >= A.queries ? A.keys - A.queries : 0;
  if (A.keys >= A.queries) {
    seen_end = min(seen_end, query0 + 16 * FM + later);
  }
  plain_end =
      A.keys >= A.queries ? min(plain_end, query0 + 1 + later) : 0;
#endif

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    barrier(); // k is visible, the previous v is no longer read
    uvec4 next_v[PIECES(BK, DV)];
    FETCH_ROWS(next_v, BK, DV, v, A.v_strides.row, key0, key_end)
    bool live = EVERY_SUBGROUP(key0 < seen_end); // uniform in the subgroup
    if (live) {
      UNROLL for (uint i = 0; i < FM * NK; ++i) {
        s[i] = MATRIX_ZERO;
      }
      SCORES(qm)
    }
    STAGE_ROWS(next_v, BK, DV, AT_V)
    barrier(); // v is visible, k is no longer read
    FETCH_ROWS(next_k, BK, D, k, A.k_strides.row, key0 + BK, key_end)
    if (live) {
      float unit = A.scale;
      if (key0 + BK > plain_end) {
        hide(tile, query0, key0);
        unit = 1.0;
      }
      raise_max(unit);
      make_weights(unit);
      add_values();
    }
    STAGE_ROWS(next_k, BK, D, 0)
  }
  UNROLL for (uint i = 0; i < FM; ++i) {
    store_rows(tile, query0, i);
  }
}

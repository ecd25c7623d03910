// Common part of vjp_keys.comp and vjp_queries.comp: weights and score
// gradients as matrix elements in registers (products.glsl).
#pragma once

#include "common/types.glsl"
#include "attention/vjp_fragments.h"
#define ARGS_BLOCK GradientsArgs
#include "common/args.glsl"
#include "attention/mask.glsl"

#define WG (SUBGROUPS * SG)
layout(local_size_x = WG) in;

#define PITCH (D / 8 + 1)
#define ND (D / 16)

#include "common/constants.glsl"
#include "attention/products.glsl"
#include "attention/staging.glsl"

#if OF_KEYS
#define NS NQ
#else
#define NS NK
#endif
MATRIX_C s[NS]; // scores, then weights or gradients: 16 own rows by a tile's
MATRIX_C acc[ND];

// acc += s b, for the rows of b from `at` on.
void add_products(uint at) {
  UNROLL for (uint j = 0; j < NS; ++j) {
    MATRIX_A a;
    UNROLL for (uint e = 0; e < 8; e += 2) {
      SET_PAIR(a, e / 4, e % 4 / 2, pack2(s[j][e], s[j][e + 1]))
    }
    UNROLL for (uint d = 0; d < ND; ++d) {
      MATRIX_B b;
      LOAD_B(b, at + j * 16 * PITCH + d * 2, PITCH);
      MULTIPLY(acc[d], a, b, acc[d]);
    }
  }
}

// Upper bound of lse of a row without visible keys: HIDDEN dominates the
// logarithm of the number of keys.
#define HIDDEN_ROW (-1e38)

// Converts lse to base 2; finite values stay finite.
float in_base_2(float lse) {
  return lse != ABSENT && lse < HIDDEN_ROW ? -3e38 : lse * LOG2E;
}

// Copies of arguments; the originals are in memory and would be reread after
// each barrier.
float scale, scale_in_base_2, even_weight;
uint queries, keys;
void take_arguments() {
  scale = A.scale;
  scale_in_base_2 = scale * LOG2E;
  queries = A.queries;
  keys = A.keys;
  even_weight = 1.0 / float(keys);
}

float plain_weight(float s, float lse) {
  return exp2(fma(s, scale_in_base_2, -lse));
}

// The weight of a key. The sign bit is set if the key is masked, so that its
// score has no gradient.
float signed_weight(
    uint batch,
    uint head,
    uint query,
    uint key,
    float s,
    float lse) {
  bool outside = query >= queries || key >= keys;
  bool hidden = outside || (CAUSAL != 0 && key + queries > keys + query);
  float x = s * scale_in_base_2;
#if MASK
  query = min(query, queries - 1);
  key = min(key, keys - 1);
#if MASK == 1
  bool seen =
      load(A.mask, mask_offset(A.mask_strides, batch, head, query, key));
  hidden = hidden || !seen;
#else
  x = masked(x, batch, head, query, key);
#endif
#endif
  // Without branches, so that elements are computed in parallel.
  float p = exp2(x - lse);
  p = hidden ? 0.0 : p;
  p = lse < HIDDEN_ROW && lse != ABSENT ? even_weight : p;
  p = outside || lse == ABSENT ? 0.0 : p;
  uint bits = floatBitsToUint(p) & 0x7fffffffu;
  return uintBitsToFloat(hidden ? bits | 0x80000000u : bits);
}

bool has_gradient(float signed_p) {
  return floatBitsToInt(signed_p) >= 0;
}

// Stores acc as rows of a gradient from row0 on.
void store_gradient(uint64_t y, uint row0, uint rows) {
  UNROLL for (uint e = 0; e < 8; ++e) {
    uint row = row0 + FRAGMENT_ROW(e);
    if (e % 2 == 0 && row < rows) {
      uint64_t at = y + uint64_t(row) * (D * 2) + FRAGMENT_COLUMN(e) * 2;
      UNROLL for (uint d = 0; d < ND; ++d) {
        Ptr_u32(at + d * 32).v[0] = pack2(acc[d][e], acc[d][e + 1]);
      }
    }
  }
}

// What vjp_keys.comp and vjp_queries.comp share: weights and the gradients of
// scores as elements of matrices in registers, whose places runtime/probe.cpp has
// found, and those matrices; or the same made of floats in shared memory, for a
// test of the indices where the device has none (EMULATED).
#ifndef ATTENTION_VJP_FRAGMENTS_GLSL
#define ATTENTION_VJP_FRAGMENTS_GLSL

#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "attention/vjp_fragments.h"
#define ARGS_BLOCK GradientsArgs
#include "common/args.glsl"
#include "attention/mask.glsl"
#if EMULATED
#define UNROLL [[dont_unroll]] // compiles faster
#define LANE (gl_LocalInvocationIndex % SG)
#define SUBGROUP (gl_LocalInvocationIndex / SG)
#else
#define UNROLL [[unroll]]
#define SUBGROUP gl_SubgroupID
#endif
#include "attention/fragments.glsl"
#include "attention/staging.glsl"

#define WG (SUBGROUPS * SG)
layout(local_size_x = WG) in;

#define PITCH (D / 8 + 1)
#define ND (D / 16)
#define BIGGER(a, b) ((a) > (b) ? (a) : (b))

// Bits of an element's number that tell its row.
#define ROW_MASK (ROW_BIT(5) | ROW_BIT(6) << 1 | ROW_BIT(7) << 2)

#if EMULATED
#undef MATRIX_A
#undef MATRIX_B
#undef MATRIX_C
#define MATRIX_A float[8]
#define MATRIX_B float[8]
#define MATRIX_C float[8]
#define MATRIX_ZERO float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
#define LOAD_A(m, at) m = loaded(FRAGMENT_A, at, false)
#define LOAD_B(m, at) m = loaded(FRAGMENT_B, at, false)
#define LOAD_B_TRANSPOSED(m, at) m = loaded(FRAGMENT_B, at, true)
#define MULTIPLY(y, a, b, c) y = multiplied(a, b, c)
#ifdef T_IS_bf16
#define ITEM(x) round_bf16(x)
#else
#define ITEM(x) round_f16(x)
#endif
#else
#define MATRIX_ZERO MATRIX_C(0.0)
// From row `at` of the shared rows on, or from its item 8 on with at + 1.
#define LOAD_A(m, at) coopMatLoad(m, staged, at, PITCH, ROW_MAJOR)
#define LOAD_B(m, at) coopMatLoad(m, staged, at, PITCH, ROW_MAJOR)
#define LOAD_B_TRANSPOSED(m, at)                                              \
  coopMatLoad(m, staged, at, PITCH, COLUMN_MAJOR)
#define MULTIPLY(y, a, b, c) y = coopMatMulAdd(a, b, c)
#define ITEM(x) Item(x)
#endif

shared uvec4 staged[STAGED];
MATRIX_C acc[ND];

#if EMULATED
shared float emulated_a[SUBGROUPS * 256], emulated_b[SUBGROUPS * 256];

uint place_of(uint layout_, uint e) {
  uint item = 0;
  for (uint i = 0; i < 5; ++i) {
    item |= BIT(LANE, i) << PLACE(layout_, i);
  }
  for (uint i = 0; i < 3; ++i) {
    item |= BIT(e, i) << PLACE(layout_, 5 + i);
  }
  return item;
}
float[8] loaded(uint layout_, uint at, bool transposed) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint item = place_of(layout_, e);
    uint row = transposed ? item % 16 : item / 16;
    uint column = transposed ? item / 16 : item % 16;
    uint pair = staged[at + row * PITCH + column / 8][column % 8 / 2];
    uint bits = column % 2 == 0 ? pair & 0xffffu : pair >> 16;
#ifdef T_IS_bf16
    m[e] = bf16_to_f32(uint16_t(bits));
#else
    m[e] = f16_to_f32(uint16_t(bits));
#endif
  }
  return m;
}
float[8] multiplied(float[8] a, float[8] b, float[8] c) {
  uint corner = SUBGROUP * 256;
  barrier();
  for (uint e = 0; e < 8; ++e) {
    emulated_a[corner + place_of(FRAGMENT_A, e)] = a[e];
    emulated_b[corner + place_of(FRAGMENT_B, e)] = b[e];
  }
  barrier();
  for (uint e = 0; e < 8; ++e) {
    uint item = place_of(FRAGMENT_C, e);
    for (uint k = 0; k < 16; ++k) {
      c[e] += emulated_a[corner + item / 16 * 16 + k] *
          emulated_b[corner + k * 16 + item % 16];
    }
  }
  return c;
}
#endif

// Rows whose every key is hidden: their lse drowns the number of keys.
#define HIDDEN_ROW (-1e38)

// A row's lse in base 2; finite where it was.
float in_base_2(float lse) {
  return lse != ABSENT && lse < HIDDEN_ROW ? -3e38 : lse * LOG2E;
}

// The arguments lie in memory, and would be read again after each barrier.
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

// Where something may hide it, by the sign's bit: its score has no gradient then.
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
  // Without branches, so that elements do not wait for one another.
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

// The sums become a gradient's rows from row0 on.
void store_gradient(uint64_t y, uint row0, uint rows) {
  UNROLL for (uint e = 0; e < 8; ++e) {
    uint row = row0 + ROW(e);
    if ((e & PAIR) == 0 && row < rows) {
      uint64_t at = y + uint64_t(row) * (D * 2) + COLUMN(e) * 2;
      UNROLL for (uint d = 0; d < ND; ++d) {
        Ptr_u32(at + d * 32).v[0] = pack2(acc[d][e], acc[d][e | PAIR]);
      }
    }
  }
}

#endif

// RMS norm of x, one row of NORM items, bit-identical to norm.comp with
// NORM_LANES lanes. Every workgroup recomputes it; the first one stores it.
#include "common/rms.glsl"
#include "common/vec4.glsl"

#define NORMED_PACKS (NORM * T_SIZE / 16) // packs of 16 bytes
// Lanes read the packs of their chunk: one between chunks keeps them in different
// banks.
#define CHUNK_PACKS (CHUNK * T_SIZE / 16)
#define NORMED_AT(pack) ((pack) + (CHUNK_PACKS > 1 ? (pack) / CHUNK_PACKS : 0))
shared uvec4 normed_x[NORMED_AT(NORMED_PACKS)];
shared float square_sums[NORM_LANES / 4];

// Sum of squares of lane i of a team of norm.comp.
float squares_of_lane(T_PTR x, uint lane) {
  float total = 0.0;
  for (uint i = lane * 4; i < NORM; i += NORM_LANES * 4) {
    total = add_squares(total, load_vec4(x, i));
  }
  return total;
}

vec4 normed4(T_PTR x, uint i, float factor) {
  vec4 v = load_vec4(x, i) * factor;
  if (A.norm_weight != 0ul) {
    v = ROUND4_TO_T(v) * load_vec4(T_PTR(A.norm_weight), i);
  }
  return v;
}

void norm_row(bool stores) {
  T_PTR x = T_PTR(A.x);
  uint width = min(uint(NORM_LANES), gl_SubgroupSize);
  uint parts = NORM_LANES / width;
  for (uint p = gl_SubgroupID; p < parts; p += gl_NumSubgroups) {
    uint lane = p * width + gl_SubgroupInvocationID % width;
    float total = squares_of_lane(x, lane);
    for (uint mask = width >> 1; mask > 0; mask >>= 1) {
      total = total + subgroupShuffleXor(total, mask);
    }
    if (gl_SubgroupInvocationID == 0) {
      square_sums[p] = total;
    }
  }
  barrier();
  float total = square_sums[0];
  for (uint p = 1; p < parts; ++p) {
    total = total + square_sums[p];
  }
  float factor = rms_factor(total, A.inverse_n, A.eps);
  for (uint i = gl_LocalInvocationIndex; i < NORMED_PACKS; i += WG) {
#ifdef T_IS_f32
    uvec4 pack = floatBitsToUint(normed4(x, 4 * i, factor));
#else
    uvec4 pack = uvec4(
        pack4(normed4(x, 8 * i, factor)), pack4(normed4(x, 8 * i + 4, factor)));
#endif
    normed_x[NORMED_AT(i)] = pack;
    if (stores) {
      Ptr_u32x4(A.normed).v[i] = pack;
    }
  }
  barrier();
}

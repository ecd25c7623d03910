// qmv.comp with cooperative matrices, for one row of 16-bit x and four-bit
// integers.
//
// A workgroup computes BLOCK outputs, sixteen at a time. Its subgroups split k
// by groups of GROUP items and are summed at the end. Lanes unpack a group's
// weights into A matrices, two codes at once, as 16 + code, which is exact. All
// columns of the B matrix hold x, so that each lane finds the sums of its two
// rows in its own elements. A group's sum is scaled in float32; 16 times the
// sum of x is folded into the bias.
//
// Codes of the next TURNS groups are prefetched, across the boundary to the
// next sixteen outputs too; the first prefetch precedes the read of x, its norm
// (NORM) and its staging.
#include "quant/qmv_fragments.glsl"
#include "common/vec4.glsl"
#if NORM
#include "common/rms.glsl"
#endif

#define X_PACKS ((X_ITEMS / 8 + WG - 1) / WG) // 16-byte loads of x per lane

// x in pairs like the codes: items i and i + 4 of each eight. The pieces that
// the four quarters read together are adjacent.
shared uvec4 staged_x[X_ITEMS / 8];
shared float group_sums[X_ITEMS / GROUP];

float scale[2], bias[2]; // of group `quarter` of the current turns

void fetch_sides(uint group) {
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    scale[r] = load_scale(scale_base, side_rows[r] + group);
    bias[r] = load_bias(side_rows[r] + group);
  }
}

// Stages eight items of x, from item 8 * i on, and the sums of groups.
void stage(uint i, uvec4 p) {
  vec4 a = vec4(TWO_FLOATS(p.x), TWO_FLOATS(p.y));
  vec4 b = vec4(TWO_FLOATS(p.z), TWO_FLOATS(p.w));
  float sum = sum4(a) + sum4(b);
  [[unroll]] for (uint mask = 1; mask < GROUP / 8; mask *= 2) {
    sum += subgroupShuffleXor(sum, mask);
  }
  uint group = i / (GROUP / 8), place = i % (GROUP / 8);
  if (place == 0) {
    group_sums[group] = sum;
  }
  uint q = place / CHUNK_WORDS;
  staged_x[(group * CHUNK_WORDS + place % CHUNK_WORDS) * 4 + q] = pairs_of(p);
}

#if NORM
shared float square_sums[NORM_LANES / 4];

// Norm factor of the row, bit-identical to norm.comp (as in fused_norm.glsl).
float norm_factor(T_PTR x) {
  for (uint lane = gl_LocalInvocationIndex; lane < NORM_LANES; lane += WG) {
    vec4 v[(NORM + 4 * NORM_LANES - 1) / (4 * NORM_LANES)];
    [[unroll]] for (uint c = 0; c * NORM_LANES * 4 < NORM; ++c) {
      uint i = (c * NORM_LANES + lane) * 4;
      v[c] = load_vec4(x, min(i, NORM - 4));
    }
    float total = 0.0;
    [[unroll]] for (uint c = 0; c * NORM_LANES * 4 < NORM; ++c) {
      float more = add_squares(total, v[c]);
      total = (c * NORM_LANES + lane) * 4 < NORM ? more : total;
    }
    for (uint mask = SG / 2; mask > 0; mask >>= 1) {
      total = total + subgroupShuffleXor(total, mask);
    }
    if (gl_SubgroupInvocationID == 0) {
      square_sums[lane / SG] = total;
    }
  }
  barrier();
  float total = square_sums[0];
  for (uint p = 1; p < NORM_LANES / SG; ++p) {
    total = total + square_sums[p];
  }
  return rms_factor(total, A.inverse_n, A.eps);
}

vec4 normed4(uvec2 x, uvec2 weight, float factor) {
  vec4 v = UNPACK4(x) * factor;
  if (A.norm_weight != 0ul) {
    v = ROUND4_TO_T(v) * UNPACK4(weight);
  }
  return v;
}
#endif

// Reads and normalizes x and stages it in shared memory.
void stage_x() {
  uvec4 p[X_PACKS];
  Ptr_u32x4 x = Ptr_u32x4(uint64_t(x_base));
  uint end = A.K / 8;
  [[unroll]] for (uint j = 0; j < X_PACKS; ++j) {
    p[j] = x.v[min(j * WG + gl_LocalInvocationIndex, end - 1u)];
  }
#if NORM
  uvec4 weight[X_PACKS];
  if (A.norm_weight != 0ul) {
    [[unroll]] for (uint j = 0; j < X_PACKS; ++j) {
      weight[j] = Ptr_u32x4(A.norm_weight)
                      .v[min(j * WG + gl_LocalInvocationIndex, end - 1u)];
    }
  }
  float factor = norm_factor(x_base);
#endif
  [[unroll]] for (uint j = 0; j < X_PACKS; ++j) {
    uint i = j * WG + gl_LocalInvocationIndex;
    if (i < end) {
#if NORM
      p[j] = uvec4(
          pack4(normed4(p[j].xy, weight[j].xy, factor)),
          pack4(normed4(p[j].zw, weight[j].zw, factor)));
      if (group_index() == 0u) {
        Ptr_u32x4(A.normed).v[i] = p[j];
      }
#endif
      stage(i, p[j]);
    }
  }
  barrier();
}

// Sums of the group whose codes turn t holds, for both rows.
vec2 group_products(uint t, uint group, uint base) {
  uvec4 xs[2][CHUNK_WORDS];
  [[unroll]] for (uint i = 0; i < CHUNK_WORDS; ++i) {
    xs[0][i] = xs[1][i] = staged_x[(group * CHUNK_WORDS + i) * 4 + quarter];
  }
  MATRIX_C sums = MATRIX_C(0.0);
  [[unroll]] for (uint j = 0; j < STEPS; ++j) {
    MATRIX_A w;
    FILL_W(w, t, j, base)
    MATRIX_B x;
    FILL_X(x, xs, j)
    sums = coopMatMulAdd(w, x, sums);
  }
  return vec2(sums[0], sums[4]);
}

void main() {
  Tile tile = own_tile();
  locate(tile.product);
  take_share();
  aim(first_output(tile, 0));
  [[unroll]] for (uint t = 0; t < TURNS; ++t) {
    fetch_codes(t, real_group(first + t));
  }
  fetch_sides(real_group(first + quarter));
  uint base = code_base();
  stage_x();

  for (uint o = 0; o < BLOCK; o += 16) {
    float acc[2] = float[2](0.0, 0.0);
    for (uint c = 0; c < share; c += TURNS) {
      uint at = first + c;
      bool over = c + TURNS >= share;
      bool more = !over || o + 16 < BLOCK;
      uint next = over ? first : at + TURNS;
      if (over && more) {
        aim(first_output(tile, o + 16));
      }
      vec2 mine = vec2(0.0);
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        vec2 sums = group_products(t, real_group(at + t), base);
        mine = quarter == t ? sums : mine;
        if (more) {
          fetch_codes(t, real_group(next + t));
        }
      }
      if (quarter < TURNS && at + quarter < end) {
        float x_sum = group_sums[at + quarter];
        [[unroll]] for (uint r = 0; r < 2; ++r) {
          acc[r] += scale[r] * (mine[r] - 16.0 * x_sum) + bias[r] * x_sum;
        }
      }
      if (more) {
        fetch_sides(real_group(next + quarter));
      }
    }
    [[unroll]] for (uint r = 0; r < 2; ++r) {
      acc[r] += subgroupShuffleXor(acc[r], 1);
      acc[r] += subgroupShuffleXor(acc[r], 2);
      if (quarter == 0) {
        parts[o / 16 % 2][gl_SubgroupID][own_row + 8 * r] = acc[r];
      }
    }
    store_parts(tile, o);
  }
  finish(tile);
}

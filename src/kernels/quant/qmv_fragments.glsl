// Common part of qmv_matrix.glsl and qmv_matrix_rows.glsl: A matrices of 16
// rows of codes, unpacked in registers, and B matrices of x.
//
// The element layout is that of common/fragments.glsl: lane l holds the columns
// 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of rows l / 4 and l / 4 + 8, with q = l %
// 4.
#pragma once

#include "common/matrices.glsl"

#define SUBGROUPS (WG / SG)
#define CHUNK_WORDS (GROUP / 32) // words of codes per lane, row and group
#define STEPS (GROUP / 16) // matrices per group

#ifdef T_IS_bf16
#define CODE_AT 3
#define CODE_BASE 0x41804180u // 2^4, the offset of the codes
#define ITEM_PAIR(w) uintBitsToBFloat16EXT(unpack16(w))
#else
#define CODE_AT 6
#define CODE_BASE 0x4c004c00u
#define ITEM_PAIR(w) unpackFloat2x16(w)
#endif

shared float parts[2][SUBGROUPS][16 * ROWS]; // sums of the current outputs

uint own_row, quarter; // l / 4, l % 4
// Range of groups of k of this subgroup, out of `groups`; the last subgroups
// may have fewer than `share`.
uint groups, share, first, end;
uint64_t code_rows[2];
uint64_t side_rows[2]; // index of the first group
uint words[TURNS][2][CHUNK_WORDS];

void take_share() {
  own_row = gl_SubgroupInvocationID / 4;
  quarter = gl_SubgroupInvocationID % 4;
  groups = A.K / GROUP;
  share = (groups + SUBGROUPS - 1) / SUBGROUPS;
  first = gl_SubgroupID * share;
  end = min(first + share, groups);
}

// Groups beyond the last repeat it; their values are not used.
uint real_group(uint group) {
  return min(group, groups - 1u);
}

// CODE_BASE in a register: with two constants, NVIDIA's compiler needs two
// instructions for an AND-OR.
uint code_base() {
  return CODE_BASE | (A.K >> 31);
}

// Sums `parts` over the subgroups for the 16 outputs from o on, and stores
// them.
void store_parts(Tile tile, uint o) {
  barrier();
  uint i = gl_LocalInvocationIndex;
  if (i < 16 * ROWS) {
    float sum = 0.0;
    [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) {
      sum += parts[o / 16 % 2][s][i];
    }
    uint n0 = first_output(tile, o);
    store_y(tile.live, tile.m * ROWS + i % ROWS, n0 + i / ROWS, sum);
    if (o + 16 < BLOCK) {
      first_output(tile, o + 16);
    }
  }
}

// Computes the lane's row addresses for the outputs from n0 on.
void aim(uint n0) {
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    uint n = min(n0 + own_row + 8 * r, outputs() - 1u);
    code_rows[r] = uint64_t(code_row(n, A.K)) + quarter * (CHUNK_WORDS * 4);
    side_rows[r] = group_of(n, A.K, 0);
  }
}

void fetch_codes(uint t, uint group) {
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    uint64_t at = code_rows[r] + uint64_t(group * (GROUP / 2));
#if CHUNK_WORDS == 4
    uvec4 q = Ptr_u32x4(at).v[0];
    words[t][r][0] = q.x;
    words[t][r][1] = q.y;
    words[t][r][2] = q.z;
    words[t][r][3] = q.w;
#elif CHUNK_WORDS == 2
    uvec2 q = Ptr_u32x2(at).v[0];
    words[t][r][0] = q.x;
    words[t][r][1] = q.y;
#else
    words[t][r][0] = Ptr_u32(at).v[0];
#endif
  }
}

// Pairs items i and i + 4 of eight.
uvec4 pairs_of(uvec4 p) {
  return uvec4(
      (p.x & 0xffffu) | (p.z << 16),
      (p.x >> 16) | (p.z & 0xffff0000u),
      (p.y & 0xffffu) | (p.w << 16),
      (p.y >> 16) | (p.w & 0xffff0000u));
}

// Pairs codes i and i + 4 of a word as 16-bit floats.
uint code_pair(uint word, uint i, uint base) {
  uint at = 4 * i < CODE_AT ? word << ((CODE_AT - 4 * i) & 31)
                            : word >> ((4 * i - CODE_AT) & 31);
  return (at & (0x000f000fu << CODE_AT)) | base;
}

// Fills an A matrix with the codes of turn t for step j, as 16 + code.
#define FILL_W(w, t, j, base)                                                 \
  [[unroll]] for (uint r_ = 0; r_ < 2; ++r_) {                                \
    [[unroll]] for (uint h_ = 0; h_ < 2; ++h_) {                              \
      uint pair_ = code_pair(words[t][r_][(j) / 2], (j) % 2 * 2 + h_, base);  \
      w[4 * r_ + 2 * h_] = ITEM_PAIR(pair_).x;                                \
      w[4 * r_ + 2 * h_ + 1] = ITEM_PAIR(pair_).y;                            \
    }                                                                         \
  }
// Fills a B matrix with x of step j; xs[0] is for columns 0 to 7, xs[1] for 8
// to 15.
#define FILL_X(x, xs, j)                                                      \
  [[unroll]] for (uint r_ = 0; r_ < 2; ++r_) {                                \
    [[unroll]] for (uint h_ = 0; h_ < 2; ++h_) {                              \
      uint pair_ = xs[r_][(j) / 2][(j) % 2 * 2 + h_];                         \
      x[4 * r_ + 2 * h_] = ITEM_PAIR(pair_).x;                                \
      x[4 * r_ + 2 * h_ + 1] = ITEM_PAIR(pair_).y;                            \
    }                                                                         \
  }

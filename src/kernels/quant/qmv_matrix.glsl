// qmv.comp with cooperative matrices, for two to eight rows of 16-bit x and
// four-bit integers.
//
// A workgroup computes BLOCK outputs, sixteen at a time. Its subgroups split k
// by groups of GROUP items and are summed at the end. Lanes unpack a group's
// weights into A matrices, two codes at once, as 16 + code, which is exact. The
// columns of B are rows of x, whose sums are products with ones. A group's sum
// is scaled in float32; 16 times the sum of x is folded into the bias. Codes of
// the next TURNS groups are prefetched, across the boundary to the next sixteen
// outputs too.
//
// The element layout is that of common/fragments.glsl: lane l holds the columns
// 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of rows l / 4 and l / 4 + 8, with q = l %
// 4. In C, it holds rows l / 4 and l / 4 + 8 of w, and rows 2 q and 2 q + 1 of
// x.
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
void set_addresses(uint n0) {
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

float scale[TURNS][2], bias[TURNS][2];

void fetch_sides(uint t, uint group) {
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    scale[t][r] = load_scale(scale_base, side_rows[r] + group);
    bias[t][r] = load_bias(side_rows[r] + group);
  }
}

// The lane's x of a group, reread from memory for each output: rows stay in the
// L1 cache.
uint64_t own_x;
uvec4 x_of_turn[TURNS][CHUNK_WORDS];

void fetch_x(uint t, uint group) {
  uint64_t at = own_x + uint64_t((group * GROUP + quarter * (GROUP / 4)) * 2);
  [[unroll]] for (uint i = 0; i < CHUNK_WORDS; ++i) {
    x_of_turn[t][i] = Ptr_u32x4(at).v[i];
  }
}

// Adds the products of turn t's group to the sums of both rows of w and of x.
void add_group(uint t, uint base, bool live, inout vec2 acc[2]) {
  MATRIX_C sums = MATRIX_C(0.0), alone = MATRIX_C(0.0);
  MATRIX_A ones = MATRIX_A(Item(1.0));
  uvec4 xs[2][CHUNK_WORDS];
  [[unroll]] for (uint i = 0; i < CHUNK_WORDS; ++i) {
    xs[0][i] = xs[1][i] = pairs_of(x_of_turn[t][i]);
  }
  [[unroll]] for (uint j = 0; j < STEPS; ++j) {
    MATRIX_A w;
    FILL_W(w, t, j, base)
    MATRIX_B x;
    FILL_X(x, xs, j)
    sums = coopMatMulAdd(w, x, sums);
    alone = coopMatMulAdd(ones, x, alone);
  }
  vec2 x_sums = vec2(alone[0], alone[1]);
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    vec2 y = vec2(sums[4 * r], sums[4 * r + 1]);
    vec2 more = scale[t][r] * (y - 16.0 * x_sums) + bias[t][r] * x_sums;
    acc[r] += live ? more : vec2(0.0);
  }
}

void main() {
  Tile tile = own_tile();
  locate(tile.product);
  take_share();
  own_x = uint64_t(x_row(min(tile.m * ROWS + own_row % ROWS, A.M - 1u)));
  set_addresses(first_output(tile, 0));
  [[unroll]] for (uint t = 0; t < TURNS; ++t) {
    fetch_codes(t, real_group(first + t));
    fetch_sides(t, real_group(first + t));
  }
  uint base = IN_REGISTER(CODE_BASE, A.K);

  for (uint o = 0; o < BLOCK; o += 16) {
    vec2 acc[2] = vec2[2](vec2(0.0), vec2(0.0));
    for (uint c = 0; c < share; c += TURNS) {
      uint at = first + c;
      bool over = c + TURNS >= share;
      bool more = !over || o + 16 < BLOCK;
      uint next = over ? first : at + TURNS;
      if (over && more) {
        set_addresses(first_output(tile, o + 16));
      }
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        fetch_x(t, real_group(at + t));
      }
      [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        add_group(t, base, at + t < end, acc);
        if (more) {
          fetch_codes(t, real_group(next + t));
          fetch_sides(t, real_group(next + t));
        }
      }
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      uint m = 2 * quarter + i % 2, r = i / 2;
      if (m < ROWS) {
        parts[o / 16 % 2][gl_SubgroupID][(own_row + 8 * r) * ROWS + m] =
            acc[r][i % 2];
      }
    }
    store_parts(tile, o);
  }
  finish(tile);
}

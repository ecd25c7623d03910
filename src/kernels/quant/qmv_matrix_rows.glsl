// qmv.comp with cooperative matrices, for two to eight rows of 16-bit x and
// four-bit integers. Differs from qmv_matrix.glsl in that the columns of B are
// rows of x, read directly from memory, and the sums of x are products with
// ones.
//
// In C, a lane holds rows l / 4 and l / 4 + 8 of w, and rows 2 q and 2 q + 1 of
// x.
#include "quant/qmv_fragments.glsl"

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
  aim(first_output(tile, 0));
  [[unroll]] for (uint t = 0; t < TURNS; ++t) {
    fetch_codes(t, real_group(first + t));
    fetch_sides(t, real_group(first + t));
  }
  uint base = code_base();

  for (uint o = 0; o < BLOCK; o += 16) {
    vec2 acc[2] = vec2[2](vec2(0.0), vec2(0.0));
    for (uint c = 0; c < share; c += TURNS) {
      uint at = first + c;
      bool over = c + TURNS >= share;
      bool more = !over || o + 16 < BLOCK;
      uint next = over ? first : at + TURNS;
      if (over && more) {
        aim(first_output(tile, o + 16));
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

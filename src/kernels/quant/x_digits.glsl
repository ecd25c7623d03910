// x of one row as integers in shared memory, for products with four-bit codes
// by integer dot products (qmv.comp with INT_DOT).
//
// The 32 items of a chunk become multiples of 2^e, rounded to nearest even,
// with e such that the largest has 22 bits, so that an item changes by at most
// 2^-22 of the largest. A multiple has three signed digits in base 256. Dot
// products of digits and codes are exact; their sums are scaled in float32. A
// chunk with NaN or Inf has the scale NaN. e is at least -126.
#pragma once

#define DIGITS 3
#define CHUNKS (ROW_ITEMS / CHUNK)

// A digit of 16 items, the lowest digit first: of items 0, 2, 4, 6 of eight in
// one word and of 1, 3, 5, 7 in the next, like four-bit codes and the same
// shifted by four.
shared uvec4 x_digits[DIGITS][2][CHUNKS];
shared vec2 x_sides[CHUNKS]; // 2^e, sum of the multiples

// Digit d of every other item of eight, to all of which 128 was added.
uint digit_word(uint v[16], int i, int d) {
  uint low = bitfieldInsert(
      bitfieldExtract(v[i], 8 * d, 8), v[i + 2] >> (8 * d), 8, 8);
  uint high = bitfieldInsert(
      bitfieldExtract(v[i + 4], 8 * d, 8), v[i + 6] >> (8 * d), 8, 8);
  return bitfieldInsert(low, high, 16, 16) ^ 0x80808080u;
}

// Converts 16 items of x, half of a chunk; a neighbor converts the others.
void stage_half_chunk(T_PTR row, uint i) {
  vec2 x[8];
  uint largest = 0u;
  [[unroll]] for (uint j = 0; j < 8; ++j) {
    x[j] = PAIR(X_PACK(row, 16u * i, j / 4)[j % 4]);
    uvec2 sizes = floatBitsToUint(x[j]) & 0x7fffffffu;
    largest = max(largest, max(sizes.x, sizes.y));
  }
  largest = max(largest, subgroupShuffleXor(largest, 1u));
  uint exponent = max(largest >> 23, 22u);
  float factor = uintBitsToFloat((275u - exponent) << 23);
  uint v[16];
  int sum = 0;
  [[unroll]] for (uint j = 0; j < 16; ++j) {
    // Adding 1.5 * 2^23 leaves the rounded multiple in the mantissa.
    float sized = x[j / 2][j % 2] * factor + 12582912.0;
    int item = floatBitsToInt(sized) - 0x4b400000;
    sum += item;
    v[j] = uint(item) + 0x808080u;
  }
  sum += subgroupShuffleXor(sum, 1u);
  uint c = i / 2u;
  [[unroll]] for (int d = 0; d < DIGITS; ++d) {
    x_digits[d][i % 2u][c] = uvec4(
        digit_word(v, 0, d),
        digit_word(v, 1, d),
        digit_word(v, 8, d),
        digit_word(v, 9, d));
  }
  if (i % 2u == 0u) {
    uint unit = largest < 0x7f800000u ? (exponent - 21u) << 23 : 0x7fc00000u;
    x_sides[c] = vec2(uintBitsToFloat(unit), float(sum));
  }
}

void stage_x(T_PTR row) {
  for (uint i = gl_LocalInvocationIndex; i < ROW_ITEMS / 16u; i += WG) {
    stage_half_chunk(row, i);
  }
  barrier();
}

// Adds the products of chunk c to the sums of OUTS rows.
void add_chunk(
    uint words[OUTS][WORDS], float scale[OUTS], float bias[OUTS], uint c) {
  int sums[OUTS][DIGITS];
  [[unroll]] for (uint d = 0; d < DIGITS; ++d) {
    uvec4 x[2] = uvec4[2](x_digits[d][0][c], x_digits[d][1][c]);
    [[unroll]] for (uint r = 0; r < OUTS; ++r) {
      int sum = 0;
      [[unroll]] for (uint i = 0; i < WORDS; ++i) {
        uvec2 codes = uvec2(words[r][i], words[r][i] >> 4) & 0x0f0f0f0fu;
        uint at = i % 2 * 2;
        sum += dotPacked4x8EXT(int(codes.x), int(x[i / 2][at]));
        sum += dotPacked4x8EXT(int(codes.y), int(x[i / 2][at + 1]));
      }
      sums[r][d] = sum;
    }
  }
  vec2 side = x_sides[c];
  [[unroll]] for (uint r = 0; r < OUTS; ++r) {
    float sum = float(sums[r][2] * 256 + sums[r][1]) * 256.0;
    sum += float(sums[r][0]);
    acc[r][0] += side.x * (scale[r] * sum + bias[r] * side.y);
  }
}

// Quotients of 64-bit integers by 32-bit words. With a 64-bit division in a
// kernel, NVIDIA's compiler (driver 580) gets its other integers wrong: bits
// tested or multiplied after `& 1`, shifts by more than 31, bytes that wrap.
#pragma once

// Quotient of high * 2^32 + low and y, for high < y, in two 16-bit digits
// (Knuth, The Art of Computer Programming, vol. 2, 4.3.1, algorithm D).
uint quotient_of_words(uint high, uint low, uint y) {
  int shift = 31 - findMSB(y);
  y <<= shift;
  uint rest = shift == 0 ? high : (high << shift) | (low >> (32 - shift));
  low <<= shift;
  uint y1 = y >> 16, y0 = y & 0xffffu, result = 0u;
  for (uint i = 0u; i < 2u; ++i) {
    uint next = i == 0u ? low >> 16 : low & 0xffffu;
    uint digit = rest / y1, left = rest - digit * y1;
    // An estimate of a digit is too large by two at most.
    for (uint j = 0u; j < 2u; ++j) {
      bool large = left < 0x10000u &&
          (digit > 0xffffu || digit * y0 > (left << 16 | next));
      digit -= large ? 1u : 0u;
      left += large ? y1 : 0u;
    }
    rest = (rest << 16 | next) - digit * y;
    result = result << 16 | digit;
  }
  return result;
}

// Division by zero gives any number.
uint64_t quotient(uint64_t x, uint64_t y) {
  uvec2 a = unpackUint2x32(x), b = unpackUint2x32(y);
  if (b.y == 0u) {
    uint high = a.y / b.x;
    uint low = a.y == 0u ? a.x / b.x
                         : quotient_of_words(a.y - high * b.x, a.x, b.x);
    return packUint2x32(uvec2(low, high));
  }
  // x / 2 by the upper word of y, shifted up to its highest bit, is one too
  // large at most (Warren, Hacker's Delight, 9-5).
  int shift = 31 - findMSB(b.y);
  uint top = shift == 0 ? b.y : (b.y << shift) | (b.x >> (32 - shift));
  uint q = quotient_of_words(a.y >> 1, a.y << 31 | a.x >> 1, top) >> (31 - shift);
  q -= q == 0u ? 0u : 1u;
  uvec2 rest = unpackUint2x32(x - uint64_t(q) * y);
  bool more = rest.y > b.y || (rest.y == b.y && rest.x >= b.x);
  return packUint2x32(uvec2(more ? q + 1u : q, 0u));
}

// Rounds towards zero.
int64_t quotient(int64_t x, int64_t y) {
  bool negative = (unpackInt2x32(x).y ^ unpackInt2x32(y).y) < 0;
  uint64_t a = uint64_t(unpackInt2x32(x).y < 0 ? -x : x);
  uint64_t b = uint64_t(unpackInt2x32(y).y < 0 ? -y : y);
  int64_t q = int64_t(quotient(a, b));
  return negative ? -q : q;
}

#define NARROW_(T) T quotient(T x, T y) { return T(x / y); }
NARROW_(int)
NARROW_(uint)
NARROW_(int8_t)
NARROW_(uint8_t)
NARROW_(int16_t)
NARROW_(uint16_t)

// Threefry-2x32 in counter mode (Salmon et al., Parallel Random Numbers: As
// Easy as 1, 2, 3, 2011). Invocation i makes words i and i + ceil(W / 2) of a
// key's W words and uses these two indices as the counter. Without WORDS, a
// key's bytes are not a multiple of 4 and are stored singly.
#include "common/index.glsl"
#include "common/dense.h"
#include "common/types.glsl"
#include "random.h"
#define ARGS_BLOCK RandomArgs
#include "common/args.glsl"

layout(local_size_x = DENSE_GROUP) in;

uint rotate_left(uint x, uint r) {
  return (x << r) | (x >> (32u - r));
}

#define MIX(R)                                                                \
  x += y;                                                                     \
  y = rotate_left(y, R) ^ x;
#define ROUNDS_A MIX(13u) MIX(15u) MIX(26u) MIX(6u)
#define ROUNDS_B MIX(17u) MIX(29u) MIX(16u) MIX(24u)
#define INJECT(KX, KY, N)                                                     \
  x += KX;                                                                    \
  y += KY + N;

uvec2 threefry(uint k0, uint k1, uint x, uint y) {
  uint k2 = k0 ^ k1 ^ 0x1bd11bdau;
  INJECT(k0, k1, 0u)
  ROUNDS_A INJECT(k1, k2, 1u)
  ROUNDS_B INJECT(k2, k0, 2u)
  ROUNDS_A INJECT(k0, k1, 3u)
  ROUNDS_B INJECT(k1, k2, 4u)
  ROUNDS_A INJECT(k2, k0, 5u)
  return uvec2(x, y);
}

void put(UIndex key, UIndex word, uint bits) {
#if WORDS
  store(Ptr_u32(A.y), key * UIndex(A.bytes_per_key >> 2) + word, bits);
#else
  UIndex bytes = UIndex(A.bytes_per_key);
  UIndex first = word * UIndex(4u);
  for (uint b = 0u; b < 4u; ++b) {
    if (first + UIndex(b) < bytes) {
      store(
          A.y,
          key * bytes + first + UIndex(b),
          uint8_t((bits >> (8u * b)) & 255u));
    }
  }
#endif
}

void main() {
  UIndex pairs = UIndex(A.pairs_per_key);
  UIndex total = UIndex(A.num_keys) * pairs;
  UIndex stride = dense_stride(total);
  for (UIndex t = flat_index(); t < total; t += stride) {
    UIndex key = t / pairs;
    UIndex i = t - key * pairs;
    // With an odd number of words, the last pair has one word and counter 0.
    bool single = A.odd != 0u && i + UIndex(1u) == pairs;
    uint k0 = load(A.keys, key * UIndex(2u));
    uint k1 = load(A.keys, key * UIndex(2u) + UIndex(1u));
    uvec2 r = threefry(k0, k1, uint(i), single ? 0u : uint(i + pairs));
    put(key, i, r.x);
    if (!single) {
      put(key, i + pairs, r.y);
    }
  }
}

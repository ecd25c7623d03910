// Values <-> storage bits: FROM_BITS(P_PTR)(bits), TO_BITS(P_PTR)(value), the
// bits in the low bytes of a uvec2; and packs of four items moved with the
// widest aligned access.
#ifndef BITS_GLSL
#define BITS_GLSL

#include "common/types.glsl"

#define BITS(PTR, VALUE, FROM, TO)                                            \
  VALUE from_bits_##PTR(uvec2 b) { return FROM; }                             \
  uvec2 to_bits_##PTR(VALUE v) { return TO; }
#define BITS_PASTE_(a, b) a##b
#define BITS_PASTE(a, b) BITS_PASTE_(a, b)
#define FROM_BITS(PTR) BITS_PASTE(from_bits_, PTR)
#define TO_BITS(PTR) BITS_PASTE(to_bits_, PTR)

BITS(Ptr_bool, bool, (b.x & 0xffu) != 0u, uvec2(v ? 1u : 0u, 0u))
BITS(Ptr_u8, uint8_t, uint8_t(b.x), uvec2(uint(v), 0u))
BITS(Ptr_i8, int8_t, int8_t(b.x), uvec2(uint(v) & 0xffu, 0u))
BITS(Ptr_u16, uint16_t, uint16_t(b.x), uvec2(uint(v), 0u))
BITS(Ptr_i16, int16_t, int16_t(b.x), uvec2(uint(v) & 0xffffu, 0u))
BITS(Ptr_u32, uint, b.x, uvec2(v, 0u))
BITS(Ptr_i32, int, int(b.x), uvec2(uint(v), 0u))
BITS(Ptr_u64, uint64_t, packUint2x32(b), unpackUint2x32(v))
BITS(Ptr_i64, int64_t, int64_t(packUint2x32(b)), unpackUint2x32(uint64_t(v)))
BITS(Ptr_f16, float, f16_to_f32(uint16_t(b.x)), uvec2(uint(f32_to_f16(v)), 0u))
BITS(
    Ptr_bf16,
    float,
    bf16_to_f32(uint16_t(b.x)),
    uvec2(uint(f32_to_bf16(v)), 0u))
BITS(Ptr_f32, float, uintBitsToFloat(b.x), uvec2(floatBitsToUint(v), 0u))
BITS(Ptr_c64, vec2, uintBitsToFloat(b), floatBitsToUint(v))

// Item k of four in their `size` words, and back.
uvec2 pack_get(uint raw[8], uint size, uint k) {
  if (size == 1) {
    return uvec2((raw[0] >> (8 * k)) & 0xffu, 0u);
  } else if (size == 2) {
    return uvec2((raw[k / 2] >> (16 * (k & 1))) & 0xffffu, 0u);
  } else if (size == 4) {
    return uvec2(raw[k], 0u);
  }
  return uvec2(raw[2 * k], raw[2 * k + 1]);
}
void pack_set(inout uint raw[8], uint size, uint k, uvec2 b) {
  if (size == 1) {
    raw[0] |= b.x << (8 * k);
  } else if (size == 2) {
    raw[k / 2] |= b.x << (16 * (k & 1));
  } else if (size == 4) {
    raw[k] = b.x;
  } else {
    raw[2 * k] = b.x;
    raw[2 * k + 1] = b.y;
  }
}
// The pack's words from an address aligned to min(4 * size, 16).
void pack_load(uint64_t address, uint size, out uint raw[8]) {
  for (uint k = 0; k < 8; ++k) {
    raw[k] = 0u;
  }
  if (size == 1) {
    raw[0] = Ptr_u32(address).v[0];
  } else if (size == 2) {
    uvec2 a = Ptr_u32x2(address).v[0];
    raw[0] = a.x;
    raw[1] = a.y;
  } else {
    uvec4 a = Ptr_u32x4(address).v[0];
    raw[0] = a.x;
    raw[1] = a.y;
    raw[2] = a.z;
    raw[3] = a.w;
    if (size == 8) {
      uvec4 b = Ptr_u32x4(address).v[1];
      raw[4] = b.x;
      raw[5] = b.y;
      raw[6] = b.z;
      raw[7] = b.w;
    }
  }
}
void pack_store(uint64_t address, uint size, uint raw[8]) {
  if (size == 1) {
    Ptr_u32(address).v[0] = raw[0];
  } else if (size == 2) {
    Ptr_u32x2(address).v[0] = uvec2(raw[0], raw[1]);
  } else {
    Ptr_u32x4(address).v[0] = uvec4(raw[0], raw[1], raw[2], raw[3]);
    if (size == 8) {
      Ptr_u32x4(address).v[1] = uvec4(raw[4], raw[5], raw[6], raw[7]);
    }
  }
}

#endif

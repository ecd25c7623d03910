// Storage types, value types, and the only way kernels touch memory.
//
// A dtype d has a pointer type Ptr_d (a buffer reference with the item's own
// alignment: MLX promises no more) and a value type. Kernels see the names
// that the host defines for each type parameter P of a variant:
//   P        value type: bool, int8_t .. uint64_t, float (f16, bf16, f32), vec2
//   P_PTR    pointer type
//   P_CAST   any value -> P (without rounding to storage; store() rounds)
//   P_SIZE   bytes an item; P_KIND one of the KIND_ values below
// load(p, i) and store(p, i, v) take an index of any integer type, relative to
// p; the arithmetic of an index itself is 64-bit in a kernel's large variants.
#ifndef TYPES_GLSL
#define TYPES_GLSL

#define KIND_BOOL 0
#define KIND_UINT 1
#define KIND_INT 2
#define KIND_FLOAT 3
#define KIND_COMPLEX 4

const float NAN_F = uintBitsToFloat(0x7fc00000u);
const float INF_F = uintBitsToFloat(0x7f800000u);

#include "common/convert.glsl"

// REF declares one buffer reference type holding a single item; load() and
// store() move the address. glslang cannot overload functions on reference
// types, so the types that share their storage hold different structs.
#define REF(NAME, STORAGE, ALIGN)                                             \
  layout(buffer_reference, scalar, buffer_reference_align = ALIGN)            \
      buffer NAME {                                                           \
    STORAGE v[1];                                                             \
  }
#define REF_MANY(NAME, STORAGE, ALIGN)                                        \
  layout(buffer_reference, scalar, buffer_reference_align = ALIGN)            \
      buffer NAME {                                                           \
    STORAGE v[];                                                              \
  }

struct Bits_bool {
  uint8_t bits;
};
struct Bits_f16 {
  uint16_t bits;
};
struct Bits_bf16 {
  uint16_t bits;
};

REF(Ptr_bool, Bits_bool, 1);
REF(Ptr_u8, uint8_t, 1);
REF(Ptr_i8, int8_t, 1);
REF(Ptr_u16, uint16_t, 2);
REF(Ptr_i16, int16_t, 2);
REF(Ptr_u32, uint32_t, 4);
REF(Ptr_i32, int32_t, 4);
REF(Ptr_u64, uint64_t, 8);
REF(Ptr_i64, int64_t, 8);
REF(Ptr_f16, Bits_f16, 2);
REF(Ptr_bf16, Bits_bf16, 2);
REF(Ptr_f32, float, 4);
REF(Ptr_c64, vec2, 8);

// Wider accesses, by .v[i]; the host checks base and strides before choosing
// them.
REF_MANY(Ptr_u32x2, uvec2, 8);
REF_MANY(Ptr_u32x4, uvec4, 16);
REF_MANY(Ptr_f32x4, vec4, 16);

// MOVED(P, p, n): the pointer p of type P_PTR moved by n items, n of any integer
// type. glslang's own `reference + n` with n of 64 bits would make a conversion
// of 64 bits to 64, which is no valid SPIR-V.
#define MOVED(P, p, n) P##_PTR(uint64_t(p) + uint64_t(int64_t(n) * P##_SIZE))

// Any index as the one integer type that reference arithmetic gets right.
uint64_t item_index(uint i) {
  return uint64_t(i);
}
uint64_t item_index(int i) {
  return uint64_t(int64_t(i));
}
uint64_t item_index(uint64_t i) {
  return i;
}
uint64_t item_index(int64_t i) {
  return uint64_t(i);
}

#define load(p, i) decode_(((p) + item_index(i)).v[0])
#define store(p, i, x) encode_(((p) + item_index(i)).v[0], x)

#define PLAIN_ITEM(TYPE)                                                      \
  TYPE decode_(TYPE x) {                                                      \
    return x;                                                                 \
  }                                                                           \
  void encode_(out TYPE item, TYPE x) {                                       \
    item = x;                                                                 \
  }
PLAIN_ITEM(uint8_t)
PLAIN_ITEM(int8_t)
PLAIN_ITEM(uint16_t)
PLAIN_ITEM(int16_t)
PLAIN_ITEM(uint32_t)
PLAIN_ITEM(int32_t)
PLAIN_ITEM(uint64_t)
PLAIN_ITEM(int64_t)
PLAIN_ITEM(float)
PLAIN_ITEM(vec2)

bool decode_(Bits_bool x) {
  return uint(x.bits) != 0u;
}
void encode_(out Bits_bool item, bool x) {
  item.bits = uint8_t(x ? 1u : 0u);
}
float decode_(Bits_f16 x) {
  return f16_to_f32(x.bits);
}
void encode_(out Bits_f16 item, float x) {
  item.bits = f32_to_f16(x);
}
float decode_(Bits_bf16 x) {
  return bf16_to_f32(x.bits);
}
void encode_(out Bits_bf16 item, float x) {
  item.bits = f32_to_bf16(x);
}

// Values -> values, as MLX's astype does: complex drops the imaginary part,
// bool is "not zero".
#define CAST_TO(NAME, VALUE)                                                  \
  VALUE NAME(bool x) { return VALUE(x); }                                     \
  VALUE NAME(uint8_t x) { return VALUE(x); }                                  \
  VALUE NAME(int8_t x) { return VALUE(x); }                                   \
  VALUE NAME(uint16_t x) { return VALUE(x); }                                 \
  VALUE NAME(int16_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint32_t x) { return VALUE(x); }                                 \
  VALUE NAME(int32_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint64_t x) { return VALUE(x); }                                 \
  VALUE NAME(int64_t x) { return VALUE(x); }                                  \
  VALUE NAME(float x) { return VALUE(x); }                                    \
  VALUE NAME(vec2 x) { return VALUE(x.x); }

bool to_bool(bool x) { return x; }
bool to_bool(uint8_t x) { return uint(x) != 0u; }
bool to_bool(int8_t x) { return int(x) != 0; }
bool to_bool(uint16_t x) { return uint(x) != 0u; }
bool to_bool(int16_t x) { return int(x) != 0; }
bool to_bool(uint32_t x) { return x != 0u; }
bool to_bool(int32_t x) { return x != 0; }
bool to_bool(uint64_t x) { return x != 0ul; }
bool to_bool(int64_t x) { return x != 0l; }
// By bits: a device that flushes subnormals must not lose a true.
bool to_bool(float x) { return (floatBitsToUint(x) & 0x7fffffffu) != 0u; }
bool to_bool(vec2 x) { return to_bool(x.x) || to_bool(x.y); }

CAST_TO(to_i8, int8_t)
CAST_TO(to_i16, int16_t)
CAST_TO(to_i32, int32_t)
CAST_TO(to_i64, int64_t)
CAST_TO(to_f32, float)

// A negative float cast to an unsigned type wraps as it does on the CPU:
// through the signed 64-bit integer.
#define CAST_TO_UNSIGNED(NAME, VALUE)                                         \
  VALUE NAME(bool x) { return VALUE(x); }                                     \
  VALUE NAME(uint8_t x) { return VALUE(x); }                                  \
  VALUE NAME(int8_t x) { return VALUE(x); }                                   \
  VALUE NAME(uint16_t x) { return VALUE(x); }                                 \
  VALUE NAME(int16_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint32_t x) { return VALUE(x); }                                 \
  VALUE NAME(int32_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint64_t x) { return VALUE(x); }                                 \
  VALUE NAME(int64_t x) { return VALUE(x); }                                  \
  VALUE NAME(float x) {                                                       \
    return x < 0.0 ? VALUE(int64_t(x)) : VALUE(uint64_t(x));                  \
  }                                                                           \
  VALUE NAME(vec2 x) { return NAME(x.x); }

CAST_TO_UNSIGNED(to_u8, uint8_t)
CAST_TO_UNSIGNED(to_u16, uint16_t)
CAST_TO_UNSIGNED(to_u32, uint32_t)
CAST_TO_UNSIGNED(to_u64, uint64_t)

#define to_f16 to_f32
#define to_bf16 to_f32
#define CAST_TO_COMPLEX(VALUE)                                                \
  vec2 to_c64(VALUE x) { return vec2(float(x), 0.0); }
CAST_TO_COMPLEX(bool)
CAST_TO_COMPLEX(uint8_t)
CAST_TO_COMPLEX(int8_t)
CAST_TO_COMPLEX(uint16_t)
CAST_TO_COMPLEX(int16_t)
CAST_TO_COMPLEX(uint32_t)
CAST_TO_COMPLEX(int32_t)
CAST_TO_COMPLEX(uint64_t)
CAST_TO_COMPLEX(int64_t)
CAST_TO_COMPLEX(float)
vec2 to_c64(vec2 x) {
  return x;
}

#endif

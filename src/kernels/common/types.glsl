// Storage types, value types, and the only way kernels touch memory.
//
// A dtype d has a pointer type Ptr_d (a buffer reference with the item's own
// alignment: MLX promises no more) and a value type. Kernels see the names
// that the host defines for each type parameter P of a variant:
//   P        value type: bool, int8_t .. uint64_t, float (f16, bf16, f32), vec2
//   P_PTR    pointer type
//   P_CAST   any value -> P (without rounding to storage; store() rounds)
//   P_SIZE   bytes an item; P_KIND one of the KIND_ values below
// load(p, i) and store(p, i, v) take an index of any integer type. 32-bit
// indices must stay below 2^31 bytes / item size; the large variants of a
// kernel use 64-bit ones.
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

// REF declares one buffer reference type holding a single item; an index
// moves the address, so that 64-bit offsets need nothing special.
#define REF(NAME, STORAGE, ALIGN)                                             \
  layout(buffer_reference, scalar, buffer_reference_align = ALIGN)            \
      buffer NAME {                                                           \
    STORAGE v[];                                                              \
  }

REF(Ptr_bool, uint8_t, 1);
REF(Ptr_u8, uint8_t, 1);
REF(Ptr_i8, int8_t, 1);
REF(Ptr_u16, uint16_t, 2);
REF(Ptr_i16, int16_t, 2);
REF(Ptr_u32, uint32_t, 4);
REF(Ptr_i32, int32_t, 4);
REF(Ptr_u64, uint64_t, 8);
REF(Ptr_i64, int64_t, 8);
REF(Ptr_f16, uint16_t, 2);
REF(Ptr_bf16, uint16_t, 2);
REF(Ptr_f32, float, 4);
REF(Ptr_c64, vec2, 8);

// 16-byte accesses; the host checks base and strides before choosing them.
REF(Ptr_u32x2, uvec2, 8);
REF(Ptr_u32x4, uvec4, 16);
REF(Ptr_f32x4, vec4, 16);

#define ACCESS_INDEX(PTR, VALUE, SIZE, TO, FROM, INDEX)                       \
  VALUE load(PTR p, INDEX i) {                                                \
    return TO(p.v[i]);                                                        \
  }                                                                           \
  void store(PTR p, INDEX i, VALUE x) {                                       \
    p.v[i] = FROM(x);                                                         \
  }
#define ACCESS_INDEX64(PTR, VALUE, SIZE, TO, FROM, INDEX)                     \
  VALUE load(PTR p, INDEX i) {                                                \
    return TO(PTR(uint64_t(p) + uint64_t(i) * SIZE).v[0]);                    \
  }                                                                           \
  void store(PTR p, INDEX i, VALUE x) {                                       \
    PTR(uint64_t(p) + uint64_t(i) * SIZE).v[0] = FROM(x);                     \
  }
#define ACCESS(PTR, VALUE, SIZE, TO, FROM)                                    \
  ACCESS_INDEX(PTR, VALUE, SIZE, TO, FROM, uint)                              \
  ACCESS_INDEX(PTR, VALUE, SIZE, TO, FROM, int)                               \
  ACCESS_INDEX64(PTR, VALUE, SIZE, TO, FROM, uint64_t)                        \
  ACCESS_INDEX64(PTR, VALUE, SIZE, TO, FROM, int64_t)

uint8_t bool_bits(bool x) {
  return uint8_t(x ? 1u : 0u);
}
bool bits_bool(uint8_t x) {
  return uint(x) != 0u;
}
#define IDENTITY(x) (x)

ACCESS(Ptr_bool, bool, 1, bits_bool, bool_bits)
ACCESS(Ptr_u8, uint8_t, 1, IDENTITY, IDENTITY)
ACCESS(Ptr_i8, int8_t, 1, IDENTITY, IDENTITY)
ACCESS(Ptr_u16, uint16_t, 2, IDENTITY, IDENTITY)
ACCESS(Ptr_i16, int16_t, 2, IDENTITY, IDENTITY)
ACCESS(Ptr_u32, uint32_t, 4, IDENTITY, IDENTITY)
ACCESS(Ptr_i32, int32_t, 4, IDENTITY, IDENTITY)
ACCESS(Ptr_u64, uint64_t, 8, IDENTITY, IDENTITY)
ACCESS(Ptr_i64, int64_t, 8, IDENTITY, IDENTITY)
ACCESS(Ptr_f16, float, 2, f16_to_f32, f32_to_f16)
ACCESS(Ptr_bf16, float, 2, bf16_to_f32, f32_to_bf16)
ACCESS(Ptr_f32, float, 4, IDENTITY, IDENTITY)
ACCESS(Ptr_c64, vec2, 8, IDENTITY, IDENTITY)

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
bool to_bool(float x) { return !(x == 0.0); }
bool to_bool(vec2 x) { return !(x.x == 0.0 && x.y == 0.0); }

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

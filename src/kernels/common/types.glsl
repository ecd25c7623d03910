// Storage types, value types, and the memory accesses of kernels.
//
// A dtype d has a pointer type Ptr_d (a buffer reference with the alignment of
// one item, the most that MLX guarantees) and a value type. For each type
// parameter P of a variant the host defines
//   P        value type: bool, int8_t .. uint64_t, float (f16, bf16, f32), vec2
//   P_PTR    pointer type
//   P_CAST   any value -> P (without rounding to storage; store() rounds)
//   P_SIZE   bytes per item; P_KIND: one of the KIND_ values below
// load(p, i) and store(p, i, v) take an index of any integer type, relative to
// p; large variants of a kernel compute indices in 64 bits.
#pragma once

#define KIND_BOOL 0
#define KIND_UINT 1
#define KIND_INT 2
#define KIND_FLOAT 3
#define KIND_COMPLEX 4

#include "common/convert.glsl"
#include "common/numeric.glsl"

// REF declares a buffer reference type of a single item; load() and store()
// move the address. Types with equal storage hold different structs, because
// glslang cannot overload functions on reference types.
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

// FLOAT64 is defined in variants that name f64: others must not use doubles,
// which not every device has.
#if FLOAT64
#define FOR_DOUBLE(M) M(double)
#define F64_DTYPE(F) F(f64, double, 64, packDouble2x32, unpackDouble2x32)
#else
#define FOR_DOUBLE(M)
#define F64_DTYPE(F)
#endif

// The dtypes, one row each: F(dtype, value type, bits per item, storage ->
// value, value -> storage). Storage is uint8_t, uint16_t, uint or uvec2. Plain
// dtypes are stored as their values.
#define EACH_PLAIN_DTYPE(F)                                                   \
  F(u8, uint8_t, 8, uint8_t, uint8_t)                                         \
  F(i8, int8_t, 8, int8_t, uint8_t)                                           \
  F(u16, uint16_t, 16, uint16_t, uint16_t)                                    \
  F(i16, int16_t, 16, int16_t, uint16_t)                                      \
  F(u32, uint32_t, 32, uint32_t, uint32_t)                                    \
  F(i32, int32_t, 32, int32_t, uint32_t)                                      \
  F(u64, uint64_t, 64, packUint2x32, unpackUint2x32)                          \
  F(i64, int64_t, 64, bits_to_i64, i64_to_bits)                               \
  F(f32, float, 32, uintBitsToFloat, floatBitsToUint)                         \
  F64_DTYPE(F)                                                                \
  F(c64, vec2, 64, uintBitsToFloat, floatBitsToUint)
// Coded dtypes are converted and have at most 16 bits, singly but for bf16.
// Floats also need a to_<dtype>.
#define EACH_SINGLY_CODED_DTYPE(F)                                            \
  F(bool, bool, 8, bits_to_bool, bool_to_bits)                                \
  F(f16, float, 16, f16_to_f32, f32_to_f16)
#define EACH_CODED_DTYPE(F)                                                   \
  EACH_SINGLY_CODED_DTYPE(F) F(bf16, float, 16, bf16_to_f32, f32_to_bf16)
#define EACH_DTYPE(F) EACH_PLAIN_DTYPE(F) EACH_CODED_DTYPE(F)
#define to_f16 to_f32
#define to_bf16 to_f32

bool bits_to_bool(uint8_t x) {
  return uint(x) != 0u;
}
uint8_t bool_to_bits(bool x) {
  return uint8_t(x ? 1u : 0u);
}
int64_t bits_to_i64(uvec2 x) {
  return int64_t(packUint2x32(x));
}
uvec2 i64_to_bits(int64_t x) {
  return unpackUint2x32(uint64_t(x));
}

#define PLAIN_POINTER_(D, VALUE, BITS, FROM, TO)                              \
  REF(Ptr_##D, VALUE, BITS / 8);
#define CODED_POINTER_(D, VALUE, BITS, FROM, TO)                              \
  struct Bits_##D {                                                           \
    uint##BITS##_t bits;                                                      \
  };                                                                          \
  REF(Ptr_##D, Bits_##D, BITS / 8);
EACH_PLAIN_DTYPE(PLAIN_POINTER_)
EACH_CODED_DTYPE(CODED_POINTER_)

// Wider accesses, by .v[i]; the host checks base and strides before it selects
// them.
REF_MANY(Ptr_u32x2, uvec2, 8);
REF_MANY(Ptr_u32x4, uvec4, 16);
REF_MANY(Ptr_f32x4, vec4, 16);
#if FLOAT64
REF_MANY(Ptr_f64x2, dvec2, 16);
#endif

// MOVED(P, p, n): pointer p of type P_PTR advanced by n items, n of any integer
// type. glslang's own `reference + n` with a 64-bit n generates a 64-to-64-bit
// conversion, which is invalid SPIR-V.
#define MOVED(P, p, n) P##_PTR(uint64_t(p) + uint64_t(int64_t(n) * P##_SIZE))

// Converts an index to the one integer type that glslang's reference arithmetic
// handles correctly.
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

#define PLAIN_ITEM_(D, VALUE, BITS, FROM, TO)                                 \
  VALUE decode_(VALUE x) {                                                    \
    return x;                                                                 \
  }                                                                           \
  void encode_(out VALUE item, VALUE x) {                                     \
    item = x;                                                                 \
  }
#define CODED_ITEM_(D, VALUE, BITS, FROM, TO)                                 \
  VALUE decode_(Bits_##D x) {                                                 \
    return FROM(x.bits);                                                      \
  }                                                                           \
  void encode_(out Bits_##D item, VALUE x) {                                  \
    item.bits = TO(x);                                                        \
  }
EACH_PLAIN_DTYPE(PLAIN_ITEM_)
EACH_CODED_DTYPE(CODED_ITEM_)

// Value conversions with the semantics of MLX's astype: complex drops the
// imaginary part, bool is "not zero".
#define CAST_INTEGERS_TO(NAME, VALUE)                                         \
  VALUE NAME(bool x) { return VALUE(x); }                                     \
  VALUE NAME(uint8_t x) { return VALUE(x); }                                  \
  VALUE NAME(int8_t x) { return VALUE(x); }                                   \
  VALUE NAME(uint16_t x) { return VALUE(x); }                                 \
  VALUE NAME(int16_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint32_t x) { return VALUE(x); }                                 \
  VALUE NAME(int32_t x) { return VALUE(x); }                                  \
  VALUE NAME(uint64_t x) { return VALUE(x); }                                 \
  VALUE NAME(int64_t x) { return VALUE(x); }
#define CAST_TO(NAME, VALUE)                                                  \
  CAST_INTEGERS_TO(NAME, VALUE)                                               \
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
// Tested by bits, because a device that flushes subnormals must not turn true
// into false.
bool to_bool(float x) { return (floatBitsToUint(x) & 0x7fffffffu) != 0u; }
bool to_bool(vec2 x) { return to_bool(x.x) || to_bool(x.y); }

CAST_TO(to_i8, int8_t)
CAST_TO(to_i16, int16_t)
CAST_TO(to_i32, int32_t)
CAST_TO(to_i64, int64_t)
CAST_TO(to_f32, float)

// A negative float cast to an unsigned type wraps as on the CPU, through int64.
#define CAST_TO_UNSIGNED(NAME, VALUE)                                         \
  CAST_INTEGERS_TO(NAME, VALUE)                                               \
  VALUE NAME(float x) {                                                       \
    return x < 0.0 ? VALUE(int64_t(x)) : VALUE(uint64_t(x));                  \
  }                                                                           \
  VALUE NAME(vec2 x) { return NAME(x.x); }

CAST_TO_UNSIGNED(to_u8, uint8_t)
CAST_TO_UNSIGNED(to_u16, uint16_t)
CAST_TO_UNSIGNED(to_u32, uint32_t)
CAST_TO_UNSIGNED(to_u64, uint64_t)

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

#if FLOAT64
CAST_TO(to_f64, double)
#define CAST_DOUBLE_(NAME, VALUE)                                             \
  VALUE NAME(double x) { return VALUE(x); }
#define CAST_DOUBLE_TO_UNSIGNED_(NAME, VALUE)                                 \
  VALUE NAME(double x) {                                                      \
    return x < 0.0 ? VALUE(int64_t(x)) : VALUE(uint64_t(x));                  \
  }
CAST_DOUBLE_(to_i8, int8_t)
CAST_DOUBLE_(to_i16, int16_t)
CAST_DOUBLE_(to_i32, int32_t)
CAST_DOUBLE_(to_i64, int64_t)
CAST_DOUBLE_(to_f32, float)
CAST_DOUBLE_(to_f64, double)
CAST_DOUBLE_TO_UNSIGNED_(to_u8, uint8_t)
CAST_DOUBLE_TO_UNSIGNED_(to_u16, uint16_t)
CAST_DOUBLE_TO_UNSIGNED_(to_u32, uint32_t)
CAST_DOUBLE_TO_UNSIGNED_(to_u64, uint64_t)
CAST_TO_COMPLEX(double)
bool to_bool(double x) { return !is_zero(x); }
#endif

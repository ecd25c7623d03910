// The types of MSL as the translator knows them. Each exists once, so that
// pointers compare.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "msl/ast.h"

namespace msl {

// In the order of conversion rank, the floats last.
enum class Scalar : uint8_t {
  Bool,
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  F16,
  BF16,
  F32
};

struct ScalarInfo {
  const char* msl; // "uchar"
  const char* value; // how GLSL computes with it: half and bfloat as float
  const char* vector; // "u8vec", to which the width is added
  const char* dtype; // "u8", of Ptr_u8 (common/types.glsl)
  uint8_t size; // bytes in memory
  bool is_signed;
  bool floating;
};
const ScalarInfo& info_of(Scalar s);

struct Record; // a struct
struct Closure; // a lambda

struct TypeData {
  enum class Kind : uint8_t {
    Void,
    Scalar,
    Vector,
    Complex, // complex64_t: vec2
    Struct,
    Array,
    Pointer,
    Closure,
    Flags, // mem_flags, memory_order: no value in GLSL
  };
  Kind kind = Kind::Void;
  Scalar scalar = Scalar::I32; // of Scalar and Vector
  uint8_t width = 1; // components
  bool packed = false; // packed_float3
  bool atomic = false;
  const TypeData* element = nullptr; // of Array and Pointer
  int64_t count = 0; // of Array
  Space space = Space::None; // of Pointer
  const Record* record = nullptr;
  const Closure* closure = nullptr;

  bool operator==(const TypeData&) const = default;
  bool is_void() const {
    return kind == Kind::Void;
  }
  bool is_scalar() const {
    return kind == Kind::Scalar;
  }
  bool is_vector() const {
    return kind == Kind::Vector;
  }
  bool is_numeric() const { // scalars and vectors
    return kind == Kind::Scalar || kind == Kind::Vector;
  }
  bool is_array() const {
    return kind == Kind::Array;
  }
  bool is_pointer() const {
    return kind == Kind::Pointer;
  }
  bool is_struct() const {
    return kind == Kind::Struct;
  }
  bool is_complex() const {
    return kind == Kind::Complex;
  }
  bool is_bool() const {
    return is_scalar() && scalar == Scalar::Bool;
  }
  bool is_floating() const {
    return is_numeric() && info_of(scalar).floating;
  }
  bool is_integer() const { // bool counts, as in C++
    return is_numeric() && !info_of(scalar).floating;
  }
  // Whether values are floats in GLSL that must be rounded.
  bool is_narrow_float() const {
    return is_numeric() && (scalar == Scalar::F16 || scalar == Scalar::BF16);
  }
  // Whether a pointer's value is a 64-bit address; other pointers are indices
  // into an array that is known at translation.
  bool is_address() const {
    return is_pointer() && (space == Space::Device || space == Space::Constant);
  }
};
using Ty = const TypeData*;

class Types {
 public:
  Ty get(const TypeData& data);
  Ty nothing() {
    return get({});
  }
  Ty scalar(Scalar s, bool atomic = false) {
    return get({.kind = Kind::Scalar, .scalar = s, .atomic = atomic});
  }
  Ty vector(Scalar s, int width, bool packed = false);
  // A scalar or a vector of `like`'s width.
  Ty with_scalar(Ty like, Scalar s) {
    return like->is_vector() ? vector(s, like->width) : scalar(s);
  }
  Ty array(Ty element, int64_t count) {
    return get({.kind = Kind::Array, .element = element, .count = count});
  }
  Ty pointer(Ty element, Space space) {
    space = space == Space::None ? Space::Thread : space;
    return get({.kind = Kind::Pointer, .element = element, .space = space});
  }
  Ty complex() {
    return get({.kind = Kind::Complex});
  }
  Ty flags() {
    return get({.kind = Kind::Flags});
  }
  Ty record(const Record* r) {
    return get({.kind = Kind::Struct, .record = r});
  }
  Ty closure(const Closure* c) {
    return get({.kind = Kind::Closure, .closure = c});
  }
  // "uint", "float4", "packed_half2", "bfloat16_t"; null if it is no such name.
  Ty named(std::string_view name);

 private:
  using Kind = TypeData::Kind;
  std::deque<TypeData> all_;
};

// The type's name in MSL.
std::string msl_name(Ty t);
inline std::string as_text(Ty t) {
  return msl_name(t);
}
// The GLSL type of a value of it.
std::string glsl_name(Ty t);
// "f16x4", "i32": of the functions that load and store it.
std::string memory_name(Ty t);
// Bytes in memory and their alignment (MSL specification 2).
uint32_t size_of(Ty t);
uint32_t align_of(Ty t);
// The innermost element of an array of arrays, and the number of elements.
Ty flat_element(Ty t);
int64_t flat_count(Ty t);

} // namespace msl

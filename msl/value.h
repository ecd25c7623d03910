// An expression while it is translated: a type, GLSL text, and the place of the
// value if it can be written to.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "msl/types.h"

namespace msl {

// Precedence of GLSL text, weakest last.
enum class Prec : uint8_t {
  Atom,
  Unary,
  Mul,
  Add,
  Shift,
  Relation,
  Equality,
  And,
  Xor,
  Or,
  LogicAnd,
  LogicOr,
  Conditional,
};

// Integers and bools as 64 bits (of ulong: their pattern), floats as doubles
// that hold a value of the type.
using Constant = std::variant<int64_t, double>;

struct Line;

// A null pointer into threadgroup or thread memory; the others are offsets.
inline constexpr const char* null_offset = "-1";

// A variable of the GLSL program, or a field of one. Its name is chosen at the
// end; text holds a mark in its place (see mark()).
struct Variable {
  int id = 0;
  std::string wish; // what the user called it
  std::string name; // the name that was chosen
  Ty type = nullptr;
  Space space = Space::Thread;
  // The variable is written through pointers, or by a function or lambda that
  // does not own it: it becomes a global of the invocation.
  bool global = false;
  int function = 0; // that owns it; 0: none
  bool is_precise = false; // volatile: not contracted
  bool coded = false; // threadgroup half, bfloat: 16 bits
  bool written = false; // a parameter that is assigned to
  bool read_only = false; // const, or a pointer to const

  // For pointers that move between arrays (moving.h): where the variable is
  // declared, the array that it is a part of, and its first item there.
  std::string key;
  Variable* whole = nullptr;
  int64_t part = 0;
  bool is_whole = false;

  // The array that a pointer, or an array of pointers, points into (null:
  // addresses, or not yet known).
  struct Base* points_to = nullptr;
};

// The memory that a pointer into threadgroup or thread memory points into.
struct Base {
  Variable* variable = nullptr;
  std::string path; // ".field" of it
  Ty element = nullptr; // of the array, flat; or the type, if it is no array
  bool single = false; // no array
  int id = 0;

  Space space() const {
    return variable->space;
  }
};

struct Value {
  enum class Home : uint8_t {
    None, // cannot be written to
    Local, // `text` is a GLSL variable
    Device, // item `index` at the address `text`
    Coded, // `text` is a variable that holds 16 bits
    Gathered, // a vector over scalars of `base`, the first at `index`
  };
  Ty type = nullptr;
  std::string text;
  std::string unrounded; // what `text` rounds to half or bfloat, if it does
  Prec prec = Prec::Atom;
  Home home = Home::None;
  std::string index; // "" is 0
  Base* base = nullptr; // of an array, a pointer, or one's home
  std::optional<Constant> constant;
  Variable* variable = nullptr; // if it is one by itself
  Base** slot = nullptr; // of a place for a pointer: what is known of `base`
  bool is_null = false; // nullptr
  bool may_be_null = false; // of a pointer variable, which may hold nullptr
  bool read_only = false; // const; of a pointer: what it points to

  bool is_lvalue() const {
    return home != Home::None;
  }
  int64_t integer() const { // of a constant
    return std::holds_alternative<int64_t>(*constant)
        ? std::get<int64_t>(*constant)
        : static_cast<int64_t>(std::get<double>(*constant));
  }
  double real() const;
};

// The value of the text of an integer, without its suffix; empty if it is none
// or has more than 64 bits.
std::optional<uint64_t> integer_value(const std::string& digits);
// a op b of 64-bit patterns, for the caller to wrap to the type; empty where
// C++ leaves it undefined.
std::optional<int64_t>
fold_integer(const std::string& op, int64_t a, int64_t b, Scalar s);
std::optional<bool>
fold_comparison(const std::string& op, int64_t a, int64_t b);

// A value without a place: `text` of type `t`.
inline Value plain_value(Ty t, std::string text, Prec prec = Prec::Atom) {
  Value v;
  v.type = t;
  v.text = std::move(text);
  v.prec = prec;
  return v;
}

// `v`'s text for a place that binds as strongly as `prec`.
std::string within(const Value& v, Prec prec);
// A key for the object at this address.
inline std::string identity(const void* p) {
  return std::to_string(reinterpret_cast<intptr_t>(p));
}
// Whether the declaration of a variable makes it const or, of a pointer, what
// it points to. `const T x`, where T is a pointer, makes neither.
inline bool is_read_only(const Type& written, Ty type) {
  return written.is_const && type->is_pointer() == (written.pointers > 0);
}
// Whether `op` is an operator between two numbers.
bool is_infix(const std::string& op);

} // namespace msl

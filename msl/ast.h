// Metal Shading Language, the part that bodies of mx.fast.metal_kernel use, as
// a tree. Made by parse.h, read by the translator. Free of Vulkan and MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msl/translate.h"

namespace msl {

// Address spaces (MSL specification 4); None: not written, so thread or, for
// what a function takes by value, nothing at all.
enum class Space : uint8_t { None, Device, Constant, Threadgroup, Thread };

struct Expr;
struct Type;
using ExprPtr = std::unique_ptr<Expr>;

// An argument of a template: a type or a value. A bare name is stored as both;
// the translator, which knows the names, decides.
struct TemplateArgument {
  std::unique_ptr<Type> type;
  ExprPtr value;
};

// A type as written: `const device T*`, `metal::vec<T, 4>`, `threadgroup
// float&`.
struct Type {
  Place place;
  std::string
      name; // without metal:: and std::; "auto", "unsigned int" as "uint"
  std::vector<TemplateArgument> arguments; // of vec<T, 4>, array<T, N>, Foo<T>
  Space space = Space::None;
  bool is_const = false;
  bool is_volatile = false;
  uint32_t pointers = 0; // how many *
  bool reference = false;
  std::unique_ptr<Type> scope; // Foo<T> of Foo<T>::type
  // decltype(expression): `name` is "decltype".
  ExprPtr of;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
struct Parameter;
struct Attribute {
  std::string name; // [[thread_position_in_grid]], [[buffer(0)]] ...
  std::vector<std::string> arguments;
};

struct Expr {
  enum class Kind : uint8_t {
    Number, // text as written: 0x1fu, 1.5h, 1e-3f, true, false
    // text: without metal:: and std::, but with other scopes (fast::exp,
    // mem_flags::mem_none, Foo::n). `arguments`: if it is a template-id (also
    // as the callee of a Call). `type`: if a template-id precedes the last ::,
    // as in Limits<T>::max
    Name,
    Unary, // text: + - ! ~ * & ++ --
    Postfix, // text: ++ --
    Binary, // text, also ","
    Assign, // text: = += ...
    Conditional, // children: condition, then, else
    Call, // children: callee (Name or Member), then the arguments
    Index, // children: array, index
    Member, // children: object; text: field or swizzle; `arrow`, `arguments`
    Cast, // type; children: one. (T)x, static_cast, reinterpret_cast (text)
    // type; children: T(a, b), T{a, b}, vec<T, 4>(x); a type that only the
    // translator knows comes as a Call
    Construct,
    List, // {a, b, c} without a type
    Sizeof, // type, or children: one
    Lambda, // parameters, body, type if written; captures by reference
  };
  Kind kind;
  Place place;
  std::string text;
  bool arrow = false;
  std::vector<ExprPtr> children;
  std::vector<TemplateArgument> arguments; // of the name: f<float, 4>(x)
  std::unique_ptr<Type> type;
  std::vector<Parameter> parameters;
  StmtPtr body;
  uint16_t height = 1; // of the tree, itself counted
};

// One declared name. `float a[N][4] = {...}` has two extents.
struct Declarator {
  Place place;
  Type type; // with the pointers and references of this very name
  std::string name;
  std::vector<ExprPtr> extents; // an empty one: []
  ExprPtr value; // null; List for {...}
  bool constructed = false; // T x(a, b): `value` is a List of the arguments
  bool is_static = false; // of a struct's field
};

struct Parameter {
  Declarator declarator;
  std::vector<Attribute> attributes;
};

struct Stmt {
  enum class Kind : uint8_t {
    Block,
    Declare, // declarators, all of one statement; `is_constexpr`, `is_static`
    Expression,
    If, // expr; body, other; `is_constexpr`
    For, // init, expr (or null), step (or null), body
    While,
    DoWhile,
    Switch, // expr, cases in body (Block of Case and others)
    Case, // expr, null for default; what follows is in `statements`
    Break,
    Continue,
    Return, // expr or null
    Struct, // local struct: `declared`
    Using, // using Name = Type, typedef: `declared`
    StaticAssert, // expr; text: the message
    Empty,
  };
  Kind kind;
  Place place;
  std::vector<StmtPtr> statements;
  std::vector<Declarator> declarators;
  bool is_constexpr = false, is_static = false;
  ExprPtr expr, step;
  StmtPtr init, body, other;
  std::unique_ptr<struct Declaration> declared;
  uint32_t unroll = 0; // #pragma unroll before a loop: 1 full or n
  std::string text;
};

struct TemplateParameter {
  bool is_type = false;
  Type type; // of a value: int, uint, bool
  std::string name;
  std::unique_ptr<Type> default_type;
  ExprPtr default_value;
};

// A declaration at file level of the header, or a local one.
struct Declaration {
  enum class Kind : uint8_t { Function, Struct, Using, Constant, StaticAssert };
  Kind kind;
  Place place;
  std::string name;
  std::vector<TemplateParameter> parameters; // of the template
  // Explicit specialization: template <> struct Foo<half> {...}
  bool specialization = false;
  std::vector<TemplateArgument> specialized;
  // Function (also operators, "operator+", and constructors, the struct's name)
  Type result;
  std::vector<Parameter> takes;
  StmtPtr body; // null: only declared
  bool is_const = false, is_static = false, is_constexpr = false;
  // of a constructor: `: field(value)`, each value a List of the arguments
  std::vector<std::pair<std::string, ExprPtr>> initializers;
  // Struct
  std::vector<Declarator> fields;
  std::vector<Declaration> methods;
  std::vector<Declaration> types; // using, typedef and structs within
  // Enumerators become Constants ("E::a" for an enum class), and the enum a
  // Using. Using: `result`. Constant (StaticAssert: of the value; `name` is the
  // message):
  Declarator constant;
};

struct Unit {
  std::vector<Declaration> declarations; // of the header, in order
  StmtPtr body; // Block
};

} // namespace msl

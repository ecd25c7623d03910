// Structs, lambdas, names and scopes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "msl/value.h"

namespace msl {

struct Scope;

struct Field {
  std::string name, glsl;
  Ty type = nullptr;
  uint32_t offset = 0; // bytes, in memory
  const Declarator* declared = nullptr;
  mutable Base* points_to = nullptr; // a pointer, in all objects
};

struct Record {
  std::string name; // "Foo<float, 4>"
  std::string glsl;
  const Declaration* declared = nullptr;
  std::vector<Field> fields;
  Scope* scope = nullptr; // of its template arguments and own names
  uint32_t size = 1, align = 1;
  bool in_memory = false; // has functions to load and store it
};

struct Closure {
  const Expr* lambda = nullptr;
  Scope* scope = nullptr;
  int id = 0;
};

struct Symbol {
  enum class Kind : uint8_t {
    Value,
    Type,
    Functions, // overloads, `declared`
    Template, // of structs or aliases
    Lazy, // a constant of the header, or static, not yet evaluated
    Argument, // of the kernel, or a thread attribute, not yet used
  };
  Kind kind = Kind::Value;
  Value value;
  Ty type = nullptr;
  std::vector<const Declaration*> declared;
  const Declarator* lazy = nullptr;
  bool busy = false; // being evaluated: a cycle
  size_t argument = 0;
  Scope* scope = nullptr; // in which `declared` and `lazy` stand
};

struct Scope {
  Scope* parent = nullptr;
  int function = 0; // whose body it belongs to
  const Record* record = nullptr; // of a method: `self` is its object
  Value self;
  std::map<std::string, Symbol> names;
};

// The struct's declaration of this name; null if none, or no struct.
inline Symbol* member_of(Ty t, const std::string& name) {
  if (!t->is_struct()) {
    return nullptr;
  }
  auto it = t->record->scope->names.find(name);
  return it == t->record->scope->names.end() ? nullptr : &it->second;
}

} // namespace msl

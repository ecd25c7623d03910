#include "msl/moving.h"

#include "msl/translator.h"

namespace msl {

namespace {

// A view of an array as vectors begins at a whole vector.
constexpr int64_t part_align = 4;

} // namespace

std::string key_of(const Declarator& d) {
  auto& p = d.place;
  return (p.in_header ? "header " : "") + std::to_string(p.line) + ":" +
      std::to_string(p.column) + " " + d.name;
}

// Notes where a variable is declared and, if pointers move between it and
// others, gives it its part of their array.
void Translator::place_variable(Variable* v, const Declarator& d) {
  v->key = key_of(d);
  std::string group = together_.group(v->key);
  if (group.empty()) {
    return;
  }
  Ty element = flat_element(v->type);
  Variable* whole = nullptr;
  for (auto& other : variables_) {
    if (other.is_whole && other.key == group && other.space == v->space &&
        flat_element(other.type) == element) {
      whole = &other;
    }
  }
  if (!whole) {
    whole = variable("arrays", types_.array(element, 0), v->space);
    whole->key = group;
    whole->is_whole = whole->global = true;
    whole->coded = v->coded;
    whole->function = -1; // no function's own
  }
  int64_t size = flat_count(v->type);
  v->whole = whole;
  v->part = whole->type->count;
  whole->type = types_.array(
      element, v->part + (size + part_align - 1) / part_align * part_align);
}

// The base of a pointer that may point into either.
Base* Translator::either_base(Base* a, Base* b) {
  if (!a || !b || a == b) {
    return a ? a : b;
  }
  auto& one = *a->variable;
  auto& other = *b->variable;
  bool joins = a->path.empty() && b->path.empty() && !one.key.empty() &&
      !other.key.empty() && one.space == other.space &&
      a->element == b->element;
  if (!joins) {
    fail(
        "a pointer would point into `{}` as well as into `{}`. It can move "
        "between variables and arrays of one type, but not between fields of "
        "structs or what a function takes by value; declare arrays of the same "
        "type.",
        one.wish,
        other.wish);
  }
  throw Moves{one.key, other.key};
}

// Updates `slot`, the array of a pointer that is set to one into `b`.
void Translator::points_into(Base*& slot, Base* b) {
  slot = either_base(slot, b);
}

// `pointer == nullptr`, or !=: decided at run time for a variable, since it may
// have been set to null.
Value Translator::compared_with_null(
    const Value& pointer,
    const std::string& op) {
  bool variable = pointer.may_be_null && !pointer.is_null;
  if (!variable) {
    return boolean(pointer.is_null == (op == "=="));
  }
  return plain_value(
      types_.scalar(Scalar::Bool),
      within(pointer, Prec::Add) + " " + op + " " + null_offset,
      Prec::Equality);
}

} // namespace msl

// Assignments, and the operators of structs.
#include "msl/translator.h"

namespace msl {

namespace {
using Home = Value::Home;
}

Value Translator::assign(const Expr& e) {
  const Expr& right = *e.children[1];
  if (e.text == "=") {
    if (right.kind == Expr::Kind::List) {
      Value to = eval(*e.children[0]);
      store(to, list_value(to.type, right), e.place);
      return to;
    }
    Value v = decayed(load(eval(right)));
    Value to = eval(*e.children[0]);
    if (to.type->is_pointer() && !v.type->is_pointer()) {
      v = convert_pointer(v, to.type, e.place, false);
    }
    store(to, v, e.place);
    return to;
  }
  std::string op = e.text.substr(0, e.text.size() - 1);
  Value v = load(eval(right));
  Value to = eval(*e.children[0]);
  if (to.type->is_pointer()) {
    if (op != "+" && op != "-") {
      fail(e.place, "`" + e.text + "` does not apply to pointers.");
    }
    store(to, moved(to, v, op == "-", e.place), e.place);
    return to;
  }
  if (to.type->is_struct()) {
    if (auto r = overloaded(e.text, {to, v}, e.place)) {
      return *r;
    }
    if (auto r = overloaded(op, {to, v}, e.place)) {
      store(to, *r, e.place);
      return to;
    }
  }
  if (!is_infix(op)) {
    fail(e.place, "the operator `" + e.text + "` is not supported.");
  }
  bool shifts = op == "<<" || op == ">>";
  Value result = shifts ? shift(op, load(to), v, e.place)
                        : arithmetic(op, load(to), v, e.place);
  std::string begin = to.text + " " + op + " ";
  bool direct = to.home == Home::Local && result.type == to.type &&
      !result.constant && result.text.starts_with(begin);
  if (direct) { // x += y
    wrote(to);
    Value rest = shifts
        ? convert(v, to.type, e.place)
        : convert(v, common_type(to.type, v.type, e.place), e.place);
    emit(to.text + " " + e.text + " " + rest.text + ";");
  } else {
    store(to, result, e.place);
  }
  return to;
}

std::optional<Value> Translator::overloaded(
    const std::string& op,
    const std::vector<Value>& operands,
    Place place) {
  std::string name = "operator" + op;
  std::vector<Value> rest = operands;
  if (Symbol* s = member_of(operands[0].type, name)) {
    Scope* own = operands[0].type->record->scope;
    rest.erase(rest.begin());
    if (auto v = try_functions(*s, own, {}, rest, &operands[0], place)) {
      return v;
    }
    rest = operands;
  }
  Scope* where = nullptr;
  Symbol* s = find(scope_, name, &where);
  if (s && s->kind == Symbol::Kind::Functions) {
    return try_functions(*s, where, {}, rest, nullptr, place);
  }
  return {};
}

Value Translator::step_by_one(const Expr& e, bool postfix, bool discarded) {
  Value lv = eval(*e.children[0]);
  if (!lv.is_lvalue()) {
    fail(e.place, "`" + e.text + "` needs a variable.");
  }
  std::string op = e.text.substr(0, 1);
  Value old;
  if (postfix && !discarded) {
    old = temporary(lv, "old");
    old.home = Home::None;
  }
  if (lv.type->is_pointer()) {
    store(lv, moved(lv, integer(1), op == "-", e.place), e.place);
  } else if (
      lv.home == Home::Local && lv.type->is_scalar() && !lv.type->atomic &&
      lv.type->scalar >= Scalar::I32 && !lv.type->is_narrow_float()) {
    // Written as in C++, for readers and for compilers that unroll.
    wrote(lv);
    emit(op + op + lv.text + ";");
  } else {
    store(lv, arithmetic(op, load(lv), integer(1), e.place), e.place);
  }
  return postfix && !discarded ? old : lv;
}

} // namespace msl

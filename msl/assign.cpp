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
      store(to, list_value(to.type, right));
      return to;
    }
    Value v = decayed(load(eval(right)));
    Value to = eval(*e.children[0]);
    if (to.type->is_pointer() && !v.type->is_pointer()) {
      v = convert_pointer(v, to.type, false);
    }
    store(to, v);
    return to;
  }
  std::string op = e.text.substr(0, e.text.size() - 1);
  Value v = load(eval(right));
  Value to = eval(*e.children[0]);
  if (to.type->is_pointer()) {
    if (op != "+" && op != "-") {
      fail("`{}` does not apply to pointers.", e.text);
    }
    store(to, moved(to, v, op == "-"));
    return to;
  }
  if (to.type->is_struct()) {
    if (auto r = overloaded(e.text, {to, v})) {
      return *r;
    }
    if (auto r = overloaded(op, {to, v})) {
      store(to, *r);
      return to;
    }
  }
  if (!is_infix(op)) {
    fail("the operator `{}` is not supported.", e.text);
  }
  bool shifts = op == "<<" || op == ">>";
  Value result = shifts ? shift(op, load(to), v) : arithmetic(op, load(to), v);
  std::string begin = to.text + " " + op + " ";
  bool direct = to.home == Home::Local && result.type == to.type &&
      !result.constant && result.text.starts_with(begin);
  if (direct) { // x += y
    check_writable(to);
    wrote(to);
    Value rest =
        shifts ? convert(v, to.type) : convert(v, common_type(to.type, v.type));
    emit(to.text + " " + e.text + " " + rest.text + ";");
  } else {
    store(to, result);
  }
  return to;
}

std::optional<Value> Translator::overloaded(
    const std::string& op,
    const Values& operands) {
  std::string name = "operator" + op;
  Values rest = operands;
  if (Symbol* s = member_of(operands[0].type, name)) {
    Scope* own = operands[0].type->record->scope;
    rest.erase(rest.begin());
    if (auto v = try_functions(*s, own, {}, rest, &operands[0])) {
      return v;
    }
    rest = operands;
  }
  Scope* where = nullptr;
  Symbol* s = find(scope_, name, &where);
  if (s && s->kind == Symbol::Kind::Functions) {
    return try_functions(*s, where, {}, rest, nullptr);
  }
  return {};
}

Value Translator::step_by_one(const Expr& e, bool postfix, bool discarded) {
  Value lv = eval(*e.children[0]);
  if (!lv.is_lvalue()) {
    fail("`{}` needs a variable.", e.text);
  }
  std::string op = e.text.substr(0, 1);
  Value old;
  if (postfix && !discarded) {
    old = temporary(lv, "old");
    old.home = Home::None;
  }
  if (lv.type->is_pointer()) {
    store(lv, moved(lv, integer(1), op == "-"));
  } else if (
      lv.home == Home::Local && lv.type->is_scalar() && !lv.type->atomic &&
      lv.type->scalar >= Scalar::I32 && !lv.type->is_narrow_float()) {
    // Written as in C++, for readers and for compilers that unroll.
    check_writable(lv);
    wrote(lv);
    emit(op + op + lv.text + ";");
  } else {
    store(lv, arithmetic(op, load(lv), integer(1)));
  }
  return postfix && !discarded ? old : lv;
}

} // namespace msl

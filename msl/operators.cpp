// Operators with C++14's conversions.
#include <algorithm>
#include <string_view>

#include "msl/translator.h"

namespace msl {

namespace {

struct Operator {
  std::string_view name;
  Prec prec;
  // The function that computes the operator for floats without contraction
  // (common/msl_math.glsl), or compares vectors.
  const char* function = nullptr;
};
constexpr Operator operators[] = {
    {"*", Prec::Mul, "msl_exact_multiply"},
    {"/", Prec::Mul},
    {"%", Prec::Mul},
    {"+", Prec::Add, "msl_exact_add"},
    {"-", Prec::Add, "msl_exact_subtract"},
    {"<<", Prec::Shift},
    {">>", Prec::Shift},
    {"<", Prec::Relation, "lessThan"},
    {">", Prec::Relation, "greaterThan"},
    {"<=", Prec::Relation, "lessThanEqual"},
    {">=", Prec::Relation, "greaterThanEqual"},
    {"==", Prec::Equality, "equal"},
    {"!=", Prec::Equality, "notEqual"},
    {"&", Prec::And},
    {"^", Prec::Xor},
    {"|", Prec::Or}};

// Null if it is no operator between two numbers.
const Operator* operator_named(std::string_view name) {
  auto* found = std::ranges::find(operators, name, &Operator::name);
  return found == std::end(operators) ? nullptr : found;
}

bool is_comparison(std::string_view name) {
  auto* op = operator_named(name);
  return op && (op->prec == Prec::Relation || op->prec == Prec::Equality);
}

// f(a, b)
std::string call_of(const char* f, const Value& a, const Value& b) {
  return std::string(f) + "(" + a.text + ", " + b.text + ")";
}

// a op b, grouped to the left; bitwise operators get parentheses.
Value infix(Ty t, const std::string& op, const Value& a, const Value& b) {
  Prec p = operator_named(op)->prec;
  auto below = static_cast<Prec>(static_cast<int>(p) - 1);
  Prec left = p > Prec::Add ? std::min(p, Prec::Add) : p;
  Prec right = p > Prec::Add ? std::min(below, Prec::Add) : below;
  return plain_value(t, within(a, left) + " " + op + " " + within(b, right), p);
}

} // namespace

bool is_infix(const std::string& op) {
  return operator_named(op);
}

Value Translator::unary(const Expr& e) {
  const std::string& op = e.text;
  if (op == "++" || op == "--") {
    return step_by_one(e, false, false);
  }
  Value operand = eval(*e.children[0]);
  if (op == "&") {
    return address_of(operand);
  }
  if (op == "*") {
    bool self = e.children[0]->kind == Expr::Kind::Name &&
        e.children[0]->text == "this";
    return self ? operand : dereference(operand);
  }
  Value v = load(operand);
  if (v.type->is_struct()) {
    if (auto r = overloaded(op, {operand})) {
      return *r;
    }
  }
  if (op == "!") {
    if (v.type->is_vector()) {
      return plain_value(v.type, "not(" + v.text + ")");
    }
    v = convert(v, types_.scalar(Scalar::Bool));
    return v.constant
        ? boolean(!v.integer())
        : plain_value(v.type, "!" + within(v, Prec::Atom), Prec::Unary);
  }
  if (!v.type->is_numeric() && !(v.type->is_complex() && op != "~")) {
    fail("`{}` does not apply to `{}`.", op, v.type);
  }
  Ty t = promoted(v.type);
  v = convert(v, t);
  if (op == "+") {
    return v;
  }
  if (op == "~" && t->is_floating()) {
    fail("`~` needs an integer.");
  }
  if (v.constant) {
    if (t->is_floating()) {
      return literal(t, -v.real());
    }
    auto bits = static_cast<uint64_t>(v.integer());
    return literal(t, static_cast<int64_t>(op == "-" ? 0 - bits : ~bits));
  }
  return plain_value(t, op + within(v, Prec::Atom), Prec::Unary);
}

Value Translator::binary(const Expr& e) {
  const std::string& op = e.text;
  if (op == "&&" || op == "||") {
    return short_circuit(e);
  }
  if (op == ",") {
    discard(*e.children[0]);
    return eval(*e.children[1]);
  }
  Value a = decayed(load(eval(*e.children[0])));
  Value b = decayed(load(eval(*e.children[1])));
  if (a.type->kind == TypeData::Kind::Flags && a.type == b.type && op == "|") {
    a.text += " " + b.text;
    return a;
  }
  if (a.type->is_struct() || b.type->is_struct()) {
    if (auto v = overloaded(op, {a, b})) {
      return *v;
    }
  }
  if (a.type->is_pointer() || b.type->is_pointer()) {
    return pointer_arithmetic(op, a, b);
  }
  if (is_comparison(op)) {
    return comparison(op, a, b);
  }
  return op == "<<" || op == ">>" ? shift(op, a, b) : arithmetic(op, a, b);
}

Value Translator::complex_arithmetic(
    const std::string& op,
    const Value& a,
    const Value& b) {
  constexpr std::pair<std::string_view, const char*> functions[] = {
      {"+", "msl_c_add"},
      {"-", "msl_c_subtract"},
      {"*", "msl_c_multiply"},
      {"/", "msl_c_divide"}};
  for (auto& [known, function] : functions) {
    if (known == op) {
      return plain_value(types_.complex(), call_of(function, a, b));
    }
  }
  fail("`{}` is not supported for complex64_t.", op);
}

Value Translator::arithmetic(
    const std::string& op,
    const Value& left,
    const Value& right) {
  Ty t = common_type(left.type, right.type);
  Value a = convert(left, t), b = convert(right, t);
  if (t->is_complex()) {
    return complex_arithmetic(op, a, b);
  }
  if (auto v = fold(op, a, b, t)) {
    return *v;
  }
  bool bits = op == "&" || op == "|" || op == "^" || op == "%";
  if (bits && t->is_floating()) {
    fail(
        op == "%" ? "`%` needs integers; fmod() takes floats."
                  : "`" + op + "` needs integers; convert with int(...).");
  }
  if (t->is_vector() && t->scalar == Scalar::Bool) {
    Ty u = types_.vector(Scalar::U32, t->width);
    a = convert(a, u);
    b = convert(b, u);
    return plain_value(t, glsl_name(t) + "(" + infix(u, op, a, b).text + ")");
  }
  bool wide = t->scalar == Scalar::I64 || t->scalar == Scalar::U64;
  if (op == "%" && (wide || info_of(t->scalar).is_signed)) {
    // GLSL's operator is undefined for negative numbers.
    return plain_value(t, call_of("msl_rem", a, b));
  }
  if (op == "/" && wide) { // common/quotient.glsl says why
    return plain_value(t, call_of("msl_quotient", a, b));
  }
  if (op == "/" && t->is_floating()) {
    // A driver may be off by 2.5 ulp. Metal rounds correctly, as MLX compiles
    // without fast math.
    return rounded(plain_value(t, call_of("msl_divide", a, b)));
  }
  if (here_.exact && t->is_floating()) {
    return rounded(plain_value(t, call_of(operator_named(op)->function, a, b)));
  }
  return rounded(infix(t, op, a, b));
}

// Compares by halves (common/numeric.glsl), because Mesa 22.3 miscompiles
// comparisons of widened integers with constants.
Value Translator::ordered(
    const std::string& op,
    const Value& a,
    const Value& b) {
  bool swapped = op == ">" || op == "<=";
  bool negated = op == "<=" || op == ">=";
  std::string less = call_of("is_less", swapped ? b : a, swapped ? a : b);
  Ty type = types_.with_scalar(a.type, Scalar::Bool);
  if (negated) {
    return type->is_vector() ? plain_value(type, "not(" + less + ")")
                             : plain_value(type, "!" + less, Prec::Unary);
  }
  return plain_value(type, less);
}

Value Translator::comparison(
    const std::string& op,
    const Value& left,
    const Value& right) {
  Ty boolean_type = types_.scalar(Scalar::Bool);
  if (left.type->kind == TypeData::Kind::Flags) {
    return plain_value(boolean_type, "true");
  }
  Ty t = left.type->is_bool() && right.type->is_bool() &&
          (op == "==" || op == "!=")
      ? boolean_type
      : common_type(left.type, right.type);
  Value a = convert(left, t), b = convert(right, t);
  if (auto v = fold(op, a, b, boolean_type)) {
    return *v;
  }
  bool wide = t->is_integer() && info_of(t->scalar).size == 8;
  if (wide && op != "==" && op != "!=") {
    return ordered(op, a, b);
  }
  if (t->is_vector()) {
    return plain_value(
        types_.vector(Scalar::Bool, t->width),
        call_of(operator_named(op)->function, a, b));
  }
  if (t->is_complex() && op != "==" && op != "!=") {
    fail("complex64_t has no order.");
  }
  return infix(boolean_type, op, a, b);
}

Value Translator::shift(
    const std::string& op,
    const Value& left,
    const Value& right) {
  bool integers = left.type->is_integer() && right.type->is_integer();
  if (!integers || (right.type->is_vector() && !left.type->is_vector())) {
    fail("`{}` needs integers; convert with int(...).", op);
  }
  Ty t = promoted(left.type);
  Value a = convert(left, t);
  Value b = convert(right, t);
  if (auto v = fold(op, a, b, t)) {
    return *v;
  }
  return infix(t, op, a, b);
}

Value Translator::pointer_arithmetic(
    const std::string& op,
    const Value& a,
    const Value& b) {
  bool pa = a.type->is_pointer(), pb = b.type->is_pointer();
  if (pa && !pb && (op == "+" || op == "-") && !is_comparison(op)) {
    return moved(a, b, op == "-");
  }
  if (!pa && pb && op == "+") {
    return moved(b, a, false);
  }
  Value x = pa ? a : convert_pointer(a, b.type, false);
  Value y = pb ? b : convert_pointer(b, a.type, false);
  bool address = x.type->is_address();
  if (address != y.type->is_address()) {
    fail("these pointers have different address spaces.");
  }
  if (!address && (x.is_null || y.is_null || x.base != y.base)) {
    if (op == "==" || op == "!=") {
      return x.is_null || y.is_null ? compared_with_null(x.is_null ? y : x, op)
                                    : boolean(op == "!=");
    }
    fail("these pointers point into different arrays.");
  }
  if (op == "-") {
    Ty l = types_.scalar(Scalar::I64);
    if (!address) {
      std::string n = std::to_string(flat_count(x.type->element));
      return plain_value(
          l, "int64_t((" + x.text + " - (" + y.text + ")) / " + n + ")");
    }
    return plain_value(
        l,
        "msl_quotient(int64_t(" + within(x, Prec::Add) + " - " +
            within(y, Prec::Unary) + "), " +
            std::to_string(size_of(x.type->element)) + "l)");
  }
  if (!is_comparison(op)) {
    fail("`{}` does not apply to pointers.", op);
  }
  return infix(types_.scalar(Scalar::Bool), op, x, y);
}

// Evaluates the right side only if the left one requires it. Its side effects
// become statements under an `if`.
Value Translator::short_circuit(const Expr& e) {
  bool conjunction = e.text == "&&";
  Value a = condition(*e.children[0]);
  if (a.constant) {
    return (a.integer() != 0) == conjunction ? condition(*e.children[1]) : a;
  }
  if (writing_->masked && is_collective(*e.children[1])) {
    return masked_choice(e, a);
  }
  Value b;
  auto lines = captured_inside([&] { b = condition(*e.children[1]); });
  if (lines.empty()) {
    if (b.constant) {
      return (b.integer() != 0) == conjunction ? a : b;
    }
    Prec p = conjunction ? Prec::LogicAnd : Prec::LogicOr;
    Prec left = a.prec == p ? p : Prec::Equality;
    return plain_value(
        types_.scalar(Scalar::Bool),
        within(a, left) + (conjunction ? " && " : " || ") +
            within(b, Prec::Equality),
        p);
  }
  Value r = temporary(a, "both");
  open(std::string("if (") + (conjunction ? "" : "!") + r.text + ") {");
  append(lines);
  emit(r.text + " = " + b.text + ";");
  close();
  return r;
}

// Converts both sides of ?: to one type, after which neither is an lvalue.
Value Translator::chosen(const Value& c, Value a, Value b) {
  a = decayed(a);
  b = decayed(b);
  Ty t = a.type == b.type    ? a.type
      : a.type->is_pointer() ? a.type
      : b.type->is_pointer() ? b.type
                             : common_type(a.type, b.type);
  a = convert(a, t);
  b = convert(b, t);
  bool offsets = t->is_pointer() && !t->is_address();
  Value r = plain_value(
      t,
      within(c, Prec::LogicOr) + " ? " + within(a, Prec::LogicOr) + " : " +
          within(b, Prec::LogicOr),
      Prec::Conditional);
  r.base = offsets ? either_base(a.base, b.base) : nullptr;
  r.is_null = a.is_null && b.is_null;
  r.may_be_null = a.is_null || b.is_null || a.may_be_null || b.may_be_null;
  return r;
}

Value Translator::conditional(const Expr& e) {
  Value c = rvalue(*e.children[0]);
  if (c.type->is_vector()) {
    fail("`?:` takes a bool; select() chooses by components.");
  }
  c = convert(c, types_.scalar(Scalar::Bool));
  const Expr &yes = *e.children[1], &no = *e.children[2];
  if (c.constant) {
    // The other side may be invalid for this type.
    bool first = c.integer() != 0;
    Value v = eval(first ? yes : no);
    Ty other = nullptr;
    attempt([&] { other = type_without_effects(first ? no : yes); });
    bool numbers = other && v.type->is_numeric() && other->is_numeric();
    return numbers && v.type != other ? convert(v, common_type(v.type, other))
                                      : v;
  }
  if (writing_->masked && (is_collective(yes) || is_collective(no))) {
    return masked_choice(e, c);
  }
  Value a, b;
  auto first = captured_inside([&] { a = load(eval(yes)); });
  auto second = captured_inside([&] { b = load(eval(no)); });
  if (first.empty() && second.empty()) {
    return chosen(c, a, b);
  }
  Value both = chosen(c, a, b);
  auto* r = variable("chosen", both.type, Space::Thread);
  r->points_to = both.type->is_pointer() ? both.base : nullptr;
  declare_variable(r, "");
  open("if (" + c.text + ") {");
  append(first);
  emit(mark(*r) + " = " + convert(a, both.type).text + ";");
  open_else();
  append(second);
  emit(mark(*r) + " = " + convert(b, both.type).text + ";");
  close();
  return load(of_variable(r));
}

} // namespace msl

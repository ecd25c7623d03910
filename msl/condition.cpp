// The value of an #if: its expression, with integers of 64 bits for all types.
#include "msl/parser.h"
#include "msl/value.h"

namespace msl {

namespace {

int64_t integer_of(const Expr& e) {
  std::string digits = e.text.substr(0, e.text.find_last_not_of("uUlL") + 1);
  std::erase(digits, '\'');
  if (auto value = integer_value(digits)) {
    return static_cast<int64_t>(*value);
  }
  fail_at(e.place, "{} is not an integer of 64 bits.", quoted(e.text));
}

int64_t apply(const Expr& e, int64_t a, int64_t b) {
  if (auto compared = fold_comparison(e.text, a, b)) {
    return *compared;
  }
  if (auto v = fold_integer(e.text, a, b, Scalar::I64)) {
    return *v;
  }
  fail_at(
      e.place,
      "The condition divides by zero, or shifts by more than 63 bits.");
}

int64_t value_of(const Expr& e) {
  auto child = [&](size_t i) { return value_of(*e.children[i]); };
  const std::string& op = e.text;
  switch (e.kind) {
    case Expr::Kind::Number:
      return integer_of(e);
    case Expr::Kind::Conditional:
      return child(child(0) ? 1 : 2);
    case Expr::Kind::Binary:
      return op == "&&" ? child(0) && child(1)
          : op == "||"  ? child(0) || child(1)
                        : apply(e, child(0), child(1));
    case Expr::Kind::Unary:
      if (op == "!" || op == "~" || op == "-" || op == "+") {
        int64_t v = child(0);
        return op == "!" ? !v
            : op == "~"  ? ~v
            : op == "-"  ? int64_t(0 - uint64_t(v))
                         : v;
      }
      [[fallthrough]];
    default:
      fail_at(
          e.place, "A condition of #if takes integers and their operators.");
  }
}

} // namespace

int64_t evaluate_condition(Tokens line, const Place& place, Arena& arena) {
  if (line.empty()) {
    fail_at(place, "The condition is empty.");
  }
  for (auto& token : line) {
    if (token.is_name()) {
      token.kind = Token::Kind::Number;
      token.text = token.text == "true" ? "1" : "0";
    }
  }
  FileNames file;
  return value_of(*Parser(tidy(line, arena), file).condition_of_if());
}

} // namespace msl

// The value of an #if: its expression, with integers of 64 bits for all types.
#include "msl/parser.h"

namespace msl {

namespace {

int64_t integer_of(const Expr& e) {
  std::string digits = e.text;
  std::erase(digits, '\'');
  while (!digits.empty() &&
         std::string_view("uUlL").find(digits.back()) !=
             std::string_view::npos) {
    digits.pop_back();
  }
  bool binary = digits.starts_with("0b") || digits.starts_with("0B");
  size_t used = 0;
  try {
    uint64_t value =
        std::stoull(binary ? digits.substr(2) : digits, &used, binary ? 2 : 0);
    if (used + (binary ? 2 : 0) == digits.size()) {
      return int64_t(value);
    }
  } catch (const std::exception&) {
  }
  fail_at(e.place, "{} is not an integer of 64 bits.", quoted(e.text));
}

// Wraps on overflow, so that nothing is undefined.
int64_t apply(const Expr& e, int64_t a, int64_t b) {
  const std::string& op = e.text;
  uint64_t x = uint64_t(a), y = uint64_t(b);
  if (op == "/" || op == "%") {
    if (b == 0) {
      fail_at(e.place, "The condition divides by zero.");
    }
    if (b == -1) {
      return op == "/" ? int64_t(0 - x) : 0;
    }
    return op == "/" ? a / b : a % b;
  }
  // clang-format off
  return op == "|" ? int64_t(x | y) : op == "^" ? int64_t(x ^ y)
      : op == "&" ? int64_t(x & y) : op == "==" ? a == b
      : op == "!=" ? a != b : op == "<" ? a < b : op == ">" ? a > b
      : op == "<=" ? a <= b : op == ">=" ? a >= b
      : op == "<<" ? int64_t(x << (y & 63)) : op == ">>" ? a >> (y & 63)
      : op == "+" ? int64_t(x + y) : op == "-" ? int64_t(x - y)
      : int64_t(x * y);
  // clang-format on
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

#include "msl/parse.h"
#include "msl/tokens.h"

namespace msl {

namespace {

struct Operator {
  std::string_view text;
  int precedence;
};

constexpr Operator kOperators[] = {
    {"||", 1},
    {"&&", 2},
    {"|", 3},
    {"^", 4},
    {"&", 5},
    {"==", 6},
    {"!=", 6},
    {"<", 7},
    {">", 7},
    {"<=", 7},
    {">=", 7},
    {"<<", 8},
    {">>", 8},
    {"+", 9},
    {"-", 9},
    {"*", 10},
    {"/", 10},
    {"%", 10}};

constexpr int kDeepest = 100;

// By precedence climbing; arithmetic wraps, as nothing here may be undefined.
class Condition {
 public:
  Condition(const Tokens& line, const Place& place)
      : line_(line), place_(place) {}

  int64_t run() {
    int64_t value = conditional();
    if (at_ < line_.size()) {
      fail(quoted(line_[at_].text) + " is not expected in the condition.");
    }
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(place_, what);
  }

  bool take(std::string_view text) {
    bool found = at_ < line_.size() && line_[at_].is(text);
    at_ += found;
    return found;
  }

  int64_t conditional() {
    if (++depth_ > kDeepest) {
      fail("The condition is nested too deeply; split it.");
    }
    int64_t value = binary(1);
    if (take("?")) {
      int64_t yes = conditional();
      if (!take(":")) {
        fail("A `:` is missing in the condition.");
      }
      int64_t no = conditional();
      value = value ? yes : no;
    }
    --depth_;
    return value;
  }

  const Operator* peek() const {
    if (at_ < line_.size()) {
      for (const auto& op : kOperators) {
        if (line_[at_].is(op.text)) {
          return &op;
        }
      }
    }
    return nullptr;
  }

  int64_t binary(int lowest) {
    int64_t left = unary();
    while (auto* op = peek()) {
      if (op->precedence < lowest) {
        break;
      }
      ++at_;
      bool skipped = skipping_;
      skipping_ |= (op->text == "&&" && !left) || (op->text == "||" && left);
      int64_t right = binary(op->precedence + 1);
      left = apply(op->text, left, right);
      skipping_ = skipped;
    }
    return left;
  }

  int64_t apply(std::string_view op, int64_t a, int64_t b) const {
    uint64_t x = uint64_t(a), y = uint64_t(b);
    if (op == "/" || op == "%") {
      if (b == 0 && !skipping_) {
        fail("The condition divides by zero.");
      }
      if (b == 0 || b == -1) {
        return b && op == "/" ? int64_t(0 - x) : 0;
      }
      return op == "/" ? a / b : a % b;
    }
    // clang-format off
    return op == "||" ? a || b : op == "&&" ? a && b
        : op == "|" ? int64_t(x | y) : op == "^" ? int64_t(x ^ y)
        : op == "&" ? int64_t(x & y) : op == "==" ? a == b
        : op == "!=" ? a != b : op == "<" ? a < b : op == ">" ? a > b
        : op == "<=" ? a <= b : op == ">=" ? a >= b
        : op == "<<" ? int64_t(x << (y & 63)) : op == ">>" ? a >> (y & 63)
        : op == "+" ? int64_t(x + y) : op == "-" ? int64_t(x - y)
        : int64_t(x * y);
    // clang-format on
  }

  int64_t unary() {
    if (++depth_ > kDeepest) {
      fail("The condition is nested too deeply; split it.");
    }
    int64_t value = take("!") ? !unary()
        : take("-")           ? int64_t(0 - uint64_t(unary()))
        : take("+")           ? unary()
        : take("~")           ? ~unary()
                              : primary();
    --depth_;
    return value;
  }

  int64_t primary() {
    if (at_ >= line_.size()) {
      fail("The condition has no end.");
    }
    if (take("(")) {
      int64_t value = conditional();
      if (!take(")")) {
        fail("A `)` is missing in the condition.");
      }
      return value;
    }
    const Token& token = line_[at_++];
    if (token.kind == Token::Kind::Name) {
      return token.text == "true";
    }
    if (token.kind != Token::Kind::Number) {
      fail(quoted(token.text) + " is not expected in the condition.");
    }
    return number(token);
  }

  int64_t number(const Token& token) const {
    std::string digits;
    for (char c : token.text) {
      if (c != '\'') {
        digits += c;
      }
    }
    while (!digits.empty() &&
           std::string_view("uUlL").find(digits.back()) !=
               std::string_view::npos) {
      digits.pop_back();
    }
    bool binary = digits.starts_with("0b") || digits.starts_with("0B");
    size_t used = 0;
    try {
      uint64_t value = std::stoull(
          binary ? digits.substr(2) : digits, &used, binary ? 2 : 0);
      if (used + (binary ? 2 : 0) == digits.size()) {
        return int64_t(value);
      }
    } catch (const std::exception&) {
    }
    fail(quoted(token.text) + " is not an integer of 64 bits.");
  }

  const Tokens& line_;
  Place place_;
  size_t at_ = 0;
  int depth_ = 0;
  bool skipping_ = false; // after `0 &&` or `1 ||`
};

} // namespace

int64_t evaluate_condition(const Tokens& line, const Place& place) {
  return Condition(line, place).run();
}

} // namespace msl

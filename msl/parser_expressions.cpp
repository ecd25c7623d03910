#include <algorithm>
#include <utility>

#include "msl/parse.h"
#include "msl/parser.h"

namespace msl {

using Kind = Expr::Kind;

namespace {

// The precedence of a binary operator (C++20, [expr]); 0: it is none.
int binding(std::string_view op) {
  static constexpr std::pair<std::string_view, int> all[] = {
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},   {"&", 5},
      {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},   {"<=", 7},
      {">=", 7}, {"<<", 9}, {">>", 9}, {"+", 10},  {"-", 10},
      {"*", 11}, {"/", 11}, {"%", 11}, {"<=>", 8},
  };
  for (const auto& [text, binds] : all) {
    if (text == op) {
      return binds;
    }
  }
  return 0;
}

bool assigns(const Token& op) {
  static constexpr std::string_view all[] = {
      "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
  return op.kind == Token::Kind::Punct &&
      std::find(std::begin(all), std::end(all), op.text) != std::end(all);
}

} // namespace

ExprPtr Parser::make(Kind kind, const Place& place) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->place = place;
  return out;
}

ExprPtr Parser::grown(ExprPtr e) {
  for (const auto& child : e->children) {
    e->height = std::max<uint16_t>(e->height, child->height + 1);
  }
  check_depth(depth_ + e->height);
  deepest_ = std::max(deepest_, depth_ + e->height);
  return e;
}

ExprPtr Parser::expression() {
  auto place = here().place;
  auto out = assignment();
  while (take(",")) {
    out = make(Kind::Binary, place, ",", std::move(out), assignment());
  }
  return out;
}

ExprPtr Parser::condition_of_if() {
  in_condition_ = true;
  auto out = assignment();
  if (!done()) {
    unexpected();
  }
  return out;
}

// With `?:`, which groups with it from the right.
ExprPtr Parser::assignment() {
  Depth depth(*this);
  auto place = here().place;
  auto left = binary(1);
  if (take("?")) {
    bool in_angles = std::exchange(in_angles_, false);
    auto yes = expression();
    in_angles_ = in_angles;
    expect(":");
    auto no = assignment();
    return make(
        Kind::Conditional,
        place,
        "",
        std::move(left),
        std::move(yes),
        std::move(no));
  }
  if (!assigns(here())) {
    return left;
  }
  auto& op = next();
  auto value = is("{") ? list() : assignment();
  return make(
      Kind::Assign, op.place, op.text, std::move(left), std::move(value));
}

// The operator here; `>>` is two tokens (tidy.h).
std::string_view Parser::binary_operator() const {
  if (here().kind != Token::Kind::Punct) {
    return "";
  }
  if (is(">")) {
    bool shift = is(">", 1) && !token(at_ + 1).spaced;
    return in_angles_ ? "" : shift ? ">>" : ">";
  }
  return here().text;
}

// Reads operators of precedence `least` or higher, grouped from the left.
ExprPtr Parser::binary(int least) {
  auto left = unary();
  while (true) {
    auto op = binary_operator();
    int binds = binding(op);
    if (binds == 0 || binds < least) {
      return left;
    }
    if (op == "<=>") {
      fail("`<=>` is not supported; compare with < and ==.");
    }
    auto place = here().place;
    at_ += op == ">>" ? 2 : 1;
    left = make(Kind::Binary, place, op, std::move(left), binary(binds + 1));
  }
}

ExprPtr Parser::unary() {
  Depth depth(*this);
  static constexpr std::string_view operators[] = {
      "+", "-", "!", "~", "*", "&", "++", "--"};
  for (auto op : operators) {
    if (is(op)) {
      auto place = next().place;
      return make(Kind::Unary, place, op, unary());
    }
  }
  if (is("sizeof")) {
    return size_of();
  }
  if (is("(") && casts(at_)) {
    return cast();
  }
  return postfix();
}

// (T)x, (T){a, b}.
ExprPtr Parser::cast() {
  auto out = make(Kind::Cast);
  expect("(");
  out->type = std::make_unique<Type>(type_id());
  expect(")");
  if (is("{")) {
    out->kind = Kind::Construct;
    items("}", *out);
  } else {
    out->children.push_back(unary());
  }
  return grown(std::move(out));
}

ExprPtr Parser::size_of() {
  auto out = make(Kind::Sizeof);
  expect("sizeof");
  size_t end = is("(") ? type_end(at_ + 1) : SIZE_MAX;
  if (end != SIZE_MAX && end == text_.pairs[at_]) {
    expect("(");
    out->type = std::make_unique<Type>(type_id());
    expect(")");
  } else {
    out->children.push_back(unary());
  }
  return grown(std::move(out));
}

ExprPtr Parser::postfix() {
  auto place = here().place;
  auto out = primary();
  while (true) {
    if (is("(")) {
      out = call(std::move(out));
    } else if (take("[")) {
      Temporarily inside(in_angles_, false);
      out = make(Kind::Index, place, "", std::move(out), assignment());
      expect("]");
    } else if (is(".") || is("->")) {
      out = member(std::move(out));
    } else if (is("++") || is("--")) {
      auto& op = next();
      out = make(Kind::Postfix, op.place, op.text, std::move(out));
    } else {
      return out;
    }
  }
}

ExprPtr Parser::primary() {
  const Token& first = here();
  if (first.kind == Token::Kind::Number || first.kind == Token::Kind::Char ||
      is("true") || is("false")) {
    return literal();
  }
  if (take("(")) {
    Temporarily inside(in_angles_, false);
    auto out = expression();
    expect(")");
    return out;
  }
  if (is("[")) {
    return lambda();
  }
  if (is("this")) {
    return make(Kind::Name, next().place, "this");
  }
  if (is("::") || is("decltype") || is("typename") || is_name(at_)) {
    return name();
  }
  unexpected("; a value is wanted");
}

ExprPtr Parser::literal() {
  const Token& word = next();
  if (word.kind != Token::Kind::Char) {
    return make(Kind::Number, word.place, word.text);
  }
  if (word.text.size() != 3) {
    fail_at(word.place, "Write this character as a number.");
  }
  auto code = make(Kind::Number, word.place, std::to_string(int(word.text[1])));
  auto cast = make(Kind::Cast, word.place, "", std::move(code));
  cast->type = std::make_unique<Type>();
  cast->type->name = "char";
  cast->type->place = word.place;
  return cast;
}

// A name, T(...), T{...} or static_cast<T>(...).
ExprPtr Parser::name() {
  bool typed = take("typename");
  bool known = typed;
  size_t end = base_end(at_, typed, known);
  size_t first = behind_namespaces(at_);
  bool alone = true; // no A:: stands before
  for (size_t i = first; i < end && end != SIZE_MAX; ++i) {
    alone &= !token(i).is("::") || i == first;
  }
  bool bare_built_in =
      meaning(token(first).text) == Meaning::BuiltInTypeTemplate &&
      end == first + 1;
  bool constructs = token(end).is("{") ||
      (token(end).is("(") && known && (alone || typed) && !bare_built_in);
  if (end != SIZE_MAX && constructs) {
    if (token(end + 1).is("*") && token(end + 3).is(")") &&
        token(end + 4).is("(")) {
      refuse("a pointer to a function: use a lambda, or a template's argument");
    }
    Type type;
    base(type);
    return construct(std::move(type));
  }
  if (end == first + 1 && meaning(token(first).text) == Meaning::Type) {
    at_ = end;
    if (here().kind != Token::Kind::Punct) {
      unexpected();
    }
    fail_at(
        token(first).place,
        "{} is a type here, not a value.",
        quoted(token(first).text));
  }
  skip_namespaces();
  auto out = make(Kind::Name);
  std::unique_ptr<Type> scope;
  while (true) {
    bool arguments = arguments_end(at_) != SIZE_MAX;
    auto place = here().place;
    std::string text = take_name();
    bool converts = text == "static_cast" || text == "reinterpret_cast" ||
        text == "const_cast" || text == "as_type";
    if (arguments && converts) {
      expect("<");
      out->arguments.emplace_back().type = std::make_unique<Type>(type_id());
      expect(">");
    } else if (arguments) {
      out->arguments = template_arguments();
    }
    if (!take("::")) {
      out->text += text;
      break;
    }
    take("template");
    if (!arguments && !scope) {
      out->text += text + "::";
      continue;
    }
    if (!out->text.empty()) {
      refuse(
          place, "a template within a namespace's struct: use its name alone");
    }
    auto next = std::make_unique<Type>();
    next->place = place;
    next->name = std::move(text);
    next->arguments = std::move(out->arguments);
    out->arguments.clear();
    next->scope = std::move(scope);
    scope = std::move(next);
  }
  out->type = std::move(scope);
  return out;
}

// T(a, b), T{a, b}.
ExprPtr Parser::construct(Type type) {
  auto out = make(Kind::Construct, type.place);
  out->type = std::make_unique<Type>(std::move(type));
  items(is("(") ? ")" : "}", *out);
  return grown(std::move(out));
}

ExprPtr Parser::call(ExprPtr callee) {
  bool casts = callee->kind == Kind::Name &&
      (callee->text == "static_cast" || callee->text == "reinterpret_cast" ||
       callee->text == "const_cast");
  if (!casts) {
    auto place = callee->place;
    auto out = make(Kind::Call, place, "", std::move(callee));
    items(")", *out);
    return grown(std::move(out));
  }
  auto out = make(Kind::Cast, callee->place, callee->text);
  items(")", *out);
  if (callee->arguments.size() != 1 || out->children.size() != 1) {
    fail_at(out->place, "{} needs one type and one value.", out->text);
  }
  out->type = std::move(callee->arguments[0].type);
  return grown(std::move(out));
}

ExprPtr Parser::member(ExprPtr of) {
  bool arrow = next().is("->");
  bool templated = take("template");
  bool arguments = templated || arguments_end(at_) != SIZE_MAX;
  auto place = here().place;
  auto out = make(Kind::Member, place, take_name(), std::move(of));
  out->arrow = arrow;
  if (arguments) {
    out->arguments = template_arguments();
  }
  return out;
}

// [&](T a, auto b) -> R { ... }
ExprPtr Parser::lambda() {
  auto out = make(Kind::Lambda);
  Depth depth(*this);
  InScope scope(*this);
  at_ = text_.pairs[at_] + 1;
  if (is("<")) {
    fail_at(out->place, "A lambda cannot be a template; use auto.");
  }
  if (is("(")) {
    out->parameters = parameters();
  }
  if (take("->")) {
    out->type = std::make_unique<Type>(type_id());
  }
  Temporarily inside(in_angles_, false);
  int before = std::exchange(deepest_, 0);
  out->body = block();
  out->height = std::max(deepest_ - depth_, 0) + 1;
  deepest_ = std::max(deepest_, before);
  return grown(std::move(out));
}

// {a, b} or, of a declared variable, (a, b).
ExprPtr Parser::list() {
  auto out = make(Kind::List);
  items(is("{") ? "}" : ")", *out);
  return grown(std::move(out));
}

// From a bracket to its `close`, with commas between.
void Parser::items(std::string_view close, Expr& out) {
  Depth depth(*this);
  bracketed(here().text, close, [&] {
    if (is(".") && close == "}") {
      refuse("`.field = value`: list the values in order");
    }
    out.children.push_back(is("{") ? list() : assignment());
    if (is("...")) {
      refuse("a parameter pack: write each parameter");
    }
  });
}

} // namespace msl

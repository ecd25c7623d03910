#include "msl/parser.h"

#include "msl/parse.h"

namespace msl {

void Parser::check_depth(int depth) const {
  constexpr int deepest = 500;
  if (depth > deepest) {
    fail(
        "Expressions or statements are nested more than {} deep; move a part "
        "into a variable or a function.",
        deepest);
  }
}

// Behind the last one: a token without text.
const Token& Parser::token(size_t i) const {
  static const Token end;
  return i < text_.tokens.size() ? text_.tokens[i] : end;
}

bool Parser::is_name(size_t i) const {
  return token(i).is_name() && !is_keyword(token(i).text) &&
      !is_qualifier(token(i).text);
}

bool Parser::take(std::string_view text) {
  bool found = is(text);
  at_ += found;
  return found;
}

void Parser::expect(std::string_view text) {
  if (!take(text)) {
    unexpected("; " + quoted(text) + " is wanted");
  }
}

std::string Parser::take_name() {
  if (!is_name(at_)) {
    unexpected("; a name is wanted");
  }
  return std::string(text_.tokens[at_++].text);
}

void Parser::unexpected(const std::string& wanted) const {
  const auto& tokens = text_.tokens;
  if (done()) {
    fail_at(
        tokens.empty() ? Place{} : tokens.back().place,
        in_condition_
            ? "The condition has no end; add what is missing."
            : "The text ends within a statement: is a `;` missing here?");
  }
  const Token& found = tokens[at_];
  if (found.kind == Token::Kind::String) {
    refuse("a string: kernels have none, so take it out");
  }
  std::string message = quoted(found.text) + " is not expected";
  if (at_ == 0 || (found.is_name() && is_keyword(found.text))) {
    fail_at(found.place, "{} here.", message);
  }
  const Token& before = tokens[at_ - 1];
  message += " behind " + quoted(before.text);
  if (found.place.line != before.place.line) {
    fail_at(
        before.place, "{}: is a `;` missing at the end of this line?", message);
  }
  fail_at(found.place, "{}{}.", message, wanted);
}

void Parser::refuse(std::string_view way) const {
  refuse(here().place, way);
}

void Parser::refuse(const Place& place, std::string_view way) const {
  fail_at(place, "Not supported: {}.", way);
}

// The index behind `metal::`, `a::b::` and a `::` before everything.
size_t Parser::behind_namespaces(size_t i) const {
  i += token(i).is("::");
  while (token(i).is_name() && token(i + 1).is("::") &&
         file_.namespaces.contains(token(i).text)) {
    i += 2;
  }
  return i;
}

void Parser::skip_namespaces() {
  at_ = behind_namespaces(at_);
}

Unit parse(
    std::string_view header,
    std::string_view body,
    std::span<const std::string> types) {
  Arena arena;
  auto source = preprocess(header, body, arena);
  FileNames file;
  Unit unit;
  unit.declarations = Parser(tidy(source.header, arena), file).unit();
  for (const auto& type : types) {
    file.scope.names[type] = Meaning::Type;
  }
  unit.body = Parser(tidy(source.body, arena), file).body();
  return unit;
}

} // namespace msl

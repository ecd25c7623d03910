#include "msl/parser.h"

namespace msl {

Meaning Parser::meaning(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    auto found = scopes_[i]->names.find(name);
    if (found != scopes_[i]->names.end()) {
      return found->second;
    }
  }
  return built_in_meaning(name);
}

// Declares a name in the innermost scope, skipping those of templates.
void Parser::declare(std::string_view name, Meaning role) {
  size_t i = scopes_.size() - 1;
  while (scopes_[i]->of_template) {
    --i;
  }
  scopes_[i]->names[name] = role;
}

// Declares a type or, behind the parameters of a template, a template of types.
void Parser::declare_type(std::string_view name) {
  declare(
      name,
      scopes_.back()->of_template ? Meaning::TypeTemplate : Meaning::Type);
}

bool Parser::points(size_t i) const {
  return token(i).is("*") || token(i).is("&") || token(i).is("&&");
}

// The index of the `>` that ends the template arguments that the `<` at `open`
// begins, or SIZE_MAX. `simple`: of names, numbers, * and & only.
size_t Parser::angle_end(size_t open, bool simple) const {
  int depth = 0;
  for (size_t i = open; i < text_.tokens.size(); ++i) {
    const Token& one = token(i);
    if (one.is("<")) {
      ++depth;
    } else if (one.is(">")) {
      if (--depth == 0) {
        return i;
      }
    } else if (!simple && (one.is("(") || one.is("["))) {
      i = text_.pairs[i];
    } else if (one.is(";") || one.is("{") || text_.pairs[i] != SIZE_MAX) {
      return SIZE_MAX;
    } else if (
        simple && one.kind == Token::Kind::Punct && !one.is(",") &&
        !one.is("*") && !one.is("::") && !one.is("&")) {
      return SIZE_MAX;
    }
  }
  return SIZE_MAX;
}

// The end of the arguments of the template that the name at `i` is, or
// SIZE_MAX: `<` behind it compares.
size_t Parser::arguments_end(size_t i) const {
  size_t open = i + 1;
  if (!token(open).is("<")) {
    return SIZE_MAX;
  }
  bool member = i > 0 && (token(i - 1).is(".") || token(i - 1).is("->"));
  auto role = member ? Meaning::None : meaning(token(i).text);
  if (role == Meaning::TypeTemplate || role == Meaning::ValueTemplate ||
      role == Meaning::BuiltInTypeTemplate ||
      (i > 0 && token(i - 1).is("template"))) {
    return angle_end(open, false);
  }
  if (role == Meaning::Variable || role == Meaning::Type) {
    return SIZE_MAX;
  }
  // A name that is not known: a call with types or one value, or a scope.
  size_t end = angle_end(open, true);
  if (end == SIZE_MAX || end == open + 1) {
    return SIZE_MAX;
  }
  bool typed = false, listed = false;
  for (size_t k = open + 1; k < end; ++k) {
    const Token& one = token(k);
    typed |= one.is_name() &&
        (meaning(one.text) == Meaning::Type || is_qualifier(one.text));
    listed |= one.is(",");
  }
  const Token& next = token(end + 1);
  bool begins = i == 0 || token(i - 1).is(";") || token(i - 1).is("{") ||
      token(i - 1).is("}");
  if (begins && next.is_name()) {
    return end; // Foo<N> x;
  }
  bool used = next.is("(") || next.is("::") ||
      (typed && (next.is_name() || next.is("{")));
  return used && (typed || !listed) ? end : SIZE_MAX;
}

// The index behind the name of a type at `i`, with its template arguments and
// what it is a member of; SIZE_MAX where there is no name. `known`: it can be
// nothing but a type. `qualified`: a qualifier before it says that it is one.
size_t Parser::base_end(size_t i, bool qualified, bool& known) const {
  if (token(i).is("decltype") && token(i + 1).is("(")) {
    known = true;
    return text_.pairs[i + 1] + 1;
  }
  i = behind_namespaces(i);
  if (!is_name(i)) {
    return SIZE_MAX;
  }
  auto role = meaning(token(i).text);
  size_t end = arguments_end(i);
  if (qualified && end == SIZE_MAX && role != Meaning::Variable &&
      role != Meaning::Type && token(i + 1).is("<")) {
    end = angle_end(i + 1, false);
  }
  bool templated = end != SIZE_MAX;
  bool of_types =
      role == Meaning::TypeTemplate || role == Meaning::BuiltInTypeTemplate;
  known = templated ? of_types
                    : role == Meaning::Type || role == Meaning::TypeTemplate;
  i = templated ? end + 1 : i + 1;
  while (token(i).is("::")) {
    i += 1 + token(i + 1).is("template");
    if (!is_name(i)) {
      return SIZE_MAX;
    }
    end = arguments_end(i);
    i = end == SIZE_MAX ? i + 1 : end + 1;
  }
  known |= qualified && role == Meaning::None;
  return i;
}

// The index behind the type at `i`, which can be nothing else: qualifiers, a
// name, * and &; or SIZE_MAX.
size_t Parser::type_end(size_t i) const {
  bool qualified = false;
  auto qualifiers = [&] {
    for (; token(i).is_name(); ++i) {
      auto text = token(i).text;
      if (!is_qualifier(text) && text != "typename" && text != "struct") {
        break;
      }
      qualified = true;
    }
  };
  qualifiers();
  bool known = false;
  i = base_end(i, qualified, known);
  if (i == SIZE_MAX || !known) {
    return SIZE_MAX;
  }
  for (qualifiers(); points(i); qualifiers()) {
    ++i;
  }
  return i;
}

// Whether the ( at `open` holds the type of a cast.
bool Parser::casts(size_t open) const {
  size_t close = text_.pairs[open];
  if (type_end(open + 1) == close) {
    return true;
  }
  // (Foo)x, where nothing else says that Foo is a type.
  size_t name = behind_namespaces(open + 1);
  if (name + 1 != close || !is_name(name) ||
      meaning(token(name).text) != Meaning::None) {
    return false;
  }
  const Token& next = token(close + 1);
  return is_name(close + 1) || next.is("sizeof") || next.is("true") ||
      next.is("false") || next.is("this") || next.kind == Token::Kind::Number ||
      next.is("(") || next.is("!") || next.is("~");
}

// Whether a declaration begins here: qualifiers, or a type and a name.
bool Parser::declares() const {
  static constexpr std::string_view words[] = {
      "static", "typename", "struct", "class", "enum"};
  if (!here().is_name()) {
    return is("::") && is_name(behind_namespaces(at_));
  }
  for (auto word : words) {
    if (is(word)) {
      return true;
    }
  }
  if (is_qualifier(here().text)) {
    return true;
  }
  bool known = false;
  size_t i = base_end(at_, false, known);
  if (i == SIZE_MAX) {
    return false;
  }
  while (points(i) || is_qualifier(token(i).text)) {
    if (!known && !token(i).is_name()) {
      return false; // a * b
    }
    ++i;
  }
  bool binding = is("auto") && token(i).is("[");
  bool in_brackets = known && token(i).is("(") &&
      (token(i + 1).is("*") || token(i + 1).is("&")) && is_name(i + 2) &&
      token(i + 3).is(")") && token(i + 4).is("[");
  return is_name(i) || binding || in_brackets;
}

// Whether the ( here, behind a declared name within a function, begins a
// function's parameters rather than a variable's value.
bool Parser::calls_function() const {
  if (is(")", 1)) {
    return true;
  }
  size_t end = type_end(at_ + 1);
  return end != SIZE_MAX &&
      (is_name(end) || token(end).is(",") ||
       (end == text_.pairs[at_] && token(end + 1).is("{")));
}

} // namespace msl

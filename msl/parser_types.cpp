#include <utility>

#include "msl/parse.h"
#include "msl/parser.h"

namespace msl {

// One of const, device ...
void Parser::qualify(Type& out) {
  std::string_view text = here().text;
  if (is_space(text)) {
    out.space = text == "device" ? Space::Device
        : text == "constant"     ? Space::Constant
        : text == "threadgroup"  ? Space::Threadgroup
        : text == "thread"       ? Space::Thread
                                 : Space::None;
    if (out.space == Space::None) {
      fail(
          "The address space {} is not supported: use device, constant, "
          "threadgroup or thread.",
          quoted(text));
    }
  }
  out.is_const |= text == "const" || text == "constexpr";
  out.is_volatile |= text == "volatile";
  ++at_;
}

// A name with its template's arguments, A::B, Foo<T>::type, decltype(x).
void Parser::base(Type& out) {
  Depth depth(*this);
  out.place = here().place;
  if (take("decltype")) {
    out.name = "decltype";
    expect("(");
    out.of = expression();
    expect(")");
    return;
  }
  skip_namespaces();
  while (true) {
    bool arguments = is("<", 1) &&
        (meaning(here().text) != Meaning::Variable) &&
        angle_end(at_ + 1, false) != SIZE_MAX;
    out.name = take_name();
    if (arguments) {
      out.arguments = template_arguments();
    }
    if (!is("::")) {
      return;
    }
    auto scope = std::make_unique<Type>();
    scope->place = out.place;
    scope->name = std::move(out.name);
    scope->arguments = std::move(out.arguments);
    scope->scope = std::move(out.scope);
    out.arguments.clear();
    out.scope = std::move(scope);
    expect("::");
    take("template");
  }
}

// Everything before the first declarator. `made` takes the structs and enums
// that are defined there; null: they were taken before.
Parser::Specifiers Parser::specifiers(std::vector<Declaration>* made) {
  Specifiers out;
  out.place = out.type.place = here().place;
  std::vector<Declaration> unused;
  bool typed = false;
  for (; here().is_name(); typed = typed || !out.type.name.empty()) {
    bool defines = is("struct") || is("class") || is("enum");
    if (take("static")) {
      out.is_static = true;
    } else if (is_qualifier(here().text)) {
      out.is_constexpr |= is("constexpr");
      qualify(out.type);
    } else if (typed) {
      break;
    } else if (defines) {
      is("enum") ? enumeration(made ? *made : unused, out.type)
                 : aggregate(made ? *made : unused, out.type);
      typed = true;
    } else if (in_struct_ && here().text == struct_name_ && is("(", 1)) {
      out.constructs = true;
      break;
    } else if (is("operator")) {
      refuse("a conversion operator: write a method");
    } else {
      take("typename");
      if (!is("struct") && !is("class") && !is("enum")) {
        base(out.type);
      }
    }
  }
  if (!typed && !out.constructs && !is("::")) {
    unexpected();
  }
  if (!typed && !out.constructs) {
    base(out.type);
  }
  return out;
}

// Parses the specifiers again for the next declarator: types cannot be copied.
Type Parser::specifiers_again(size_t begin) {
  size_t now = std::exchange(at_, begin);
  Type out = specifiers(nullptr).type;
  at_ = now;
  return out;
}

// * & before an optional name and [] behind it; declares it as `what`.
void Parser::declarator(Declarator& out, Meaning role) {
  Depth depth(*this);
  for (;; ++at_) {
    if (is("*")) {
      ++out.type.pointers;
    } else if (is("&") || is("&&")) {
      out.type.reference = true;
    } else if (!is_qualifier(here().text)) {
      break;
    }
  }
  bool in_brackets =
      is("(") && (is("*", 1) || is("&", 1) || (is_name(at_ + 1) && is(")", 2)));
  if (in_brackets) {
    ++at_;
    declarator(out, role);
    expect(")");
  } else if (is_name(at_)) {
    out.place = here().place;
    declared_ = here().text;
    if (role != Meaning::None) {
      declare(declared_, role);
    }
    out.name = take_name();
  } else if (is("[") && out.type.name == "auto") {
    refuse("`auto [a, b]`: name each value");
  }
  extents(out);
}

void Parser::extents(Declarator& out) {
  while (take("[")) {
    out.extents.push_back(is("]") ? nullptr : assignment());
    expect("]");
  }
}

// = value, {...} and, within a function, (...).
void Parser::initializer(Declarator& out, bool in_function) {
  if (take("=")) {
    out.value = is("{") ? list() : assignment();
  } else if (is("{")) {
    out.value = list();
  } else if (in_function && is("(")) {
    if (calls_function()) {
      fail_at(
          out.place,
          "A function cannot be declared here; write it into the kernel's "
          "header.");
    }
    out.value = list();
    out.constructed = true;
  }
}

// A type without a name: of a cast, a template's argument.
Type Parser::type_id() {
  Declarator out;
  out.place = here().place;
  out.type = specifiers(nullptr).type;
  declarator(out, Meaning::None);
  if (!out.extents.empty()) {
    fail_at(
        out.type.place,
        "An array is not a type here; use array<T, N> or a struct.");
  }
  if (!out.name.empty()) {
    fail_at(out.place, "A type has no name here.");
  }
  return std::move(out.type);
}

std::vector<TemplateArgument> Parser::template_arguments() {
  std::vector<TemplateArgument> out;
  bracketed("<", ">", [&] { out.push_back(template_argument()); });
  return out;
}

// A type, a value, or a name that may be either.
TemplateArgument Parser::template_argument() {
  Depth depth(*this);
  auto ends = [&](size_t i) { return token(i).is(",") || token(i).is(">"); };
  TemplateArgument out;
  size_t begin = at_, end = type_end(at_);
  if (end != SIZE_MAX && (ends(end) || token(end).is("["))) {
    out.type = std::make_unique<Type>(type_id());
    return out;
  }
  bool known = false;
  end = base_end(at_, false, known);
  if (end != SIZE_MAX && ends(end)) {
    out.type = std::make_unique<Type>();
    base(*out.type);
    at_ = begin;
  }
  out.value = assignment();
  return out;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> out;
  bracketed("(", ")", [&] { out.push_back(parameter()); });
  bool nothing = out.size() == 1 && out[0].declarator.name.empty() &&
      out[0].declarator.type.name == "void" &&
      out[0].declarator.type.pointers == 0;
  if (nothing) {
    out.clear();
  }
  return out;
}

Parameter Parser::parameter(Meaning role) {
  Parameter out;
  size_t begin = at_;
  out.declarator.place = here().place;
  if (is("...")) {
    refuse("`...`: write each parameter");
  }
  out.declarator.type = specifiers(nullptr).type;
  declarator(out.declarator, role);
  if (is("...")) {
    refuse("a parameter pack: write each parameter");
  }
  if (take("=")) {
    out.declarator.value = is("{") ? list() : assignment();
  }
  for (size_t i = begin; i < at_; ++i) {
    if (auto found = text_.attributes.find(i);
        found != text_.attributes.end()) {
      auto& all = found->second;
      out.attributes.insert(out.attributes.end(), all.begin(), all.end());
    }
  }
  return out;
}

} // namespace msl

#include <utility>

#include "msl/parse.h"
#include "msl/parser.h"

namespace msl {

using Kind = Declaration::Kind;

namespace {

Declaration alias(const Place& place, std::string name, Type type) {
  Declaration out;
  out.kind = Kind::Using;
  out.place = place;
  out.name = std::move(name);
  out.result = std::move(type);
  return out;
}

} // namespace

std::vector<Declaration> Parser::unit() {
  scopes_ = {&file_.scope};
  std::vector<Declaration> out;
  while (!done()) {
    declaration(out);
  }
  return out;
}

// For declarations at file level, in a struct, and of types within a function.
void Parser::declaration(std::vector<Declaration>& out) {
  Depth depth(*this);
  if (take(";")) {
    return;
  }
  if (is("namespace") || (is("inline") && is("namespace", 1))) {
    namespace_definition(out);
  } else if (is("template")) {
    templated(out);
  } else if (is("using")) {
    using_declaration(out);
  } else if (is("typedef")) {
    type_definition(out);
  } else if (is("static_assert")) {
    out.push_back(static_assertion());
  } else {
    size_t begin = at_;
    auto before = specifiers(&out);
    if (take(";")) {
      return;
    }
    if (function_follows()) {
      function(std::move(before), out);
    } else {
      constants(std::move(before), begin, out);
    }
  }
}

// Declarations in a namespace become the file's, so that lookup needs no
// qualifier.
void Parser::namespace_definition(std::vector<Declaration>& out) {
  expect("namespace");
  while (is_name(at_)) {
    file_.namespaces.insert(here().text);
    ++at_;
    take("::");
  }
  if (is("=")) {
    fail(
        "Another name for a namespace is not supported; write the namespace's "
        "own.");
  }
  expect("{");
  while (!is("}")) {
    declaration(out);
  }
  expect("}");
}

void Parser::templated(std::vector<Declaration>& out) {
  auto place = here().place;
  expect("template");
  if (!is("<")) {
    refuse(place, "an explicit instantiation: leave it out");
  }
  InScope scope(*this, true);
  std::vector<TemplateParameter> parameters;
  bracketed("<", ">", [&] { parameters.push_back(template_parameter()); });
  std::vector<Declaration> made;
  declaration(made);
  for (auto& one : made) {
    if (!one.parameters.empty() && !parameters.empty()) {
      fail_at(
          place, "A template within a template's template is not supported.");
    }
    one.specialization |= parameters.empty();
    if (&one == &made.back()) {
      one.parameters = std::move(parameters);
    }
    out.push_back(std::move(one));
  }
}

TemplateParameter Parser::template_parameter() {
  TemplateParameter out;
  auto refuse_pack = [&] {
    if (is("...")) {
      fail(
          "Templates with any number of parameters are not supported; write "
          "one for each number that is used.");
    }
  };
  refuse_pack();
  if (is("template") || is("auto")) {
    fail(
        "The parameter of a template is a type or a number here, not {}.",
        quoted(here().text));
  }
  // `typename T::type n` is a value.
  bool value = is("typename") && is("::", 2);
  if (!value && (take("typename") || take("class"))) {
    refuse_pack();
    out.is_type = true;
    if (is_name(at_)) {
      scopes_.back()->names[here().text] = Meaning::Type;
      out.name = take_name();
    }
    if (take("=")) {
      out.default_type = std::make_unique<Type>(type_id());
    }
    return out;
  }
  declared_ = {};
  auto as = parameter(Meaning::None);
  refuse_pack();
  out.type = std::move(as.declarator.type);
  out.name = std::move(as.declarator.name);
  out.default_value = std::move(as.declarator.value);
  if (!out.name.empty()) {
    scopes_.back()->names[declared_] = Meaning::Variable;
  }
  return out;
}

// using namespace metal; using metal::exp; using T = float;
void Parser::using_declaration(std::vector<Declaration>& out) {
  auto place = here().place;
  expect("using");
  if (take("namespace")) {
    while (!done() && !is(";")) {
      ++at_;
    }
    expect(";");
    return;
  }
  size_t name = behind_namespaces(at_);
  if (name != at_ && is_name(name) && token(name + 1).is(";")) {
    at_ = name + 2; // namespaces are dropped anyway
    return;
  }
  declare_type(here().text);
  auto text = take_name();
  expect("=");
  out.push_back(alias(place, std::move(text), type_id()));
  expect(";");
}

void Parser::type_definition(std::vector<Declaration>& out) {
  auto place = here().place;
  expect("typedef");
  size_t begin = at_;
  auto type = specifiers(&out).type; // typedef struct A {...} B;
  declarators(std::move(type), begin, Meaning::Type, [&](Declarator& one) {
    if (!one.extents.empty()) {
      fail_at(
          one.place,
          "A type that is an array is not supported; use array<T, N> or a "
          "struct.");
    }
    out.push_back(alias(place, one.name, std::move(one.type)));
  });
  expect(";");
}

// struct A {...}, of which specifiers() may name the type; only the name
// follows, or no body, where it is declared elsewhere.
void Parser::aggregate(std::vector<Declaration>& out, Type& named) {
  Declaration made;
  made.kind = Kind::Struct;
  made.place = here().place;
  ++at_; // struct, class
  if (!is_name(at_)) {
    fail_at(made.place, "Give this struct a name.");
  }
  size_t name = at_;
  size_t angles = is("<", 1) ? angle_end(at_ + 1, false) : SIZE_MAX;
  size_t next = angles == SIZE_MAX ? at_ + 1 : angles + 1;
  next += token(next).is("final");
  if (!token(next).is("{") && !token(next).is(":")) {
    if (token(next).is(";")) { // only declared
      declare_type(token(name).text);
    }
    base(named);
    return;
  }
  made.name = take_name();
  if (angles != SIZE_MAX) {
    made.specialized = template_arguments();
    made.specialization = true;
  } else {
    declare_type(token(name).text);
  }
  take("final");
  if (is(":")) {
    refuse("a struct that inherits: give it a field instead");
  }
  named.name = made.name;
  Temporarily in_struct(in_struct_, true);
  Temporarily struct_name(struct_name_, token(name).text);
  fields(made);
  out.push_back(std::move(made));
}

void Parser::fields(Declaration& out) {
  InScope scope(*this);
  expect("{");
  while (!is("}")) {
    bool access = is("public") || is("private") || is("protected");
    if (access && is(":", 1)) {
      at_ += 2;
    } else if (is("template")) {
      templated(out.methods);
    } else if (is("using") || is("typedef") || is("static_assert")) {
      declaration(out.types);
    } else if (!take(";")) {
      members(out);
    }
  }
  expect("}");
}

// Fields of one type, or a method.
void Parser::members(Declaration& out) {
  size_t begin = at_;
  auto before = specifiers(&out.types);
  if (take(";")) {
    return;
  }
  if (before.constructs || function_follows()) {
    function(std::move(before), out.methods);
    return;
  }
  auto field = [&](Declarator& one) {
    one.is_static = before.is_static;
    if (is(":")) {
      refuse("a field of some bits: shift and mask an integer");
    }
    if (one.name.empty()) {
      unexpected();
    }
    initializer(one, false);
    out.fields.push_back(std::move(one));
  };
  declarators(std::move(before.type), begin, Meaning::Variable, field);
  expect(";");
}

// Whether a name with parameters follows the type.
bool Parser::function_follows() const {
  size_t i = at_;
  while (points(i) || is_qualifier(token(i).text)) {
    ++i;
  }
  if (token(i).is("operator")) {
    return true;
  }
  if (!is_name(i)) {
    return false;
  }
  size_t angles = token(i + 1).is("<") ? angle_end(i + 1, false) : SIZE_MAX;
  i = angles == SIZE_MAX ? i + 1 : angles + 1;
  if (token(i).is("::")) {
    fail_at(
        token(i - 1).place, "Write the method into the struct, not behind it.");
  }
  return token(i).is("(");
}

// Functions, methods and constructors; with a body or without.
void Parser::function(Specifiers before, std::vector<Declaration>& out) {
  Declaration made;
  made.kind = Kind::Function;
  made.is_static = before.is_static;
  made.is_constexpr = before.is_constexpr;
  made.result = std::move(before.type);
  for (; points(at_) || is_qualifier(here().text); ++at_) {
    made.result.pointers += is("*");
    made.result.reference |= points(at_) && !is("*");
  }
  function_name(made);
  bool defaulted = false;
  InScope scope(*this);
  Temporarily in_struct(in_struct_, false);
  made.takes = parameters();
  for (; is_qualifier(here().text); ++at_) {
    made.is_const |= is("const"); // a space says of which kind `this` is
  }
  if (take("->")) {
    made.result = type_id();
  }
  function_body(made, defaulted);
  if (!defaulted) {
    out.push_back(std::move(made));
  }
}

void Parser::function_name(Declaration& out) {
  out.place = here().place;
  if (take("operator")) {
    out.name = "operator";
    if (here().kind != Token::Kind::Punct) {
      refuse(out.place, "a conversion operator: write a method");
    }
    do {
      out.name += next().text;
    } while (!done() && !is("(") && here().kind == Token::Kind::Punct);
    return;
  }
  bool in_template = scopes_.back()->of_template;
  if (in_template && here().text != struct_name_) {
    declare(here().text, Meaning::ValueTemplate);
  }
  out.name = take_name();
  if (is("<")) {
    out.specialized = template_arguments();
  }
}

// The body, and the `: field(value)` of a constructor before it.
void Parser::function_body(Declaration& out, bool& defaulted) {
  if (take("=")) {
    defaulted = true;
    ++at_; // default, delete
    expect(";");
    return;
  }
  if (take(";")) {
    return;
  }
  if (take(":")) {
    do {
      auto field = take_name();
      if (!is("(") && !is("{")) {
        unexpected();
      }
      out.initializers.emplace_back(std::move(field), list());
    } while (take(","));
  }
  if (!is("{")) {
    unexpected();
  }
  out.body = block();
}

// Variables at file level.
void Parser::constants(
    Specifiers before,
    size_t begin,
    std::vector<Declaration>& out) {
  auto role =
      scopes_.back()->of_template ? Meaning::ValueTemplate : Meaning::Variable;
  declarators(std::move(before.type), begin, role, [&](Declarator& one) {
    Declaration made;
    made.kind = Kind::Constant;
    made.place = before.place;
    made.is_static = before.is_static;
    made.is_constexpr = before.is_constexpr;
    if (one.name.empty()) {
      unexpected();
    }
    initializer(one, false);
    made.name = one.name;
    made.constant = std::move(one);
    out.push_back(std::move(made));
  });
  expect(";");
}

// Makes each enumerator a constant; without a value it is the last one plus 1.
void Parser::enumeration(std::vector<Declaration>& out, Type& named) {
  auto place = here().place;
  expect("enum");
  bool scoped = take("class") || take("struct");
  bool defines = is("{") || is("{", 1) || is(":") || is(":", 1);
  if (!defines) {
    base(named);
    return;
  }
  std::string name;
  if (is_name(at_)) {
    declare(here().text, Meaning::Type);
    name = take_name();
  }
  Type as;
  as.place = place;
  as.name = "int";
  if (take(":")) {
    as = type_id();
  }
  named.name = name.empty() ? as.name : name;
  if (!name.empty()) {
    Type is;
    is.place = as.place;
    is.name = as.name;
    out.push_back(alias(place, name, std::move(is)));
  }
  if (!is("{")) {
    return;
  }
  std::string before;
  bracketed("{", "}", [&] {
    auto made = enumerator(scoped ? name : "", before);
    made.constant.type.name = as.name;
    made.constant.type.place = as.place;
    before = made.name;
    out.push_back(std::move(made));
  });
}

Declaration Parser::enumerator(
    const std::string& scope,
    const std::string& before) {
  Declaration out;
  out.kind = Kind::Constant;
  out.place = out.constant.place = here().place;
  out.is_constexpr = out.constant.type.is_const = true;
  if (scope.empty()) {
    declare(here().text, Meaning::Variable);
  }
  out.name = (scope.empty() ? "" : scope + "::") + take_name();
  out.constant.name = out.name;
  using EK = Expr::Kind;
  auto& place = out.place;
  if (take("=")) {
    out.constant.value = assignment();
  } else if (before.empty()) {
    out.constant.value = make(EK::Number, place, "0");
  } else {
    auto last = make(EK::Name, place, before);
    auto one = make(EK::Number, place, "1");
    out.constant.value =
        make(EK::Binary, place, "+", std::move(last), std::move(one));
  }
  return out;
}

Declaration Parser::static_assertion() {
  Declaration out;
  out.kind = Kind::StaticAssert;
  out.place = out.constant.place = here().place;
  expect("static_assert");
  expect("(");
  out.constant.value = assignment();
  if (take(",")) {
    std::string text;
    for (; here().kind == Token::Kind::String; ++at_) {
      text += here().text.substr(1, here().text.size() - 2);
    }
    out.name = std::move(text);
  }
  expect(")");
  expect(";");
  return out;
}

} // namespace msl

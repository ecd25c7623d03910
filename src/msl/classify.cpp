// The grammar has no table of names: to it `(a)-b` may be a cast, `a * b;` a
// declaration, `f(a < b, c > (d))` a call of f with one argument. Here names
// are known, so that each such place gets a spelling that can be read in one
// way: a product becomes a quotient, `&` `bitand`, a comparison `<=`, a type
// `int`, any other name `v`, and brackets around a mere name go. What the user
// wrote is looked up afterwards by the position of the word.
#include "msl/classify.h"

#include <algorithm>

#include "msl/parse.h"

namespace mlx::core::vulkan::msl {

using Role = Word::Role;

void classify(Words& words, NameScope& file, bool in_function) {
  Classifier(words, file, in_function).run();
}

Classifier::Classifier(Words& words, NameScope& file, bool in_function)
    : words_(words),
      pairs_(pairs(words)),
      kinds_(words.size(), BraceKind::Unknown) {
  file.kind = in_function ? NameScope::Kind::Block : NameScope::Kind::File;
  file.end = SIZE_MAX;
  scopes_.push_back(&file);
}

void Classifier::run() {
  for (size_t i = 0; i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.role == Role::Fixed) {
      // An operator's name.
    } else if (word.is_name()) {
      word_name(i);
    } else if (word.token.kind == Token::Kind::Punct) {
      punctuation(i);
    } else {
      words_[i].spelling =
          word.token.kind == Token::Kind::String ? "\"\"" : "1";
    }
    if (!words_[i].dropped) {
      last_ = i;
    }
    while (scopes_.back()->end <= i) {
      scopes_.pop_back();
    }
  }
}

Meaning Classifier::meaning(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    auto found = scopes_[i]->names.find(name);
    if (found != scopes_[i]->names.end()) {
      return found->second;
    }
  }
  return built_in_meaning(name);
}

// In the innermost scope that is not only a template's.
void Classifier::declare(std::string_view name, Meaning what) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (scopes_[i]->kind != NameScope::Kind::Template &&
        scopes_[i]->kind != NameScope::Kind::List) {
      scopes_[i]->names[name] = what;
      return;
    }
  }
}

void Classifier::push(NameScope::Kind kind, size_t end, std::string_view name) {
  NameScope scope;
  scope.kind = kind;
  scope.end = end;
  scope.name = name;
  scopes_.push_back(&owned_.emplace_back(std::move(scope)));
}

// The innermost scope that is not only a template's.
const NameScope* Classifier::around() const {
  size_t k = scopes_.size() - 1;
  while (scopes_[k]->kind == NameScope::Kind::Template) {
    --k;
  }
  return scopes_[k];
}

bool Classifier::in_template() const {
  return scopes_.back()->kind == NameScope::Kind::Template;
}

// Whether what ends here is a value, so that an operator behind it has two
// sides.
bool Classifier::ends_operand(size_t i) const {
  if (i == SIZE_MAX) {
    return false;
  }
  const Word& word = words_[i];
  switch (word.token.kind) {
    case Token::Kind::Name:
      return word.role == Role::Plain &&
          (!is_keyword(word.token.text) || word.is("this") || word.is("true") ||
           word.is("false"));
    case Token::Kind::Punct:
      return (word.is(")") && !word.casts && !word.controls) ||
          (word.is("]") && !is_capture(pairs_[i])) ||
          (word.is("}") && (word.initializes || word.ends_lambda)) ||
          word.postfix;
    default:
      return true;
  }
}

// `[` of a lambda.
bool Classifier::is_capture(size_t open) const {
  size_t close = pairs_[open];
  bool lambda = close + 1 < words_.size() &&
      (words_[close + 1].is("(") || words_[close + 1].is("{"));
  return lambda && !kinds_.empty() && kinds_[open] == BraceKind::Capture;
}

// The end of `<...` as the arguments of a template, or SIZE_MAX.
size_t Classifier::angle_end(size_t open, bool simple) const {
  int depth = 0;
  for (size_t i = open; i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.is("<")) {
      ++depth;
    } else if (word.is(">")) {
      if (--depth == 0) {
        return i;
      }
    } else if (word.is(">>")) {
      depth -= 2; // also of one inside another
      if (depth <= 0) {
        return i;
      }
    } else if (word.is("(") || word.is("[")) {
      if (simple) {
        return SIZE_MAX;
      }
      i = pairs_[i];
    } else if (
        word.is(";") || word.is("{") || word.is("}") || word.is(")") ||
        word.is("]")) {
      return SIZE_MAX;
    } else if (
        simple && i != open && word.token.kind == Token::Kind::Punct &&
        !word.is(",") && !word.is("*") && !word.is("::") && !word.is("&")) {
      return SIZE_MAX;
    }
  }
  return SIZE_MAX;
}

// Whether the `<` behind the name at `i` begins the arguments of a template.
size_t Classifier::arguments_end(size_t i) const {
  size_t open = i + 1;
  if (open >= words_.size() || !words_[open].is("<")) {
    return SIZE_MAX;
  }
  auto what = meaning(words_[i].token.text);
  bool member = i > 0 && (words_[i - 1].is(".") || words_[i - 1].is("->"));
  if (!member &&
      (what == Meaning::TypeTemplate || what == Meaning::ValueTemplate ||
       what == Meaning::BuiltInTypeTemplate)) {
    return angle_end(open, false);
  }
  if (what == Meaning::Variable || (what == Meaning::Type && !member)) {
    return SIZE_MAX;
  }
  // A name that is not known: a call with types or one value, or a qualified
  // name.
  size_t end = angle_end(open, true);
  if (end == SIZE_MAX || end + 1 >= words_.size() || end == open + 1) {
    return SIZE_MAX;
  }
  bool typed = false, listed = false;
  for (size_t k = open + 1; k < end; ++k) {
    typed |= words_[k].is_name() &&
        (meaning(words_[k].token.text) == Meaning::Type ||
         is_qualifier(words_[k].token.text));
    listed |= words_[k].is(",");
  }
  if (words_[end].is(">>") && !typed) {
    return SIZE_MAX; // a < b >> (c)
  }
  bool begins = i == 0 || words_[i - 1].is(";") || words_[i - 1].is("{") ||
      words_[i - 1].is("}");
  if (begins && words_[end + 1].is_name()) {
    return end; // Foo<N> x;
  }
  bool used = words_[end + 1].is("(") || words_[end + 1].is("::") ||
      (typed && (words_[end + 1].is_name() || words_[end + 1].is("{")));
  return used && (typed || !listed) ? end : SIZE_MAX;
}

// The index behind the type that begins at `i`, or SIZE_MAX. Nothing but
// qualifiers, one name, * and &.
size_t Classifier::type_end(size_t i, size_t limit) const {
  bool qualified = false, named = false;
  for (; i < limit; ++i) {
    const Word& word = words_[i];
    if (word.is_name() && is_qualifier(word.token.text)) {
      qualified = true;
    } else if (named && (word.is("*") || word.is("&") || word.is("&&"))) {
    } else if (!named && word.is_name() && word.is("decltype")) {
      named = true;
      i = i + 1 < limit && words_[i + 1].is("(") ? pairs_[i + 1] : limit;
    } else if (!named && word.is_name() && !is_keyword(word.token.text)) {
      auto what = meaning(word.token.text);
      size_t end = arguments_end(i);
      bool templated = end != SIZE_MAX &&
          (what == Meaning::TypeTemplate ||
           what == Meaning::BuiltInTypeTemplate);
      bool scoped = false;
      size_t next = templated ? end + 1 : i + 1;
      while (next + 1 < limit && words_[next].is("::") &&
             words_[next + 1].is_name()) {
        next += 2;
        scoped = true;
      }
      bool type = scoped ? templated || what == Meaning::Type || qualified
                         : templated || what == Meaning::Type ||
              (qualified && what == Meaning::None);
      if (!type) {
        return SIZE_MAX;
      }
      named = true;
      i = next - 1;
    } else {
      break;
    }
  }
  return named ? i : SIZE_MAX;
}

bool Classifier::is_type(size_t begin, size_t end) const {
  return begin < end && type_end(begin, end) == end;
}

// Whether words from begin to end are a name and what is applied to it, so that
// brackets around them say nothing.
bool Classifier::is_chain(size_t begin, size_t end) const {
  if (begin >= end) {
    return false;
  }
  if (words_[begin].is("(")) {
    return pairs_[begin] == end - 1 && is_chain(begin + 1, end - 1);
  }
  if (!words_[begin].is_name() || is_keyword(words_[begin].token.text)) {
    return false;
  }
  for (size_t i = begin; i < end;) {
    size_t arguments = words_[i].is_name() ? arguments_end(i) : SIZE_MAX;
    i = arguments == SIZE_MAX ? i + 1 : arguments + 1;
    if (i >= end) {
      return i == end;
    }
    if (words_[i].is("(") || words_[i].is("[")) {
      i = pairs_[i];
      if (i + 1 == end) {
        return true;
      }
    } else if (
        (words_[i].is(".") || words_[i].is("->") || words_[i].is("::")) &&
        i + 1 < end && words_[i + 1].is_name()) {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

void Classifier::word_name(size_t i) {
  Word& word = words_[i];
  std::string_view text = word.token.text;
  bool member = last_ != SIZE_MAX &&
      (words_[last_].is(".") || words_[last_].is("->") ||
       words_[last_].is("::"));
  if (is_qualifier(text) && !member) {
    word.role = Role::Qualifier;
    // `if constexpr` is the grammar's own.
    bool condition = last_ != SIZE_MAX && words_[last_].is("if");
    word.spelling = condition ? "constexpr" : "const";
    return;
  }
  if (is_keyword(text) && !member) {
    word.spelling = text;
    keyword(i);
    return;
  }
  word.spelling = "v";
  size_t end = arguments_end(i);
  if (end != SIZE_MAX) {
    mark_angles(i + 1, end);
    auto what = meaning(text);
    word.makes_type =
        what == Meaning::TypeTemplate || what == Meaning::BuiltInTypeTemplate;
  }
  if (member || names_.contains(i)) {
    return;
  }
  bool scope = i + 1 < words_.size() && words_[i + 1].is("::");
  if (end != SIZE_MAX || scope || is_constructor(i)) {
    return;
  }
  auto what = meaning(text);
  bool in_cast = last_ != SIZE_MAX && words_[last_].is("(") && last_ + 1 == i &&
      words_[pairs_[last_]].casts;
  if (shadows(i, what)) {
    declare(text, Meaning::Variable);
    return;
  }
  if (what == Meaning::Type || what == Meaning::TypeTemplate ||
      (what == Meaning::None && (follows_qualifier(i) || in_cast))) {
    word.role = Role::Type;
    word.spelling = "int";
    return;
  }
  construct(i);
}

void Classifier::mark_angles(size_t open, size_t end) {
  words_[open].role = Role::Angle;
  words_[end].role = Role::Angle;
  words_[open].spelling = "<";
  words_[end].spelling = words_[end].token.text;
}

// A name that is being declared, though it is a type's or a template's outside.
bool Classifier::shadows(size_t i, Meaning what) const {
  if (what == Meaning::None || last_ == SIZE_MAX || i + 1 >= words_.size()) {
    return false;
  }
  const Word& before = words_[last_];
  bool behind_type = before.role == Role::Type ||
      (before.role == Role::Angle && !before.is("<")) ||
      ((before.is("*") || before.is("&")) && before.role == Role::Qualifier);
  const Word& next = words_[i + 1];
  if (what == Meaning::ValueTemplate && next.is("(")) {
    return false; // another of its overloads
  }
  return behind_type &&
      (next.is("=") || next.is(";") || next.is(",") || next.is(")") ||
       next.is("[") || next.is("(") || next.is("{") || next.is(":"));
}

// `const Foo x`, where nothing else says that Foo is a type.
bool Classifier::follows_qualifier(size_t i) const {
  if (last_ == SIZE_MAX || words_[last_].role != Role::Qualifier ||
      !words_[last_].is_name()) {
    return false;
  }
  size_t k = last_;
  while (k > 0 && words_[k].role == Role::Qualifier && words_[k].is_name()) {
    --k;
  }
  const Word& before = words_[k];
  bool typed = before.role == Role::Type || before.role == Role::Angle ||
      before.role == Role::Qualifier || ends_operand(k);
  bool named = i + 1 < words_.size() &&
      (words_[i + 1].is_name() || words_[i + 1].is("*") ||
       words_[i + 1].is("&"));
  return !typed && named;
}

// `(Foo)x`, where nothing else says that Foo is a type; `i` is Foo.
bool Classifier::casts_to(size_t i) const {
  if (i + 2 >= words_.size() || !words_[i].is_name() ||
      !words_[i + 1].is(")") ||
      meaning(words_[i].token.text) != Meaning::None) {
    return false;
  }
  const Word& next = words_[i + 2];
  return (next.is_name() &&
          (!is_keyword(next.token.text) || next.is("sizeof") ||
           next.is("true") || next.is("false"))) ||
      next.token.kind == Token::Kind::Number || next.is("(") || next.is("!") ||
      next.is("~");
}

// The struct's own name before its constructor's parameters.
bool Classifier::is_constructor(size_t i) const {
  const NameScope* scope = around();
  if (scope->kind != NameScope::Kind::Struct ||
      scope->name != words_[i].token.text || i + 1 >= words_.size() ||
      !words_[i + 1].is("(") || last_ == SIZE_MAX) {
    return false;
  }
  const Word& before = words_[last_];
  return before.is("{") || before.is("}") || before.is(";") || before.is(":") ||
      before.role == Role::Angle || before.is("~") ||
      before.role == Role::Qualifier;
}

// `float x(1, 2), y(3);` in a function declares variables: shown with braces.
void Classifier::construct(size_t i) {
  NameScope& scope = *scopes_.back();
  if (last_ == SIZE_MAX || scope.kind != NameScope::Kind::Block ||
      scope.open > 0) {
    return;
  }
  const Word& before = words_[last_];
  bool typed = before.role == Role::Type ||
      (before.role == Role::Angle && !before.is("<")) ||
      (before.is_name() && before.role == Role::Plain &&
       !is_keyword(before.token.text)) ||
      ((before.is("*") || before.is("&")) && before.role == Role::Qualifier);
  scope.declares |= typed;
  if (!(typed || (scope.declares && before.is(","))) ||
      i + 1 >= words_.size() || !words_[i + 1].is("(")) {
    return;
  }
  Word& open = words_[i + 1];
  Word& close = words_[pairs_[i + 1]];
  open.role = close.role = Role::Fixed;
  open.initializes = close.initializes = true;
  open.spelling = "{";
  close.spelling = "}";
}

} // namespace mlx::core::vulkan::msl

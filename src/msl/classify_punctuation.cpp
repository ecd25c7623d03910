#include "msl/classify.h"

namespace mlx::core::vulkan::msl {

using Role = Word::Role;

void Classifier::punctuation(size_t i) {
  Word& word = words_[i];
  std::string_view text = word.token.text;
  if (word.role == Role::Angle) {
    return;
  }
  word.spelling = text;
  bool binary = ends_operand(last_);
  if (text == "*" || text == "&" || text == "&&") {
    bool typed = last_ != SIZE_MAX &&
        (words_[last_].role == Role::Type ||
         words_[last_].role == Role::Qualifier ||
         (words_[last_].role == Role::Angle && !words_[last_].is("<")));
    if (text == "&&" &&
        (binary || !typed || words_[last_].role == Role::Angle)) {
      word.spelling = "and";
    } else if (typed) {
      word.role = Role::Qualifier; // of a declarator
    } else if (binary) {
      word.spelling = text == "*" ? "/" : "bitand";
    }
  } else if (text == "||") {
    word.spelling = "or";
  } else if (text == "~") {
    bool destructor = around()->kind == NameScope::Kind::Struct ||
        (last_ != SIZE_MAX && words_[last_].is("::"));
    word.spelling = destructor ? text : "-"; // `v{~f(x) + 1}` seems a body
  } else if (text == "<" || text == ">") {
    word.spelling = text == "<" ? "<=" : ">=";
  } else if (text == "++" || text == "--") {
    word.postfix = binary;
    if (binary) {
      word.spelling = ". v"; // to the grammar `-x++` is `(-x)++`
    }
  } else if (text == "(" || text == "[") {
    bracket(i);
    scopes_.back()->open += !words_[pairs_[i]].controls;
  } else if (text == ")" || text == "]") {
    scopes_.back()->open -= !word.controls;
  } else if (text == "." || text == "->") {
    if (i + 1 < words_.size() && arguments_end(i + 1) != SIZE_MAX) {
      word.spelling = text == "." ? ". template" : "-> template";
    }
  } else if (text == ";") {
    scopes_.back()->declares = false;
  } else if (text == "{") {
    brace(i);
  }
}

// Whether ( is a call's, a declaration's or a keyword's.
bool Classifier::applies(size_t open) const {
  if (last_ == SIZE_MAX || open == 0) {
    return false;
  }
  const Word& before = words_[last_];
  if (before.is_name()) {
    return before.role != Role::Plain ||
        !(before.is("return") || before.is("case") || before.is("else") ||
          before.is("do"));
  }
  return (before.is(")") && !before.casts && !before.controls) ||
      before.is("]") || (before.role == Role::Angle && !before.is("<")) ||
      (before.role == Role::Fixed && !before.initializes) ||
      (before.is("}") && (before.initializes || before.ends_lambda));
}

// The { of a function whose parameters end before `i`, after `-> T` or at once.
size_t Classifier::body_of(size_t i) {
  bool typed = i < words_.size() && words_[i].is("->");
  for (size_t k = i; k < words_.size(); ++k) {
    if (words_[k].is("{")) {
      kinds_[k] = BraceKind::Block;
      return k;
    }
    if (!typed || words_[k].is(";") || words_[k].is(")") || words_[k].is("}")) {
      break;
    }
    k = words_[k].is("(") ? pairs_[k] : k;
  }
  return SIZE_MAX;
}

void Classifier::bracket(size_t i) {
  size_t close = pairs_[i];
  Word& end = words_[close];
  if (words_[i].is("[")) {
    if (!ends_operand(last_) &&
        !(last_ != SIZE_MAX && words_[last_].role != Role::Plain)) {
      kinds_[i] = BraceKind::Capture;
      if (is_capture(i)) {
        size_t next = words_[close + 1].is("(") ? pairs_[close + 1] : close;
        size_t body = body_of(next + 1);
        if (body != SIZE_MAX) {
          words_[pairs_[body]].ends_lambda = true;
        }
      }
    }
    return;
  }
  if (last_ != SIZE_MAX) {
    const Word& before = words_[last_];
    end.controls = before.is("if") || before.is("while") || before.is("for") ||
        before.is("switch") ||
        (before.is("constexpr") && before.spelling == "constexpr");
  }
  bool of_size = last_ != SIZE_MAX && words_[last_].is("sizeof");
  if (of_size && !is_type(i + 1, close) && is_chain(i + 1, close)) {
    words_[i].dropped = end.dropped = true;
  } else if (end.controls || applies(i)) {
    auto kind = around()->kind;
    if (kind == NameScope::Kind::File || kind == NameScope::Kind::Struct) {
      push(NameScope::Kind::Parameters, declaration_end(close + 1));
      body_of(close + 1);
    }
  } else if (is_type(i + 1, close) || (close == i + 2 && casts_to(i + 1))) {
    end.casts = true;
    words_[i].spelling = "( const"; // or `(vec<T, 4>)(x)` is a call
  } else if (is_chain(i + 1, close)) {
    words_[i].dropped = end.dropped = true;
  }
}

// `namespace a::b` stands before.
bool Classifier::opens_namespace() const {
  size_t k = last_;
  while (k != SIZE_MAX && k > 0 &&
         (words_[k].is("::") ||
          (words_[k].is_name() && !is_keyword(words_[k].token.text)))) {
    --k;
  }
  return k != SIZE_MAX && words_[k].is("namespace");
}

void Classifier::brace(size_t i) {
  auto kind = kinds_[i];
  size_t end = pairs_[i];
  if (kind == BraceKind::Unknown) {
    kind = BraceKind::List;
    const Word* before = last_ == SIZE_MAX ? nullptr : &words_[last_];
    bool in_list = scopes_.back()->kind == NameScope::Kind::List;
    bool compound = before && before->is(")") && before->casts;
    if (!before || (before->is(")") && !compound) || before->is(";") ||
        before->is("else") || before->is("do") ||
        (before->is("{") && !in_list) || before->is("}") ||
        (before->is(":") && !in_list) || before->role == Role::Qualifier ||
        opens_namespace()) {
      kind = BraceKind::Block;
    }
  }
  bool list = kind == BraceKind::List;
  words_[i].initializes = words_[end].initializes = list;
  if (opens_namespace()) {
    return; // its names are the file's
  }
  push(
      list                            ? NameScope::Kind::List
          : kind == BraceKind::Struct ? NameScope::Kind::Struct
                                      : NameScope::Kind::Block,
      end,
      list || !struct_names_.contains(i) ? std::string_view{}
                                         : struct_names_.at(i));
}

} // namespace mlx::core::vulkan::msl

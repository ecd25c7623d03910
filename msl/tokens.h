// Tokens of a kernel's text, and the preprocessor that makes them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "msl/ast.h"
#include "msl/text.h"

namespace msl {

struct Token {
  // Unroll: the request of a pragma before a loop, its text a number.
  // FloatRule: a rule of float operations (pragmas.h).
  enum class Kind : uint8_t {
    Name,
    Number,
    String,
    Char,
    Punct,
    Unroll,
    FloatRule
  };
  Kind kind = Kind::Punct;
  bool starts_line = false;
  bool spaced = false; // white space before it
  bool painted = false; // the name of a macro within its own expansion
  std::string_view text;
  // The token's place; for a token of a macro, the place of its use.
  Place place;

  bool is(std::string_view word) const {
    return text == word && kind != Kind::String && kind != Kind::Char;
  }
  bool is_name() const {
    return kind == Kind::Name;
  }
};

using Tokens = std::vector<Token>;

// Owns texts that are in no source, for tokens to point into.
using Arena = std::deque<std::string>;

// All tokens with line and column; comments and line continuations are left
// out. Throws Error.
Tokens lex(std::string_view source, bool in_header, Arena& arena);

struct Preprocessed {
  Tokens header, body;
};

// Resolves directives and expands macros; macros of the header hold in the
// body. Throws Error.
Preprocessed
preprocess(std::string_view header, std::string_view body, Arena& arena);

// The value of the expression after #if, with macros expanded: other names are
// 0. Throws Error.
int64_t evaluate_condition(Tokens line, const Place& place, Arena& arena);

} // namespace msl

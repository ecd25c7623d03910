// Tokens of a kernel's text, and the preprocessor that makes them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "msl/ast.h"

namespace msl {

struct Token {
  // Unroll: what a pragma before a loop asks for, its text a number. FloatRule:
  // what one says of float operations (pragmas.h).
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
  // Where it stands; for a macro's token, where the macro is used.
  Place place;

  bool is(std::string_view what) const {
    return text == what && kind != Kind::String && kind != Kind::Char;
  }
  bool is_name() const {
    return kind == Kind::Name;
  }
};

using Tokens = std::vector<Token>;

// Owns texts that are in no source: tokens point into it.
using Arena = std::deque<std::string>;

// Every token with its line and column; comments and line continuations are
// left out. Throws Error.
Tokens lex(std::string_view source, bool in_header, Arena& arena);

struct Preprocessed {
  Tokens header, body;
};

// Directives resolved and macros expanded; those of the header hold in the
// body. Throws Error.
Preprocessed
preprocess(std::string_view header, std::string_view body, Arena& arena);

// The value of what stands after #if, its macros expanded: names are 0. Throws
// Error.
int64_t evaluate_condition(Tokens line, const Place& place, Arena& arena);

// The user's text in backticks, for a message.
std::string quoted(std::string_view text);

} // namespace msl

#include <algorithm>
#include <array>

#include "msl/parse.h"
#include "msl/tokens.h"

namespace msl {

namespace {

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' ||
      c == '\v';
}

// The longest operators come first.
constexpr std::array<std::string_view, 25> kPunctuation{
    "<<=", ">>=", "...", "<=>", "->*", "::", "->", "++", "--",
    "<<",  ">>",  "<=",  ">=",  "==",  "!=", "&&", "||", "+=",
    "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^="};

class Lexer {
 public:
  Lexer(std::string_view source, bool in_header, Arena& arena)
      : in_header_(in_header) {
    splice(source, arena);
  }

  Tokens run() {
    Tokens tokens;
    bool starts_line = true, spaced = false;
    while (at_ < text_.size()) {
      if (blank(text_[at_])) {
        starts_line |= text_[at_] == '\n';
        spaced = true;
        ++at_;
      } else if (skip_comment(starts_line)) {
        spaced = true;
      } else {
        Token token;
        token.place = place(at_);
        size_t begin = at_;
        token.kind = next();
        token.text = text_.substr(begin, at_ - begin);
        token.starts_line = starts_line;
        token.spaced = spaced;
        tokens.push_back(token);
        starts_line = spaced = false;
      }
    }
    return tokens;
  }

 private:
  // Removes backslashes at the end of lines, and remembers where each line of
  // the user's begins.
  void splice(std::string_view source, Arena& arena) {
    std::string& out = arena.emplace_back();
    out.reserve(source.size());
    lines_.push_back(0);
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\\') {
        size_t end = i + 1;
        if (end < source.size() && source[end] == '\r') {
          ++end;
        }
        if (end < source.size() && source[end] == '\n') {
          i = end;
          lines_.push_back(out.size());
          continue;
        }
      }
      out += source[i];
      if (source[i] == '\n') {
        lines_.push_back(out.size());
      }
    }
    text_ = out;
  }

  Place place(size_t at) {
    while (line_ + 1 < lines_.size() && lines_[line_ + 1] <= at) {
      ++line_;
    }
    return {in_header_, uint32_t(line_ + 1), uint32_t(at - lines_[line_] + 1)};
  }

  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  bool skip_comment(bool& starts_line) {
    if (peek() != '/' || (peek(1) != '/' && peek(1) != '*')) {
      return false;
    }
    if (peek(1) == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return true;
    }
    size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      fail_at(place(at_), "This comment has no end; add `*/`.");
    }
    starts_line |=
        text_.substr(at_, end - at_).find('\n') != std::string_view::npos;
    at_ = end + 2;
    return true;
  }

  Token::Kind next() {
    char c = peek();
    if (letter(c)) {
      while (letter(peek()) || digit(peek())) {
        ++at_;
      }
      return Token::Kind::Name;
    }
    if (digit(c) || (c == '.' && digit(peek(1)))) {
      number();
      return Token::Kind::Number;
    }
    if (c == '"' || c == '\'') {
      quoted_text(c);
      return c == '"' ? Token::Kind::String : Token::Kind::Char;
    }
    for (auto punctuation : kPunctuation) {
      if (text_.substr(at_, punctuation.size()) == punctuation) {
        at_ += punctuation.size();
        return Token::Kind::Punct;
      }
    }
    if (std::string_view("{}[]()<>;:,.?+-*/%&|^!~=#").find(c) ==
        std::string_view::npos) {
      fail_at(
          place(at_),
          c > ' ' && c < 127
              ? quoted(text_.substr(at_, 1)) + " has no meaning here."
              : "There is a character that the language does not know; only "
                "comments may hold other characters than ASCII's.");
    }
    ++at_;
    return Token::Kind::Punct;
  }

  // A preprocessing number: 0x1p-3f, 1'000u, 1e+5h.
  void number() {
    bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    while (letter(peek()) || digit(peek()) || peek() == '.' ||
           (peek() == '\'' && (letter(peek(1)) || digit(peek(1))))) {
      char c = peek();
      ++at_;
      bool exponent = hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
      if (exponent && (peek() == '+' || peek() == '-')) {
        ++at_;
      }
    }
  }

  void quoted_text(char end) {
    size_t begin = at_++;
    while (peek() != end) {
      if (at_ >= text_.size() || peek() == '\n') {
        fail_at(
            place(begin),
            end == '"' ? "This text has no end; add `\"`."
                       : "This character has no end; add `'`.");
      }
      at_ += peek() == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    }
    ++at_;
  }

  bool in_header_;
  std::string_view text_;
  std::vector<size_t> lines_; // where each begins in text_
  size_t at_ = 0, line_ = 0;
};

} // namespace

Tokens lex(std::string_view source, bool in_header, Arena& arena) {
  return Lexer(source, in_header, arena).run();
}

} // namespace msl

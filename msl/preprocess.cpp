#include <algorithm>

#include "msl/macros.h"
#include "msl/names.h"
#include "msl/parse.h"
#include "msl/pragmas.h"

namespace msl {

namespace {

constexpr size_t kLongestText = 4 << 20;

// The translator has the contents of these headers of MLX built in.
constexpr std::string_view kBuiltIn =
    "utils.h bf16.h bf16_math.h complex.h defines.h erf.h expm1f.h";
constexpr std::string_view kFolder = "\"mlx/backend/metal/kernels/";

class Preprocessor {
 public:
  explicit Preprocessor(Arena& arena) : arena_(arena), macros_(arena) {}

  Tokens run(std::string_view source, bool in_header) {
    if (source.size() > kLongestText) {
      fail_at({in_header, 1, 1}, "The text is longer than 4 MiB; shorten it.");
    }
    Tokens tokens = lex(source, in_header, arena_);
    Tokens text, out;
    for (size_t i = 0; i < tokens.size();) {
      if (!(tokens[i].is("#") && tokens[i].starts_line)) {
        if (taken()) {
          text.push_back(tokens[i]);
        }
        ++i;
        continue;
      }
      size_t end = i + 1;
      while (end < tokens.size() && !tokens[end].starts_line) {
        ++end;
      }
      Tokens line(tokens.begin() + i + 1, tokens.begin() + end);
      // Macros may be redefined here.
      if (!line.empty() && !line[0].is("pragma")) {
        flush(text, out);
      }
      directive(line, tokens[i], text);
      i = end;
    }
    flush(text, out);
    if (!branches_.empty()) {
      fail_at(branches_.back().place, "This #if has no #endif; add one.");
    }
    return out;
  }

 private:
  struct Branch {
    Place place;
    bool outer; // the enclosing branch is active
    bool now; // this branch is active
    bool done; // an earlier branch was active
    bool last = false; // after #else
  };

  bool taken() const {
    return branches_.empty() || branches_.back().now;
  }

  void flush(Tokens& text, Tokens& out) {
    Tokens expanded = macros_.expand(text);
    text.clear();
    for (size_t i = 0; i < expanded.size(); ++i) {
      if (expanded[i].is("_Pragma") && i + 3 < expanded.size() &&
          expanded[i + 1].is("(") &&
          expanded[i + 2].kind == Token::Kind::String &&
          expanded[i + 3].is(")")) {
        auto words = expanded[i + 2].text;
        pragma(
            lex(words.substr(1, words.size() - 2), false, arena_),
            expanded[i],
            out);
        i += 3;
      } else {
        out.push_back(expanded[i]);
      }
    }
  }

  void directive(const Tokens& line, const Token& hash, Tokens& text) {
    if (line.empty()) {
      return;
    }
    std::string_view name = line[0].text;
    Tokens rest(line.begin() + 1, line.end());
    if (conditional(name, rest, hash.place) || !taken()) {
      return;
    }
    if (name == "define") {
      macros_.define(rest, hash.place);
    } else if (name == "undef") {
      if (rest.empty()) {
        fail_at(hash.place, "#undef needs a name.");
      }
      macros_.undefine(rest[0].text);
    } else if (name == "include" || name == "import") {
      include(rest, hash.place);
    } else if (name == "pragma") {
      pragma(rest, hash, text);
    } else if (name == "error") {
      std::string message;
      for (const auto& token : rest) {
        message += " " + std::string(token.text);
      }
      fail_at(hash.place, "The text refuses itself: #error{}.", message);
    } else if (name != "warning" && name != "line") {
      fail_at(hash.place, "The directive #{} is unknown.", name);
    }
  }

  // Whether it was a directive of #if's family.
  bool
  conditional(std::string_view name, const Tokens& rest, const Place& place) {
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      bool outer = taken();
      bool now = outer && condition(name, rest, place);
      branches_.push_back({place, outer, now, now});
      return true;
    }
    if (name != "elif" && name != "else" && name != "endif") {
      return false;
    }
    if (branches_.empty() || (branches_.back().last && name != "endif")) {
      fail_at(place, "There is no #if that this #{} belongs to.", name);
    }
    Branch& branch = branches_.back();
    if (name == "endif") {
      branches_.pop_back();
      return true;
    }
    branch.last = name == "else";
    branch.now = branch.outer && !branch.done &&
        (branch.last || condition("if", rest, place));
    branch.done |= branch.now;
    return true;
  }

  bool
  condition(std::string_view name, const Tokens& rest, const Place& place) {
    if (rest.empty()) {
      fail_at(place, "#{} needs a condition.", name);
    }
    if (name != "if") {
      return macros_.defined(rest[0].text) == (name == "ifdef");
    }
    return evaluate_condition(macros_.expand(answered(rest)), place, arena_) !=
        0;
  }

  // Replaces defined(X) and __has_...(X) by 0 or 1.
  Tokens answered(const Tokens& rest) const {
    Tokens out;
    for (size_t i = 0; i < rest.size(); ++i) {
      Token token = rest[i];
      bool defined = token.is("defined");
      if (!defined && !(token.is_name() && token.text.starts_with("__has_"))) {
        out.push_back(token);
        continue;
      }
      bool bracket = i + 1 < rest.size() && rest[i + 1].is("(");
      size_t name = i + 1 + bracket;
      token.kind = Token::Kind::Number;
      token.text =
          defined && name < rest.size() && macros_.defined(rest[name].text)
          ? "1"
          : "0";
      i = std::min(name, rest.size() - 1);
      while (bracket && i + 1 < rest.size() && !rest[i].is(")")) {
        ++i;
      }
      out.push_back(token);
    }
    return out;
  }

  void include(const Tokens& rest, const Place& place) const {
    std::string name;
    for (const auto& token : rest) {
      name += token.text;
    }
    bool metal = name.starts_with("<metal_") || name == "<simd/simd.h>";
    bool mlx = false;
    if (name.starts_with(kFolder)) {
      auto file = std::string_view(name).substr(kFolder.size());
      mlx = has_word(kBuiltIn, file.substr(0, file.size() - 1));
    }
    if (!metal && !mlx) {
      fail_at(
          place,
          "#include {} cannot be read: a kernel may include Metal's own "
          "headers (<metal_stdlib>) and MLX's utils.h. Put the text itself "
          "into the kernel's header.",
          name);
    }
  }

  void pragma(const Tokens& words, const Token& at, Tokens& out) {
    read_pragma(words, at, macros_, arena_, out);
  }

  Arena& arena_;
  Macros macros_;
  std::vector<Branch> branches_;
};

} // namespace

Preprocessed
preprocess(std::string_view header, std::string_view body, Arena& arena) {
  Preprocessor preprocessor(arena);
  Preprocessed out;
  out.header = preprocessor.run(header, true);
  out.body = preprocessor.run(body, false);
  scope_float_rules(out.header, out.body);
  return out;
}

} // namespace msl

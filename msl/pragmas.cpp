#include "msl/pragmas.h"

#include <algorithm>

#include "msl/names.h"
#include "msl/parse.h"

namespace msl {

namespace {

// Hints, and messages to compilers; for `clang` and `GCC` the word after that.
constexpr std::string_view kIgnored =
    "mark region endregion once message warning nounroll unroll_and_jam "
    "nounroll_and_jam ivdep";
constexpr std::string_view kIgnoredOfCompilers =
    "loop diagnostic optimize system_header poison warning error deprecated "
    "assume_nonnull arc_cf_code_audited max_tokens_here max_tokens_total ivdep";

class Pragma {
 public:
  Pragma(
      const Tokens& words,
      const Token& at,
      Macros& macros,
      Arena& arena,
      Tokens& out)
      : words_(words), at_(at), macros_(macros), arena_(arena), out_(out) {}

  void read() {
    if (words_.empty()) {
      return;
    }
    bool compiler = is("clang", 0) || is("GCC", 0);
    if (is("unroll", 0)) {
      unroll(1);
    } else if (compiler && is("unroll", 1)) {
      unroll(2);
    } else if (
        is("clang", 0) && is("loop", 1) &&
        (is("unroll", 2) || is("unroll_count", 2))) {
      unroll(3);
    } else if ((is("clang", 0) || is("METAL", 0)) && is("fp", 1)) {
      float_options(2);
    } else if (is("STDC", 0)) {
      standard();
    } else if (is("METAL", 0) && is("internals", 1)) {
      // Pragmas of Metal's own headers.
    } else if (
        compiler ? words_.size() < 2 ||
                !has_word(kIgnoredOfCompilers, words_[1].text)
                 : !has_word(kIgnored, words_[0].text)) {
      refuse(
          "is not known, and may change what the kernel computes; take it "
          "out, or write what it stands for");
    }
  }

 private:
  bool is(std::string_view text, size_t i) const {
    return i < words_.size() && words_[i].is(text);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    std::string text = "#pragma";
    for (auto& word : words_) {
      text += (word.spaced ? " " : "") + std::string(word.text);
    }
    fail_at(at_.place, "{} {}.", quoted(text), why);
  }

  void add(Token::Kind kind, std::string_view text) {
    Token token = at_;
    token.kind = kind;
    token.text = text;
    out_.push_back(token);
  }

  // `unroll`, `unroll(4)`, `clang loop unroll(full)`, `unroll_count(4)`.
  void unroll(size_t i) {
    Tokens count;
    for (; i < words_.size(); ++i) {
      if (!words_[i].is("(") && !words_[i].is(")")) {
        count.push_back(words_[i]);
      }
    }
    std::string_view times = "1";
    if (!count.empty() && count[0].is("disable")) {
      return;
    }
    if (!count.empty() && !count[0].is("full") && !count[0].is("enable")) {
      int64_t n = evaluate_condition(macros_.expand(count), at_.place, arena_);
      if (n < 2 || n > 4096) {
        return; // 1: as it stands
      }
      times = arena_.emplace_back(std::to_string(n));
    }
    add(Token::Kind::Unroll, times);
  }

  // `contract(off) reassociate(on)`, one or several.
  void float_options(size_t i) {
    if (i >= words_.size()) {
      refuse("names no option");
    }
    for (; i < words_.size(); i += 4) {
      if (!is("(", i + 1) || i + 3 >= words_.size() || !is(")", i + 3)) {
        refuse("is not written as `contract(off)` is");
      }
      float_option(words_[i].text, words_[i + 2].text);
    }
  }

  void float_option(std::string_view option, std::string_view value) {
    auto takes = [&](std::initializer_list<std::string_view> values) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    bool off = value == "off" || value == "safe";
    if (option == "contract" && takes({"off", "on", "fast"})) {
      add(Token::Kind::FloatRule, off ? "contract off" : "contract on");
    } else if (
        (option == "reassociate" || option == "reciprocal") &&
        takes({"on", "off"})) {
      bool order = option == "reassociate";
      add(Token::Kind::FloatRule,
          order     ? off ? "reassociate off" : "reassociate on"
              : off ? "reciprocal off"
                    : "reciprocal on");
    } else if (option == "math_mode" && takes({"safe", "relaxed", "fast"})) {
      add(Token::Kind::FloatRule, off ? "mode safe" : "mode fast");
    } else if (
        !(option == "exceptions" && value == "ignore") &&
        !(option == "eval_method" && value == "source")) {
      refuse(
          "asks for " +
          quoted(std::string(option) + "(" + std::string(value) + ")") +
          ", which GPUs here do not have; contract, reassociate, reciprocal "
          "and math_mode are taken");
    }
  }

  // `FP_CONTRACT OFF` and its like.
  void standard() {
    bool on = is("ON", 2), off = is("OFF", 2), usual = is("DEFAULT", 2);
    if (is("FP_CONTRACT", 1) && (on || off || usual)) {
      add(Token::Kind::FloatRule, off ? "contract off" : "contract on");
      return;
    }
    bool no_matter = (is("FENV_ACCESS", 1) && (off || usual)) ||
        is("CX_LIMITED_RANGE", 1) ||
        (is("FENV_ROUND", 1) && (is("FE_TONEAREST", 2) || is("FE_DYNAMIC", 2)));
    if (!no_matter) {
      refuse(
          "asks for what GPUs here do not have; of STDC's, FP_CONTRACT is "
          "taken");
    }
  }

  const Tokens& words_;
  const Token& at_;
  Macros& macros_;
  Arena& arena_;
  Tokens& out_;
};

// Liberties that a driver takes with float operations by default.
struct Rules {
  bool contract = true, reassociate = true, reciprocal = true;

  // The word of a pragma. The safe mode keeps the order, and contracts.
  void set(std::string_view word) {
    bool off = word.ends_with("off") || word.ends_with("safe");
    bool mode = word.starts_with("mode");
    if (word.starts_with("contract") || (mode && !off)) {
      contract = !off;
    }
    if (word.starts_with("reassociate") || mode) {
      reassociate = !off;
    }
    if (word.starts_with("reciprocal") || mode) {
      reciprocal = !off;
    }
  }
  bool exact() const {
    return !contract || !reassociate || !reciprocal;
  }
};

void scope(Tokens& tokens, Rules& rules) {
  std::vector<Rules> outer;
  Tokens kept;
  kept.reserve(tokens.size());
  for (auto& token : tokens) {
    if (token.kind == Token::Kind::FloatRule) {
      rules.set(token.text);
      continue;
    }
    if (token.is("{")) {
      outer.push_back(rules);
    } else if (token.is("}") && !outer.empty()) {
      rules = outer.back();
      outer.pop_back();
    }
    token.place.exact = rules.exact();
    kept.push_back(token);
  }
  tokens = std::move(kept);
}

} // namespace

void read_pragma(
    const Tokens& words,
    const Token& at,
    Macros& macros,
    Arena& arena,
    Tokens& out) {
  Pragma(words, at, macros, arena, out).read();
}

void scope_float_rules(Tokens& header, Tokens& body) {
  Rules rules;
  scope(header, rules);
  scope(body, rules);
}

} // namespace msl

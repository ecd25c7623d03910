#include "msl/tidy.h"

#include "msl/names.h"
#include "msl/parse.h"

namespace msl {

namespace {

constexpr size_t kDeepest = 128; // brackets in brackets

// Words that change nothing that the tree keeps.
bool is_noise(std::string_view name) {
  constexpr std::string_view words =
      "inline extern register explicit mutable noexcept restrict __restrict "
      "__restrict__ kernel __inline__ __forceinline__";
  return has_word(words, name);
}

// Attributes that the tree keeps, hints, and names that may stand before ::.
bool is_harmless(std::string_view name) {
  constexpr std::string_view words =
      "always_inline assume buffer clang cold const convergent deprecated "
      "early_fragment_tests fallthrough flatten gnu host_name hot id kernel "
      "likely loop_unroll max_total_threads_per_threadgroup maybe_unused metal "
      "nodebug nodiscard noinline noreturn nothrow optnone patch pure "
      "threadgroup unlikely unroll unused used visible";
  return has_word(words, name) || name.find("thread") != name.npos ||
      name.find("simdgroup") != name.npos ||
      name.find("quadgroup") != name.npos || name.find("grid") != name.npos;
}

bool is_integer_word(std::string_view name) {
  return name == "unsigned" || name == "signed" || name == "short" ||
      name == "long" || name == "int" || name == "char";
}

char closing(const Token& open) {
  return open.is("(") ? ')' : open.is("[") ? ']' : '}';
}

class Cleaner {
 public:
  Cleaner(const Tokens& in, Arena& arena) : in_(in), arena_(arena) {}

  Tidy run() {
    for (at_ = 0; at_ < in_.size(); ++at_) {
      const Token& token = in_[at_];
      if (token.kind == Token::Kind::Unroll) {
        out_.unroll[tokens_.size()] = std::stoul(std::string(token.text));
      } else if (is("[", 0) && is("[", 1) && name(2)) {
        attribute();
      } else if (token.is("#")) {
        fail_at(token.place, "A `#` is only taken where a line begins.");
      } else if (token.is(">>")) {
        split(token);
      } else if (!token.is_name() || !leave_out()) {
        tokens_.push_back(token);
      }
    }
    pair();
    return std::move(out_);
  }

 private:
  bool is(std::string_view text, size_t ahead) const {
    return at_ + ahead < in_.size() && in_[at_ + ahead].is(text);
  }
  bool name(size_t ahead) const {
    return at_ + ahead < in_.size() && in_[at_ + ahead].is_name();
  }
  bool after(std::string_view text) const {
    return !tokens_.empty() && tokens_.back().is(text);
  }

  // `>>` may end two templates' arguments: two tokens, with no space between.
  void split(Token token) {
    token.text = token.text.substr(1);
    tokens_.push_back(token);
    token.spaced = token.starts_line = false;
    tokens_.push_back(token);
  }

  // The index after the bracket that pairs with the one at `at`.
  size_t behind(size_t at) const {
    int depth = 0;
    for (size_t i = at; i < in_.size(); ++i) {
      depth += in_[i].is("(") || in_[i].is("[");
      depth -= in_[i].is(")") || in_[i].is("]");
      if (depth == 0) {
        return i + 1;
      }
    }
    fail_at(in_[at].place, "This bracket is never closed; add its partner.");
  }

  // [[buffer(0)]], also several with commas between them.
  void attribute() {
    size_t end = behind(at_);
    Attribute attribute;
    int depth = 0;
    for (size_t i = at_ + 2; i + 2 < end; ++i) {
      const Token& token = in_[i];
      depth += token.is("(") - token.is(")");
      if (token.is_name() && depth == 0) {
        if (!attribute.name.empty()) {
          keep(attribute);
        }
        attribute = {std::string(token.text), {}};
      } else if (depth > 0 && !token.is("(") && !token.is(",")) {
        attribute.arguments.emplace_back(token.text);
      }
    }
    keep(attribute);
    at_ = end - 1;
  }

  void keep(const Attribute& attribute) {
    if (!is_harmless(attribute.name)) {
      fail_at(
          in_[at_].place,
          "The attribute {} is not known, and may change what the kernel "
          "computes; take it out.",
          quoted(attribute.name));
    }
    if (!tokens_.empty()) {
      out_.attributes[tokens_.size() - 1].push_back(attribute);
    }
  }

  // __attribute__((always_inline)), alignas(16): an error if it changes the
  // layout of a struct, otherwise without effect.
  void compiler_attribute() {
    size_t end = behind(at_ + 1);
    bool of_struct = after("struct") || after("}");
    for (size_t i = at_; i < end; ++i) {
      auto text = in_[i].text;
      bool aligns = text == "alignas" || text.find("aligned") != text.npos;
      bool lays_out = text.find("packed") != text.npos ||
          text.find("vector_") != text.npos || (aligns && of_struct);
      if (in_[i].is_name() && lays_out) {
        fail_at(
            in_[at_].place,
            "{} would change the layout of a type, which is not supported; add "
            "fields that fill it instead.",
            quoted(text));
      }
    }
    at_ = end - 1;
  }

  bool leave_out() {
    std::string_view text = in_[at_].text;
    bool member = after(".") || after("->");
    if (!member) {
      auto why = refused_word(text);
      // `= delete` is a declaration without a body.
      if (!why.empty() && !(text == "delete" && after("="))) {
        fail_at(in_[at_].place, why);
      }
    }
    if (member) {
      return false;
    }
    if (text == "__attribute__" || text == "alignas" || text == "__declspec") {
      if (is("(", 1)) {
        compiler_attribute();
      }
      return true;
    }
    if (is_integer_word(text)) {
      integer();
      return true;
    }
    return is_noise(text);
  }

  // `unsigned long int` is one name.
  void integer() {
    Token token = in_[at_];
    bool is_unsigned = false;
    int longs = 0, shorts = 0, chars = 0;
    for (; name(0) && is_integer_word(in_[at_].text); ++at_) {
      std::string_view text = in_[at_].text;
      is_unsigned |= text == "unsigned";
      longs += text == "long";
      shorts += text == "short";
      chars += text == "char";
    }
    --at_;
    std::string_view type = chars ? "char"
        : longs                   ? "long"
        : shorts                  ? "short"
                                  : "int";
    token.text =
        is_unsigned ? arena_.emplace_back("u" + std::string(type)) : type;
    tokens_.push_back(token);
  }

  void pair() {
    auto& pairs = out_.pairs;
    pairs.assign(tokens_.size(), SIZE_MAX);
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.is("(") || token.is("[") || token.is("{")) {
        open.push_back(i);
        if (open.size() > kDeepest) {
          fail_at(
              token.place,
              "Brackets are nested more than {} deep; move a part into a "
              "function or a variable.",
              kDeepest);
        }
      } else if (token.is(")") || token.is("]") || token.is("}")) {
        if (open.empty()) {
          fail_at(
              token.place,
              "Nothing is open that this {} closes.",
              quoted(token.text));
        }
        const Token& begin = tokens_[open.back()];
        char want = closing(begin);
        if (token.text[0] != want) {
          fail_at(
              token.place,
              "{} stands where `{}` should close {} of line {}.",
              quoted(token.text),
              want,
              quoted(begin.text),
              begin.place.line);
        }
        pairs[i] = open.back();
        pairs[open.back()] = i;
        open.pop_back();
      }
    }
    if (!open.empty()) {
      const Token& token = tokens_[open.back()];
      fail_at(
          token.place,
          "This {} is never closed; add `{}`.",
          quoted(token.text),
          closing(token));
    }
  }

  const Tokens& in_;
  Arena& arena_;
  Tidy out_;
  Tokens& tokens_ = out_.tokens;
  size_t at_ = 0;
};

} // namespace

Tidy tidy(const Tokens& tokens, Arena& arena) {
  return Cleaner(tokens, arena).run();
}

} // namespace msl

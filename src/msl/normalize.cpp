#include <algorithm>
#include <unordered_set>

#include "msl/parse.h"
#include "msl/words.h"

namespace mlx::core::vulkan::msl {

namespace {

constexpr size_t kDeepest = 128; // brackets in brackets

// Say nothing that the tree keeps.
bool is_noise(std::string_view name) {
  static const std::unordered_set<std::string_view> words{
      "inline",
      "extern",
      "register",
      "explicit",
      "mutable",
      "noexcept",
      "restrict",
      "__restrict",
      "__restrict__",
      "kernel",
      "__inline__",
      "__forceinline__"};
  return words.contains(name);
}

// Attributes that the tree keeps, hints, and the names that may stand before
// ::.
bool is_harmless(std::string_view name) {
  static const std::unordered_set<std::string_view> words{
      "always_inline",
      "assume",
      "buffer",
      "clang",
      "cold",
      "const",
      "convergent",
      "deprecated",
      "early_fragment_tests",
      "fallthrough",
      "flatten",
      "gnu",
      "host_name",
      "hot",
      "id",
      "kernel",
      "likely",
      "loop_unroll",
      "max_total_threads_per_threadgroup",
      "maybe_unused",
      "metal",
      "nodebug",
      "nodiscard",
      "noinline",
      "noreturn",
      "nothrow",
      "optnone",
      "patch",
      "pure",
      "threadgroup",
      "unlikely",
      "unroll",
      "unused",
      "used",
      "visible"};
  return words.contains(name) || name.find("thread") != name.npos ||
      name.find("simdgroup") != name.npos ||
      name.find("quadgroup") != name.npos || name.find("grid") != name.npos;
}

bool is_integer_word(std::string_view name) {
  return name == "unsigned" || name == "signed" || name == "short" ||
      name == "long" || name == "int" || name == "char";
}

class Normalizer {
 public:
  Normalizer(
      const Tokens& in,
      std::vector<std::string_view>& namespaces,
      Arena& arena)
      : in_(in), namespaces_(namespaces), arena_(arena) {}

  Words run() {
    for (at_ = 0; at_ < in_.size(); ++at_) {
      const Token& token = in_[at_];
      if (token.kind == Token::Kind::Unroll) {
        unroll_ = std::stoul(std::string(token.text));
      } else if (is("[", 0) && is("[", 1) && name(2)) {
        attribute();
      } else if (token.is("#")) {
        throw Error(token.place, "A `#` is only taken where a line begins.");
      } else if (!token.is_name() || !leave_out()) {
        push(token);
      }
    }
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
    return !out_.empty() && out_.back().is(text);
  }

  void push(const Token& token) {
    Word word;
    word.token = token;
    word.unroll = unroll_;
    unroll_ = 0;
    out_.push_back(std::move(word));
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
    throw Error(in_[at].place, "This bracket is never closed.");
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
      throw Error(
          in_[at_].place,
          "The attribute " + quoted(attribute.name) +
              " is not known, and may change what the kernel computes; take it "
              "out.");
    }
    if (!out_.empty()) {
      out_.back().attributes.push_back(attribute);
    }
  }

  // __attribute__((always_inline)), alignas(16): what changes the layout of a
  // struct is refused, elsewhere alignment says nothing.
  void compiler_attribute() {
    size_t end = behind(at_ + 1);
    bool of_struct = after("struct") || after("}");
    for (size_t i = at_; i < end; ++i) {
      auto text = in_[i].text;
      bool aligns = text == "alignas" || text.find("aligned") != text.npos;
      bool lays_out = text.find("packed") != text.npos ||
          text.find("vector_") != text.npos || (aligns && of_struct);
      if (in_[i].is_name() && lays_out) {
        throw Error(
            in_[at_].place,
            quoted(text) +
                " would change the layout of a type, which is not supported; "
                "add fields that fill it instead.");
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
        throw Error(in_[at_].place, why);
      }
    }
    if (text == "template" && (member || after("::"))) {
      return true;
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
    if (text == "typename") {
      // Kept where it declares a template's parameter.
      return !(name(1) && (is(",", 2) || is(">", 2) || is("=", 2))) &&
          !is("...", 1) && !is(",", 1) && !is(">", 1) && !is("=", 1);
    }
    if (is_integer_word(text)) {
      integer();
      return true;
    }
    return is_noise(text) || scope(text) || using_namespace() ||
        method_space(text) || elaborated(text);
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
    push(token);
  }

  // metal::, std:: and the user's own namespaces.
  bool scope(std::string_view text) {
    if (text == "namespace" && name(1) && !after("using")) {
      for (size_t i = at_ + 1; i < in_.size() && !in_[i].is("{"); ++i) {
        if (in_[i].is_name()) {
          namespaces_.push_back(in_[i].text);
        }
        if (in_[i].is("=")) {
          throw Error(
              in_[i].place,
              "Another name for a namespace is not supported; write the "
              "namespace's own.");
        }
      }
      return false;
    }
    bool known = text == "metal" || text == "std" || text == "mlx" ||
        text == "steel" ||
        std::find(namespaces_.begin(), namespaces_.end(), text) !=
            namespaces_.end();
    if (!known || !is("::", 1) || after("namespace")) {
      return false;
    }
    ++at_;
    if (after("::") && out_.size() == 1) {
      out_.pop_back();
    }
    return true;
  }

  bool using_namespace() {
    if (!is("using", 0) || !is("namespace", 1)) {
      return false;
    }
    while (at_ < in_.size() && !in_[at_].is(";")) {
      ++at_;
    }
    return true;
  }

  // `void next() thread {`: of which kind `this` is.
  bool method_space(std::string_view text) const {
    if (!is_space(text) || out_.empty()) {
      return false;
    }
    bool follows = after(")") ||
        (after("const") && out_.size() > 1 && out_[out_.size() - 2].is(")"));
    size_t next = 1;
    while (name(next) && is_qualifier(in_[at_ + next].text)) {
      ++next;
    }
    return follows &&
        (is("{", next) || is(":", next) || is(";", next) || is("->", next));
  }

  // `struct Foo x`, the keyword saying nothing.
  bool elaborated(std::string_view text) const {
    return (text == "struct" || text == "class" || text == "enum") && name(1) &&
        !is("class", 1) && !is("struct", 1) && !after("enum") &&
        !after("template") && !after("<") && !after(",") && name(2) &&
        !is("final", 2);
  }

  const Tokens& in_;
  std::vector<std::string_view>& namespaces_;
  Arena& arena_;
  Words out_;
  size_t at_ = 0;
  uint32_t unroll_ = 0;
};

} // namespace

Words normalize(
    const Tokens& tokens,
    std::vector<std::string_view>& namespaces,
    Arena& arena) {
  return Normalizer(tokens, namespaces, arena).run();
}

std::vector<size_t> pairs(const Words& words) {
  std::vector<size_t> out(words.size(), SIZE_MAX), open;
  for (size_t i = 0; i < words.size(); ++i) {
    const Token& token = words[i].token;
    if (token.is("(") || token.is("[") || token.is("{")) {
      open.push_back(i);
      if (open.size() > kDeepest) {
        throw Error(
            token.place,
            "Brackets are nested more than " + std::to_string(kDeepest) +
                " deep; move a part into a function or a variable.");
      }
    } else if (token.is(")") || token.is("]") || token.is("}")) {
      if (open.empty()) {
        throw Error(
            token.place,
            "Nothing is open that this " + quoted(token.text) + " closes.");
      }
      const Token& begin = words[open.back()].token;
      char want = begin.text == "(" ? ')' : begin.text == "[" ? ']' : '}';
      if (token.text[0] != want) {
        throw Error(
            token.place,
            quoted(token.text) + " stands where `" + want + "` should close " +
                quoted(begin.text) + " of line " +
                std::to_string(begin.place.line) + ".");
      }
      out[i] = open.back();
      out[open.back()] = i;
      open.pop_back();
    }
  }
  if (!open.empty()) {
    const Token& token = words[open.back()].token;
    throw Error(
        token.place, "This " + quoted(token.text) + " is never closed.");
  }
  return out;
}

} // namespace mlx::core::vulkan::msl

#include "msl/macros.h"

#include <algorithm>

#include "msl/parse.h"

namespace msl {

namespace {

// Limit of all expansions of a kernel together, since macros can grow
// exponentially.
constexpr size_t kMostTokens = 1 << 19;
constexpr int kDeepest = 64;

// Macros that Metal's compiler and MLX's headers define.
constexpr std::string_view kPredefined = R"macros(
METAL_FUNC inline
MTL_CONST constant
MLX_MTL_CONST static constant constexpr const
MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")
MLX_METAL_JIT 1
__METAL__ 1
__METAL_VERSION__ 320
__HAVE_BFLOAT__ 1
__cplusplus 201402L
__cpp_variable_templates 201304L
)macros";

} // namespace

// Lists of tokens to read, the innermost expansion last.
struct Macros::Frame {
  Tokens tokens;
  size_t at = 0;
  Macro* macro = nullptr;
};

class Macros::Reader {
 public:
  ~Reader() {
    while (!frames_.empty()) { // also after an Error
      pop();
    }
  }

  void push(Tokens tokens, Macro* macro) {
    if (macro) {
      macro->active = true;
    }
    frames_.push_back({std::move(tokens), 0, macro});
  }

  const Token* peek() {
    while (!frames_.empty() &&
           frames_.back().at == frames_.back().tokens.size()) {
      pop();
    }
    return frames_.empty() ? nullptr
                           : &frames_.back().tokens[frames_.back().at];
  }

  Token next() {
    Token token = *peek();
    ++frames_.back().at;
    return token;
  }

 private:
  void pop() {
    if (frames_.back().macro) {
      frames_.back().macro->active = false;
    }
    frames_.pop_back();
  }

  std::vector<Frame> frames_;
};

Macros::Macros(Arena& arena) : arena_(arena) {
  Tokens line;
  for (const auto& token : lex(kPredefined, true, arena)) {
    if (token.starts_line && !line.empty()) {
      define(line, {});
      line.clear();
    }
    line.push_back(token);
  }
  define(line, {});
}

void Macros::define(const Tokens& line, const Place& place) {
  if (line.empty() || !line[0].is_name()) {
    fail_at(place, "#define needs a name.");
  }
  Macro macro;
  size_t at = 1;
  if (line.size() > 1 && line[1].is("(") && !line[1].spaced) {
    macro.takes_arguments = true;
    for (at = 2;; ++at) {
      if (at < line.size() && line[at].is(")") && macro.parameters.empty()) {
        break;
      }
      bool variadic = at < line.size() && line[at].is("...");
      if (at + 1 >= line.size() || (!variadic && !line[at].is_name())) {
        fail_at(place, "The parameters of this macro have no end; add `)`.");
      }
      macro.parameters.push_back(variadic ? "__VA_ARGS__" : line[at].text);
      macro.variadic |= variadic;
      ++at;
      if (line[at].is(")")) {
        break;
      }
      if (!line[at].is(",") || variadic) {
        fail_at(
            place,
            "The parameters of a macro are names with commas between them, and "
            "`...` at most at the end.");
      }
    }
    ++at;
  }
  macro.body.assign(line.begin() + at, line.end());
  macros_.insert_or_assign(line[0].text, std::move(macro));
}

void Macros::count(size_t more, const Place& place) {
  made_ += more;
  if (made_ > kMostTokens) {
    fail_at(place, "Macros expand to more than {} tokens.", kMostTokens);
  }
}

std::vector<Tokens>
Macros::arguments(Reader& reader, const Macro& macro, const Token& name) {
  std::vector<Tokens> out(1);
  reader.next(); // (
  for (int depth = 1;;) {
    if (!reader.peek()) {
      fail_at(
          name.place,
          "The arguments of the macro {} have no end; add `)`.",
          quoted(name.text));
    }
    Token token = reader.next();
    depth += token.is("(") - token.is(")");
    if (depth == 0) {
      break;
    }
    if (token.is(",") && depth == 1 &&
        !(macro.variadic && out.size() == macro.parameters.size())) {
      out.emplace_back();
    } else {
      out.back().push_back(token);
    }
  }
  if (macro.parameters.empty() && out.size() == 1 && out[0].empty()) {
    out.clear();
  }
  if (macro.variadic && out.size() + 1 == macro.parameters.size()) {
    out.emplace_back();
  }
  if (out.size() != macro.parameters.size()) {
    fail_at(
        name.place,
        "The macro {} takes {} arguments, not {}.",
        quoted(name.text),
        macro.parameters.size(),
        out.size());
  }
  return out;
}

Token Macros::stringize(const Tokens& argument, const Place& place) {
  std::string text = "\"";
  for (const auto& token : argument) {
    text += token.spaced && text.size() > 1 ? " " : "";
    for (char c : token.text) {
      bool escaped = (c == '"' || c == '\\') &&
          (token.kind == Token::Kind::String ||
           token.kind == Token::Kind::Char);
      text += escaped ? "\\" : "";
      text += c;
    }
  }
  Token out;
  out.kind = Token::Kind::String;
  out.place = place;
  out.text = arena_.emplace_back(text + "\"");
  count(1 + text.size() / 16, place);
  return out;
}

Token Macros::paste(const Token& left, const Token& right, const Place& place) {
  std::string joined = std::string(left.text) + std::string(right.text);
  count(1 + joined.size() / 16, place);
  auto& text = arena_.emplace_back(std::move(joined));
  Tokens tokens;
  try {
    tokens = lex(text, place.in_header, arena_);
  } catch (const Error&) {
  }
  if (tokens.size() != 1) {
    fail_at(place, "`##` makes {}, which is not one token.", quoted(text));
  }
  tokens[0].place = place;
  tokens[0].spaced = left.spaced;
  tokens[0].starts_line = false;
  return tokens[0];
}

Tokens Macros::replace(
    const Macro& macro,
    const Token& name,
    Arguments arguments,
    int depth) {
  auto parameter = [&](const Token& token) {
    auto& names = macro.parameters;
    return token.is_name()
        ? std::find(names.begin(), names.end(), token.text) - names.begin()
        : ptrdiff_t(names.size());
  };
  ptrdiff_t none = macro.parameters.size();
  std::vector<Tokens> expanded(arguments.size());
  std::vector<bool> is_expanded(arguments.size());
  Tokens out;
  const auto& body = macro.body;
  for (size_t i = 0; i < body.size(); ++i) {
    ptrdiff_t index = parameter(body[i]);
    if (macro.takes_arguments && body[i].is("#") && i + 1 < body.size() &&
        parameter(body[i + 1]) != none) {
      out.push_back(stringize(arguments[parameter(body[++i])], name.place));
      continue;
    }
    bool pasted = i + 1 < body.size() && body[i + 1].is("#") &&
        i + 2 < body.size() && body[i + 2].is("#") && !body[i + 2].spaced;
    if (body[i].is("#") && i + 2 < body.size() && body[i + 1].is("#")) {
      // The next token is joined to the last one.
      ptrdiff_t next = parameter(body[i + 2]);
      Tokens right =
          next == none ? Tokens{body[i + 2]} : arguments[size_t(next)];
      i += 2;
      if (!right.empty()) {
        if (!out.empty()) {
          right[0] = paste(out.back(), right[0], name.place);
          out.pop_back();
        }
        out.insert(out.end(), right.begin(), right.end());
      }
      continue;
    }
    if (index == none) {
      out.push_back(body[i]);
      out.back().place = name.place;
      continue;
    }
    if (!pasted && !is_expanded[index]) {
      expanded[index] = expand(arguments[index], depth + 1);
      is_expanded[index] = true;
    }
    const auto& argument = pasted ? arguments[index] : expanded[index];
    out.insert(out.end(), argument.begin(), argument.end());
    count(argument.size(), name.place);
  }
  count(out.size() + 1, name.place);
  return out;
}

Tokens Macros::expand(const Tokens& in, int depth) {
  if (depth > kDeepest) {
    fail_at(
        in.empty() ? Place{} : in[0].place,
        "Macros are nested too deeply in their arguments.");
  }
  Reader reader;
  reader.push(in, nullptr);
  Tokens out;
  while (reader.peek()) {
    Token token = reader.next();
    auto found = token.is_name() && !token.painted ? macros_.find(token.text)
                                                   : macros_.end();
    if (found == macros_.end()) {
      out.push_back(token);
      continue;
    }
    Macro& macro = found->second;
    if (macro.active) {
      token.painted = true;
      out.push_back(token);
      continue;
    }
    const Token* next = macro.takes_arguments ? reader.peek() : nullptr;
    if (macro.takes_arguments && !(next && next->is("("))) {
      out.push_back(token);
      continue;
    }
    Arguments given;
    if (macro.takes_arguments) {
      given = arguments(reader, macro, token);
    }
    Tokens replaced = replace(macro, token, std::move(given), depth);
    if (!replaced.empty()) {
      replaced[0].spaced = token.spaced;
      replaced[0].starts_line = token.starts_line;
    }
    reader.push(std::move(replaced), &macro);
  }
  return out;
}

} // namespace msl

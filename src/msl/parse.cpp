#include "msl/parse.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "msl/tree.h"

extern "C" const TSLanguage* tree_sitter_cpp(void);

namespace mlx::core::vulkan::msl {

namespace {

struct ParserDelete {
  void operator()(TSParser* parser) const {
    ts_parser_delete(parser);
  }
};
struct TreeDelete {
  void operator()(TSTree* tree) const {
    ts_tree_delete(tree);
  }
};
using Parser = std::unique_ptr<TSParser, ParserDelete>;
using Tree = std::unique_ptr<TSTree, TreeDelete>;

// The words as the grammar is shown them, on one line.
struct Text {
  std::string text;
  std::vector<uint32_t> begins; // of each word; of a dropped one, of the next

  explicit Text(const Words& words) {
    for (const auto& word : words) {
      if (!word.glued && !text.empty()) {
        text += ' ';
      }
      begins.push_back(text.size());
      if (!word.dropped) {
        text += word.spelling;
      }
    }
  }
};

const char*
read(void* payload, uint32_t byte, TSPoint /*position*/, uint32_t* bytes) {
  const auto& text = *static_cast<const std::string*>(payload);
  *bytes = byte < text.size() ? text.size() - byte : 0;
  return text.data() + (*bytes ? byte : 0);
}

// Parsing ends at the first error: what recovery would guess is of no use, and
// takes long.
bool stop(TSParseState* state) {
  return state->has_error;
}

// What the parser's log says of where an error is. Several readings can be
// tried side by side: it is one when the last of them has failed.
struct Failure {
  uint32_t at = 0, byte = 0;
  bool found = false;

  static void log(void* payload, TSLogType, const char* line) {
    auto& failure = *static_cast<Failure*>(payload);
    std::string_view text = line;
    auto column = text.find("col:");
    if (failure.found) {
    } else if (text.starts_with("process ") && column != text.npos) {
      failure.at = std::strtoul(line + column + 4, nullptr, 10);
    } else if (text.starts_with("detect_error")) {
      failure.byte = std::max(failure.byte, failure.at);
    } else if (text.starts_with("resume ")) {
      failure.found = true;
    }
  }
};

Tree run(const std::string& text, Failure* failure) {
  Parser parser(ts_parser_new());
  ts_parser_set_language(parser.get(), tree_sitter_cpp());
  if (failure) {
    ts_parser_set_logger(parser.get(), {failure, Failure::log});
  }
  TSInput input{
      const_cast<std::string*>(&text), read, TSInputEncodingUTF8, nullptr};
  return Tree(ts_parser_parse_with_options(
      parser.get(), nullptr, input, {nullptr, stop}));
}

[[noreturn]] void fail(const Words& words, const Text& text) {
  Failure failure;
  run(text.text, &failure);
  size_t i = 0;
  while (i < words.size() &&
         (words[i].dropped || text.begins[i] < failure.byte)) {
    ++i;
  }
  // The last word of a body is the brace that it is wrapped in.
  bool wrapped = !words.empty() && words.back().role == Word::Role::Fixed &&
      words.back().is("}");
  if (i + wrapped >= words.size()) {
    Place last;
    if (words.size() > size_t(wrapped)) {
      last = words[words.size() - 1 - wrapped].token.place;
    }
    throw Error(
        last, "The text ends within a statement: is a `;` missing here?");
  }
  const Token& token = words[i].token;
  std::string what = quoted(token.text) + " is not expected here";
  if (i > 0 && token.place.in_header == words[i - 1].token.place.in_header) {
    what = quoted(token.text) + " is not expected behind " +
        quoted(words[i - 1].token.text);
    if (token.place.line != words[i - 1].token.place.line) {
      throw Error(
          words[i - 1].token.place,
          what + ": is a `;` missing at the end of this line?");
    }
  }
  throw Error(token.place, what + ".");
}

Tree parse_words(const Words& words, const Text& text) {
  Tree tree = run(text.text, nullptr);
  if (!tree || ts_node_has_error(ts_tree_root_node(tree.get()))) {
    fail(words, text);
  }
  return tree;
}

// The statements as a function's, `void v() { ... }`.
Words wrapped(Words body) {
  Words out;
  auto add = [&](std::string_view text, std::string_view spelling) {
    Word word;
    word.token.text = text;
    word.token.place = {false, 1, 1};
    word.token.kind = Token::Kind::Punct;
    word.spelling = spelling;
    word.role = Word::Role::Fixed;
    out.push_back(std::move(word));
  };
  add("void", "int");
  add("the body", "v");
  add("(", "(");
  add(")", ")");
  add("{", "{");
  for (auto& word : body) {
    out.push_back(std::move(word));
  }
  add("}", "}");
  if (out.size() > 6) {
    out.back().token.place = out[out.size() - 2].token.place;
  }
  return out;
}

} // namespace

std::string Error::message(
    std::string_view name,
    std::string_view header,
    std::string_view body) const {
  std::string out = "[metal_kernel] " + std::string(name) + ": ";
  if (place.line == 0) {
    return out + what();
  }
  std::string_view text = place.in_header ? header : body;
  for (uint32_t line = 1; line < place.line; ++line) {
    auto end = text.find('\n');
    text = end == text.npos ? "" : text.substr(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  auto first = text.find_first_not_of(" \t\r");
  text = first == text.npos ? "" : text.substr(first);
  text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
  out += "line " + std::to_string(place.line) + " of the " +
      (place.in_header ? "header" : "body") + ": ";
  if (!text.empty()) {
    size_t size = std::min(text.size(), size_t(200));
    while (size < text.size() && (text[size] & 0xc0) == 0x80) {
      --size; // a character of several bytes stays whole
    }
    std::string shown(text.substr(0, size));
    std::replace_if(
        shown.begin(),
        shown.end(),
        [](unsigned char c) { return c < ' '; },
        ' ');
    out += "`" + shown + "`: ";
  }
  return out + what();
}

Unit parse(
    std::string_view header,
    std::string_view body,
    std::span<const std::string> types) {
  Arena arena;
  auto source = preprocess(header, body, arena);
  std::vector<std::string_view> namespaces;
  Unit unit;
  NameScope names;
  {
    Words words = normalize(source.header, namespaces, arena);
    classify(words, names, false);
    Text text(words);
    Tree tree = parse_words(words, text);
    unit.declarations =
        Converter(words, text.begins).unit({ts_tree_root_node(tree.get())});
  }
  for (const auto& type : types) {
    names.names[type] = Meaning::Type;
  }
  Words words = normalize(source.body, namespaces, arena);
  classify(words, names, true);
  words = wrapped(std::move(words));
  Text text(words);
  Tree tree = parse_words(words, text);
  unit.body =
      Converter(words, text.begins).body({ts_tree_root_node(tree.get())});
  return unit;
}

} // namespace mlx::core::vulkan::msl

// A kernel of Metal's: translated to GLSL, or an Error with a place in the
// text. Input: a line of arguments ("x:float y:float:o ..."), template values
// ("T=half N=4 B=true") and flags (",8": a subgroup), then header and body with
// a byte 1 between them.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "fuzz/fuzz.h"
#include "msl/translate.h"

using namespace msl;

namespace {

bool is_name(std::string_view s) {
  return !s.empty() && s.size() < 40 && !std::isdigit(uint8_t(s[0])) &&
      std::all_of(s.begin(), s.end(), [](char c) {
        return c == '_' || (uint8_t(c) < 128 && std::isalnum(uint8_t(c)));
      });
}

constexpr std::string_view types[] = {
    "bool",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "float16_t",
    "bfloat16_t",
    "float",
    "int",
    "complex64_t"};

std::string_view type_of(std::string_view word) {
  auto it = std::find(std::begin(types), std::end(types), word);
  return it == std::end(types) ? "float" : *it;
}

void argument(Source& source, std::string_view word) {
  auto colon = word.find(':');
  auto rest = word.substr(colon + 1);
  auto flags = rest.substr(std::min(rest.find(':'), rest.size()));
  auto has = [&](char c) { return flags.find(c) != flags.npos; };
  auto& a = source.arguments.emplace_back();
  a.name = word.substr(0, colon);
  a.type = type_of(rest.substr(0, rest.find(':')));
  a.output = has('o');
  a.constant = !a.output && has('c');
  a.reference = a.constant && has('r');
  a.atomic = a.output && has('a');
}

void value(Source& source, std::string_view word) {
  auto equals = word.find('=');
  auto& t = source.templates.emplace_back();
  t.name = word.substr(0, equals);
  auto text = word.substr(equals + 1);
  int64_t number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (text == "true" || text == "false") {
    t.value = text == "true";
  } else if (error == std::errc{} && end == text.data() + text.size()) {
    t.value = number;
  } else {
    t.value = std::string(type_of(text));
  }
}

Source source_of(std::string_view all, Target& target) {
  Source source;
  source.name = "k";
  auto line = std::min(all.find('\n'), all.size());
  std::istringstream words{std::string(all.substr(0, line))};
  for (std::string word; words >> word && source.arguments.size() < 12;) {
    auto sign = word.find_first_of(":=");
    if (word == ",8") {
      target.subgroup = 8;
    } else if (word == ",a") {
      target.aligned = true;
    } else if (sign != word.npos && is_name(word.substr(0, sign))) {
      word[sign] == ':' ? argument(source, word) : value(source, word);
    }
  }
  auto rest = all.substr(std::min(line + 1, all.size()));
  auto split = rest.find('\1');
  source.header = split == rest.npos ? "" : rest.substr(0, split);
  source.body = split == rest.npos ? rest : rest.substr(split + 1);
  return source;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Target target;
  auto source = source_of(fuzz::text(data, size), target);
  try {
    auto made = translate(source, target);
    FUZZ_CHECK(made.glsl.find("void main()") != made.glsl.npos);
  } catch (const Error& e) {
    auto& text = e.place.in_header ? source.header : source.body;
    auto lines = std::count(text.begin(), text.end(), '\n') + 1;
    FUZZ_CHECK(e.place.line <= lines);
    FUZZ_CHECK(std::string_view(e.what()).size() > 10);
    FUZZ_CHECK(!e.message("k", source.header, source.body).empty());
  }
  return 0;
}

#include "msl/parse.h"

#include <algorithm>

#include "msl/parser.h"

namespace msl {

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
      (place.in_header ? "header" : "body") + ", column " +
      std::to_string(place.column) + ": ";
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
  FileNames file;
  Unit unit;
  unit.declarations = Parser(tidy(source.header, arena), file).unit();
  for (const auto& type : types) {
    file.scope.names[type] = Meaning::Type;
  }
  unit.body = Parser(tidy(source.body, arena), file).body();
  return unit;
}

} // namespace msl

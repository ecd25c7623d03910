#include "msl/text.h"

#include <algorithm>

namespace msl {

std::string filled(
    std::string_view form,
    std::initializer_list<std::string> parts) {
  std::string out;
  for (auto& part : parts) {
    size_t at = form.find("{}");
    out += form.substr(0, at);
    out += part;
    form.remove_prefix(at + 2);
  }
  return out += form;
}

std::string quoted(std::string_view text) {
  constexpr size_t longest = 60;
  std::string out = "`";
  for (char c : text.substr(0, longest)) {
    out += c >= ' ' && c < 127 ? c : ' ';
  }
  return out + (text.size() > longest ? "...`" : "`");
}

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

} // namespace msl

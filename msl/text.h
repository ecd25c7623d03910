// Texts with parts filled in: the translator's GLSL and its messages.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "msl/translate.h"

namespace msl {

inline std::string as_text(std::string_view text) {
  return std::string(text);
}
inline std::string as_text(char letter) {
  return std::string(1, letter);
}
inline std::string as_text(std::integral auto number) {
  return std::to_string(number);
}
std::string filled(std::string_view form, std::initializer_list<std::string>);

// `form` with each {} replaced by the next argument: a string, a number, or a
// type (types.h) by its name in MSL.
template <typename... Parts>
std::string fmt(std::string_view form, const Parts&... parts) {
  return filled(form, {as_text(parts)...});
}

// Throws an Error whose text is fmt(form, parts...).
template <typename... Parts>
[[noreturn]] void
fail_at(const Place& place, std::string_view form, const Parts&... parts) {
  throw Error(place, fmt(form, parts...));
}

// The user's text in backticks, for a message.
std::string quoted(std::string_view text);

} // namespace msl

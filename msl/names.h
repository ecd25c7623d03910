// The meaning of names before anything is declared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msl {

enum class Meaning : uint8_t {
  None,
  Type,
  TypeTemplate,
  BuiltInTypeTemplate, // whose bare name is no type
  ValueTemplate, // functions and variables
  Variable,
};

// The meaning that Metal and MLX's headers give a name.
Meaning built_in_meaning(std::string_view name);

// Why a word is not supported, and what to use instead; empty for other words.
std::string refused_word(std::string_view name);

// The words of a list, separated by spaces.
std::vector<std::string_view> words_of(std::string_view list);
// Whether a list of words, separated by spaces, contains this one.
bool has_word(std::string_view list, std::string_view word);

// c of a::b::c.
inline std::string last_name(const std::string& name) {
  return name.substr(name.rfind(':') + 1);
}

bool is_keyword(std::string_view name); // a name that users cannot have
bool is_space(std::string_view name); // device, constant, threadgroup, thread
// Address spaces, const, constexpr, volatile.
bool is_qualifier(std::string_view name);

} // namespace msl

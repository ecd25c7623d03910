// Text to tree, by tree-sitter's grammar of C++. Thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "msl/ast.h"

namespace mlx::core::vulkan::msl {

// What cannot be taken, as a sentence with the line of the user's text, that
// line, and the nearest way.
class Error : public std::runtime_error {
 public:
  Error(const Place& place, const std::string& what);
  Place place;
};

// Of a kernel's header (functions, structs, constants, macros) and its body.
// Directives (#define with and without arguments, #undef, #if on constants and
// macros, #include of metal's own headers, #pragma) are resolved. Throws Error.
Unit parse(std::string_view header, std::string_view body);

} // namespace mlx::core::vulkan::msl

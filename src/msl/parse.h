// Text to tree. Thread-safe.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "msl/ast.h"

namespace mlx::core::vulkan::msl {

// What cannot be taken and the nearest way, as a sentence; what() is that
// alone, message() what the user reads.
class Error : public std::runtime_error {
 public:
  Error(const Place& place, const std::string& what)
      : std::runtime_error(what), place(place) {}
  Place place;

  // "[metal_kernel] NAME: line 12 of the body, column 3: `the line`: sentence"
  std::string message(
      std::string_view name,
      std::string_view header,
      std::string_view body) const;
};

// Of a kernel's header (functions, structs, constants, macros) and its body.
// Directives (#define with and without arguments, #undef, #if on constants and
// macros, #include of metal's own headers, #pragma) are resolved. `types` are
// the template arguments of the kernel that are types, T: without them `(T)-x`
// is a difference. Throws Error.
Unit parse(
    std::string_view header,
    std::string_view body,
    std::span<const std::string> types = {});

} // namespace mlx::core::vulkan::msl

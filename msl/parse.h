// Text to tree. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "msl/ast.h"

namespace msl {

// Parses a kernel's header (functions, structs, constants, macros) and its
// body. Resolves directives (#define with and without arguments, #undef, #if on
// constants and macros, #include of metal's own headers, #pragma). `types` are
// the template arguments of the kernel that are types, T: without them `(T)-x`
// is a difference. Throws Error.
Unit parse(
    std::string_view header,
    std::string_view body,
    std::span<const std::string> types = {});

} // namespace msl

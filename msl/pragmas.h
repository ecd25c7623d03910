// Pragmas: hints for loops, and the rules of float operations.
#pragma once

#include "msl/macros.h"

namespace msl {

// Appends to `out` the tokens for the words after #pragma: none for pragmas
// that change nothing. Throws Error for unknown ones that may change the
// kernel's results.
void read_pragma(
    const Tokens& words,
    const Token& at,
    Macros& macros,
    Arena& arena,
    Tokens& out);

// Removes the tokens of float rules and sets Place::exact of the others. A rule
// holds to the end of the compound statement that it is in; at the header's
// file scope it also holds in the body, which follows in the same file.
void scope_float_rules(Tokens& header, Tokens& body);

} // namespace msl

// Pragmas: hints for loops, and the rules of float operations.
#pragma once

#include "msl/macros.h"

namespace msl {

// Appends to `out` the tokens that the words after #pragma stand for: none for
// pragmas that change nothing. Throws Error for unknown ones that may change
// the kernel's results.
void read_pragma(
    const Tokens& words,
    const Token& at,
    Macros& macros,
    Arena& arena,
    Tokens& out);

// Takes the tokens of float rules out and sets Place::exact of the others: a
// rule holds to the end of the compound statement in which it stands, in the
// header's file scope also in the body, which stands behind it in the same
// file.
void scope_float_rules(Tokens& header, Tokens& body);

} // namespace msl

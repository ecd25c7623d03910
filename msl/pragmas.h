// Pragmas: hints for loops, and the rules of float operations.
#pragma once

#include "msl/macros.h"

namespace msl {

// What the words after #pragma mean, as tokens behind `out`: none for those
// that change nothing. Throws Error for those that may change what the kernel
// computes and are not known.
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

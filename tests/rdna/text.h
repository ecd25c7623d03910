// LLVM's text of an instruction, parsed once.
#pragma once

#include <span>
#include <string>

#include "instruction.h"

namespace rdna {

// Fills an instruction from LLVM's text and from its machine code, which says
// what the text leaves out. Throws Fault if the mnemonic, an operand or a
// modifier is unknown. `text` is one half of a VOPD pair if `half`.
void parse(
    Instruction& instruction,
    const std::string& text,
    std::span<const uint32_t> words);

} // namespace rdna

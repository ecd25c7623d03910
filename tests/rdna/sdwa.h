// Sub-dword addressing of gfx9 and gfx10 (RDNA2 ISA, "SDWA"): sources are bytes
// or halves of registers, and so is the result.
#pragma once

#include <memory>
#include <span>

#include "instruction.h"

namespace rdna {

// The instruction that an SDWA one wraps, or null if `words` are none. `i` has
// its operands and modifiers; it then runs the selection around the other.
std::unique_ptr<Instruction> wrap_sdwa(
    std::span<const uint32_t> words,
    Instruction& i);

} // namespace rdna

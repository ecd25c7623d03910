// LLVM's assembler, by its C interface: the machine code that the tests of
// instructions run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rdna {

struct Target;

// The machine code of assembly text. Throws Fault with LLVM's message.
std::vector<uint8_t> assemble(const Target& target, const std::string& text);

} // namespace rdna

// Decoded shaders.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "instruction.h"

namespace rdna {

struct Target {
  std::string cpu; // LLVM's name: "gfx1100", "gfx1151", "gfx1201", ...
  uint32_t gfx; // 9, 10, 11, 12
  uint32_t lanes; // 32 or 64
};

class Program {
 public:
  uint64_t address; // GPU address of the first instruction
  std::vector<Instruction> code;
  size_t size = 0; // bytes of code
  // Second halves of VOPD pairs, and what SDWA instructions wrap.
  std::vector<std::unique_ptr<Instruction>> others;
  // Executions of code[i]; what counts are made of.
  mutable std::vector<uint64_t> runs;
};

// The shader whose machine code begins at `code`; the span ends where memory
// does. Decodes once for a target, an address and the code's bytes. Throws
// Fault naming the mnemonic and the whole text of an instruction that is not
// known. LLVM's library is `llvm` ("libLLVM.so.21.1" unless set_llvm was
// called).
const Program&
decode(const Target& target, uint64_t address, std::span<const uint8_t> code);

void set_llvm(std::string library);

} // namespace rdna

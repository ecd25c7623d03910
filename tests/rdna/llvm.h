// LLVM's disassembler, by its C interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rdna {

// The library's name, and LLVM's names of what a target has.
const std::string& llvm_library();
std::string llvm_features(uint32_t gfx, uint32_t lanes);

class Disassembler {
 public:
  // `cpu`: LLVM's name of the chip. Throws Fault if LLVM cannot be loaded or
  // does not know the chip.
  Disassembler(const std::string& cpu, uint32_t gfx, uint32_t lanes);

  // The text of the first instruction, blanks single; `size` becomes its bytes,
  // 0 if they are no instruction.
  std::string operator()(std::span<const uint8_t> code, size_t& size) const;

 private:
  void* context_;
};

} // namespace rdna

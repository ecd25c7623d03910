// A decoded instruction: what the functions that execute it read.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rdna {

struct Wave;
struct Instruction;
using Function = void (*)(Wave&, const Instruction&);

struct Operand {
  enum class Kind : uint8_t { None, Vector, Scalar, Constant, Off };

  Kind kind = Kind::None;
  uint8_t registers = 1;
  uint16_t index = 0; // register number
  bool negate = false; // "-v0": of floats
  bool absolute = false; // "|v0|"
  bool high = false; // bits 31:16 of the register, of 16-bit operands
  // Constants by the width of the operand: an inline 1.0 is 0x3c00, 0x3f800000
  // or 0x3ff0000000000000.
  uint16_t value16 = 0;
  uint32_t value = 0;
  uint64_t value64 = 0;
  bool real = false; // an inline constant that is a float

  bool vector() const {
    return kind == Kind::Vector;
  }
  bool scalar() const {
    return kind == Kind::Scalar;
  }
};

// How the first source's lanes move before the operation (RDNA3 ISA, "DPP").
enum class Dpp : uint8_t {
  None,
  QuadPerm,
  RowShl,
  RowShr,
  RowRor,
  RowMirror,
  RowHalfMirror,
  RowShare,
  RowXmask,
  Lanes8, // DPP8
  WaveShl, // gfx9: all 64 lanes by one
  WaveRol,
  WaveShr,
  WaveRor,
  RowBcast15, // gfx9: a row's last lane to the next row
  RowBcast31, // and lane 31 to the upper half
};

// Selections of sub-dword addressing; numbers as encoded.
struct Sdwa {
  uint8_t result = 6;
  uint8_t unused = 0;
  std::array<uint8_t, 2> source{};
  std::array<bool, 2> extend{};
  uint8_t sources = 0;
  uint8_t first = 0; // operand of the first source
};

enum class Omod : uint8_t { None, Times2, Times4, Half };

struct Instruction {
  Function run = nullptr;
  std::array<Operand, 8> operands; // as in the text, results first
  uint8_t count = 0; // of operands
  uint8_t op_sel = 0; // bit k: source k's high half; bit 3: the result's
  uint8_t op_sel_hi = 0;
  uint8_t neg_lo = 0;
  uint8_t neg_hi = 0;
  bool clamp = false;
  Omod omod = Omod::None;
  Dpp dpp = Dpp::None;
  uint8_t row_mask = 15;
  uint8_t bank_mask = 15;
  bool bound_ctrl = false; // lanes without a source read 0
  bool fetch_inactive = false;
  std::array<uint8_t, 8> select{}; // of DPP: its argument, or lanes
  int32_t offset = 0; // bytes
  int32_t offset0 = 0; // items, of two-address LDS instructions
  int32_t offset1 = 0;
  uint32_t target = 0; // of branches: index in the program
  // The second half of a VOPD pair (RDNA3 ISA, "Dual Issue VALU").
  const Instruction* second = nullptr;
  Sdwa sdwa;
  const Instruction* inner = nullptr; // what an SDWA instruction wraps
  std::string text; // LLVM's
  uint32_t pc = 0; // byte offset in the shader
  uint32_t size = 0; // bytes
};

} // namespace rdna

// The tables of instructions: each row names one and the function that
// executes it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "instruction.h"

namespace rdna {

// What a function does with the modifiers of its instruction. A modifier that
// a row does not list is an unknown instruction, never ignored.
enum Honours : uint8_t {
  kPlain = 0,
  kSigns = 1, // neg() and || of sources
  kClamp = 2,
  kOmod = 4,
  kOpSel = 8,
  kPacked = 16, // op_sel_hi, neg_lo, neg_hi
  kDpp = 32,
  kNoOperands = 64, // the text's operands have no meaning here
  kFloat = kSigns | kClamp | kOmod | kDpp,
};

struct Row {
  std::string_view name;
  Function run;
  uint8_t honours;
};

using Table = std::span<const Row>;
Table scalar_table();
Table scalar_float_table();
Table control_table();
Table vector_table();
Table vector_float_table();
Table half_table();
Table packed_table();
Table compare_table();
Table lanes_table();
Table matrix_table();
Table global_table();
Table shared_table();
Table atomic_table();

std::vector<const Row*> all_rows();
// The row that a decoded instruction came from.
const Row* row_of(const Instruction& instruction);
// A mnemonic without LLVM's suffix of the encoding, as the tables have it.
std::string without_encoding(std::string_view mnemonic);
// The row of a mnemonic without encoding suffix, or null.
const Row* find_row(std::string_view name);

} // namespace rdna

#include "text.h"

#include <cctype>
#include <cstdio>
#include <vector>

#include "arithmetic.h"
#include "table.h"
#include "wave.h"

namespace rdna {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}
bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix))
    return false;
  text.remove_suffix(suffix.size());
  return true;
}
i64 integer(std::string_view text) {
  return std::stoll(std::string(text), nullptr, 0);
}

// Families of encodings, from the first word (RDNA3 ISA and Vega ISA,
// "Instruction Formats"; gfx9's numbers are no others' in what is executed).
bool is_vop3p(u32 word) {
  return word >> 24 == 0xcc || word >> 23 == 0b110100111;
}
bool is_vop3(u32 word) {
  return word >> 26 == 0b110101 || (word >> 26 == 0b110100 && !is_vop3p(word));
}
// Those whose last word may be a constant of 32 bits.
bool has_literal(u32 word) {
  bool vector = word >> 31 == 0 || is_vop3(word) || is_vop3p(word) ||
      word >> 26 == 0b110010;
  bool sop2 = word >> 30 == 2 && word >> 28 != 0xb;
  bool sop1_sopc = word >> 23 == 0x17d || word >> 23 == 0x17e;
  return vector || sop2 || sop1_sopc;
}

// Operands --------------------------------------------------------------------

// "v7", "v7.h", "s[4:7]", "ttmp9".
bool parse_register(std::string_view text, Operand& o) {
  Operand::Kind kind = Operand::Kind::Scalar;
  int base = 0;
  if (take_prefix(text, "ttmp"))
    base = kTtmp;
  else if (take_prefix(text, "v"))
    kind = Operand::Kind::Vector;
  else if (!take_prefix(text, "s"))
    return false;
  o.high = take_suffix(text, ".h");
  take_suffix(text, ".l");
  int first = 0, last = 0, end = 0;
  std::string copy(text);
  if (sscanf(copy.c_str(), "[%d:%d]%n", &first, &last, &end) == 2 && end) {
  } else if (sscanf(copy.c_str(), "%d%n", &first, &end) == 1 && end)
    last = first;
  else
    return false;
  if (size_t(end) != copy.size())
    return false;
  o.kind = kind;
  o.index = u16(base + first);
  o.registers = u8(last - first + 1);
  return true;
}

bool parse_name(std::string_view text, Operand& o) {
  struct Name {
    std::string_view name;
    u16 index;
    u8 registers;
  };
  constexpr Name names[] = {
      {"vcc", kVcc, 2},
      {"vcc_lo", kVcc, 1},
      {"vcc_hi", kVcc + 1, 1},
      {"exec", kExec, 2},
      {"exec_lo", kExec, 1},
      {"exec_hi", kExec + 1, 1},
      {"m0", kM0, 1},
      {"null", kNull, 1},
      {"flat_scratch", kFlatScratch, 2},
      {"flat_scratch_lo", kFlatScratch, 1},
      {"flat_scratch_hi", kFlatScratch + 1, 1},
      {"scc", kScc, 1},
      {"src_scc", kScc, 1},
      {"src_vccz", kVccz, 1},
      {"src_execz", kExecz, 1},
  };
  for (const Name& n : names)
    if (n.name == text) {
      o.kind = Operand::Kind::Scalar;
      o.index = n.index;
      o.registers = n.registers;
      return true;
    }
  return false;
}

bool parse_number(std::string_view text, Operand& o, bool& hexadecimal) {
  bool digit = !text.empty() && (isdigit(text[0]) || text[0] == '-');
  if (!digit ||
      text.find_first_not_of("0123456789abcdefxABCDEFX.-") != text.npos)
    return false;
  o.kind = Operand::Kind::Constant;
  hexadecimal = text.starts_with("0x");
  if (!hexadecimal && text.find('.') != text.npos) {
    double x = std::stod(std::string(text));
    o.real = true;
    o.value16 = half(float(x));
    o.value = bits(float(x));
    o.value64 = std::bit_cast<u64>(x);
  } else {
    // 64-bit values above the largest signed one are not printed as such.
    i64 x = integer(text);
    o.value16 = u16(x);
    o.value = u32(x);
    o.value64 = u64(x);
  }
  return true;
}

Operand parse_operand(
    std::string_view text,
    std::string_view mnemonic,
    std::span<const u32> words) {
  Operand o;
  bool hexadecimal = false;
  if (text == "off") {
    o.kind = Operand::Kind::Off;
    return o;
  }
  if (text.starts_with("hwreg(")) {
    o.kind = Operand::Kind::Constant;
    o.value = words[0] & 0xffff;
    return o;
  }
  std::string_view plain = text;
  bool negative = plain.size() > 1 && plain[0] == '-' && !isdigit(plain[1]);
  if (negative)
    plain.remove_prefix(1);
  if (take_prefix(plain, "sext(")) // of SDWA, by the encoding
    take_suffix(plain, ")");
  if (take_prefix(plain, "neg(")) {
    take_suffix(plain, ")");
    negative = true;
  }
  if (take_prefix(plain, "|")) {
    take_suffix(plain, "|");
    o.absolute = true;
  }
  if (take_prefix(plain, "lit("))
    take_suffix(plain, ")");
  o.negate = negative;
  if (!parse_number(plain, o, hexadecimal) && !parse_name(plain, o) &&
      !parse_register(plain, o))
    throw Fault("unknown operand " + std::string(text));
  // LLVM prints the half of a literal that a 16-bit operand has.
  if (hexadecimal && has_literal(words[0]) && words.size() > 1) {
    u32 literal = words.back();
    o.value = literal;
    o.value16 = u16(literal);
    o.value64 = mnemonic.find("_f64") != mnemonic.npos ? u64(literal) << 32
        : mnemonic.find("_i64") != mnemonic.npos       ? u64(i64(i32(literal)))
                                                       : literal;
  }
  return o;
}

// Modifiers -------------------------------------------------------------------

// Cache policies and counters to wait for, which have no effect here, and
// selections of SDWA, which the encoding has.
bool ignored(std::string_view word) {
  for (std::string_view known : {"glc", "slc", "dlc", "nv"})
    if (word == known)
      return true;
  return word.starts_with("th:") || word.starts_with("scope:") ||
      word.starts_with("wait_exp:") || word.starts_with("dst_sel:") ||
      word.starts_with("dst_unused:") || word.starts_with("src0_sel:") ||
      word.starts_with("src1_sel:");
}

// DPP, whose numbers read_dpp() takes from the encoding.
bool names_dpp(std::string_view name) {
  for (std::string_view known :
       {"quad_perm",
        "dpp8",
        "row_shl",
        "row_shr",
        "row_ror",
        "row_mirror",
        "row_half_mirror",
        "row_share",
        "row_xmask",
        "row_bcast",
        "wave_shl",
        "wave_shr",
        "wave_rol",
        "wave_ror",
        "row_mask",
        "bank_mask",
        "bound_ctrl",
        "fi"})
    if (name == known)
      return true;
  return false;
}

bool parse_offset(
    std::string_view name,
    std::string_view value,
    std::span<const u32> words,
    Instruction& i) {
  if (name == "offset0")
    i.offset0 = i32(integer(value));
  else if (name == "offset1")
    i.offset1 = i32(integer(value));
  else if (name == "offset" && value.starts_with("swizzle("))
    i.offset = words[0] & 0xffff;
  else if (name == "offset")
    i.offset = i32(integer(value));
  else
    return false;
  return true;
}

// Returns what a row must honour, as Honours.
u32 parse_modifier(
    std::string_view word,
    std::span<const u32> words,
    Instruction& i) {
  size_t colon = word.find(':');
  std::string_view name = word.substr(0, colon);
  std::string_view value =
      colon == word.npos ? std::string_view() : word.substr(colon + 1);
  if (name == "op_sel")
    return is_vop3p(words[0]) ? kPacked : kOpSel;
  if (name == "op_sel_hi" || name == "neg_lo" || name == "neg_hi")
    return kPacked;
  if (name == "clamp") {
    i.clamp = true;
    return kClamp;
  }
  if (word == "mul:2" || word == "mul:4" || word == "div:2") {
    i.omod = word == "mul:2" ? Omod::Times2
        : word == "mul:4"    ? Omod::Times4
                             : Omod::Half;
    return kOmod;
  }
  if (names_dpp(name))
    return kDpp;
  if (!parse_offset(name, value, words, i) && !ignored(word))
    throw Fault("unknown modifier " + std::string(word));
  return 0;
}

Dpp dpp_of(u32 control) {
  switch (control >> 4) {
    case 0x10:
      return Dpp::RowShl;
    case 0x11:
      return Dpp::RowShr;
    case 0x12:
      return Dpp::RowRor;
    case 0x15:
      return Dpp::RowShare;
    case 0x16:
      return Dpp::RowXmask;
  }
  switch (control) {
    case 0x130:
      return Dpp::WaveShl;
    case 0x134:
      return Dpp::WaveRol;
    case 0x138:
      return Dpp::WaveShr;
    case 0x13c:
      return Dpp::WaveRor;
    case 0x140:
      return Dpp::RowMirror;
    case 0x141:
      return Dpp::RowHalfMirror;
    case 0x142:
      return Dpp::RowBcast15;
    case 0x143:
      return Dpp::RowBcast31;
  }
  throw Fault("unknown DPP");
}

// The word that follows the encoding if its first source is one of three
// numbers (RDNA3 ISA, "DPP16" and "DPP8"). LLVM 21 prints wrong lanes for
// v_fma_mixlo_f16_e64_dpp.
void read_dpp(std::span<const u32> words, Instruction& i) {
  bool vop3 = is_vop3(words[0]) || is_vop3p(words[0]);
  bool short_form = words[0] >> 31 == 0;
  size_t at = vop3 ? 2 : 1;
  if ((!vop3 && !short_form) || words.size() <= at)
    return;
  constexpr u32 kDpp8 = 233, kDpp8Fetch = 234, kDpp16 = 250;
  u32 source = words[at - 1] & 0x1ff, word = words[at];
  if (source == kDpp8 || source == kDpp8Fetch) {
    i.dpp = Dpp::Lanes8;
    i.fetch_inactive = source == kDpp8Fetch;
    for (u32 k = 0; k < 8; ++k)
      i.select[k] = u8(word >> (8 + 3 * k) & 7);
    return;
  }
  if (source != kDpp16)
    return;
  i.row_mask = u8(word >> 28);
  i.bank_mask = word >> 24 & 15;
  i.bound_ctrl = word >> 19 & 1;
  i.fetch_inactive = word >> 18 & 1;
  u32 control = word >> 8 & 0x1ff;
  if (control < 0x100) {
    i.dpp = Dpp::QuadPerm;
    for (u32 k = 0; k < 4; ++k)
      i.select[k] = control >> 2 * k & 3;
    return;
  }
  i.select[0] = control & 15;
  i.dpp = dpp_of(control);
}

// Bits of the encoding that LLVM prints in several ways, or not at all.
void read_encoding(std::span<const u32> words, const Row& row, Instruction& i) {
  if (row.honours & kOpSel && is_vop3(words[0]))
    i.op_sel = words[0] >> 11 & 15;
  if (row.honours & kPacked && is_vop3p(words[0])) {
    i.op_sel = words[0] >> 11 & 7;
    i.op_sel_hi = u8((words[1] >> 27 & 3) | (words[0] >> 14 & 1) << 2);
    i.neg_lo = words[1] >> 29 & 7;
    i.neg_hi = words[0] >> 8 & 7;
  }
  if (row.honours & kDpp)
    read_dpp(words, i);
}

// Parts -----------------------------------------------------------------------

struct Parts {
  std::string mnemonic;
  std::vector<std::string> operands;
  std::vector<std::string> modifiers;
};

// Operands end with commas, the first blank outside of brackets ends them.
Parts split(const std::string& text) {
  Parts parts;
  size_t at = std::min(text.find(' '), text.size());
  parts.mnemonic = text.substr(0, at);
  std::string word;
  int depth = 0;
  bool in_modifiers = false;
  auto end = [&] {
    if (!word.empty())
      (in_modifiers ? parts.modifiers : parts.operands).push_back(word);
    word.clear();
  };
  for (size_t k = at + 1; k < text.size(); ++k) {
    char c = text[k];
    if (text.compare(k, 2, "/*") == 0) {
      k = std::min(text.find("*/", k), text.size()) + 1;
      continue;
    }
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (depth == 0 && c == ',' && !in_modifiers) {
      end();
      if (k + 1 < text.size() && text[k + 1] == ' ')
        ++k;
    } else if (depth == 0 && c == ' ') {
      end();
      in_modifiers = true;
    } else
      word += c;
  }
  end();
  return parts;
}

} // namespace

std::string without_encoding(std::string_view mnemonic) {
  for (std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"})
    if (take_suffix(mnemonic, suffix))
      break;
  if (take_prefix(mnemonic, "v_dual_"))
    return "v_" + std::string(mnemonic);
  return std::string(mnemonic);
}

void parse(
    Instruction& i,
    const std::string& text,
    std::span<const uint32_t> words) {
  Parts parts = split(text);
  std::string name = without_encoding(parts.mnemonic);
  const Row* row = find_row(name);
  if (!row)
    throw Fault("unknown instruction " + parts.mnemonic);
  i.run = row->run;
  if (row->honours & kNoOperands)
    return;
  u32 needs = 0;
  for (const std::string& operand : parts.operands) {
    if (i.count == i.operands.size())
      throw Fault("too many operands");
    Operand& o = i.operands[i.count++];
    o = parse_operand(operand, name, words);
    if (o.negate || o.absolute)
      needs |= kSigns;
  }
  for (const std::string& modifier : parts.modifiers)
    needs |= parse_modifier(modifier, words, i);
  read_encoding(words, *row, i);
  if (needs & ~row->honours)
    throw Fault("unknown modifier of " + parts.mnemonic);
}

} // namespace rdna

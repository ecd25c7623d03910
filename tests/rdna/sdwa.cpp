#include "sdwa.h"

#include <cstring>

#include "operands.h"

namespace rdna {
namespace {

// Registers that no program names: the selected sources, and the result.
constexpr u16 kSource = kVectorRegisters, kResult = kVectorRegisters + 2;

// Numbers of selections: bytes 0 to 3, halves 4 and 5, all 6.
u32 first_bit(u32 select) {
  return select < 4 ? 8 * select : select == 5 ? 16 : 0;
}
u32 width(u32 select) {
  return select < 4 ? 8 : select < 6 ? 16 : 32;
}

void select(
    Wave& w,
    const Instruction& i,
    const Operand& o,
    u32 selection,
    bool extend,
    u32 to) {
  Lanes<u32> room;
  const u32* p = read(w, i, o, room);
  u32 first = first_bit(selection), count = width(selection);
  for (u32 l = 0; l < w.lanes; ++l)
    w.v[to][l] = extend ? u32(signed_field(i32(p[l]), first, count))
                        : field(p[l], first, count);
}

// The rest of the register is 0, the sign, or as before.
u32 inserted(const Sdwa& sdwa, u32 before, u32 result) {
  u32 first = first_bit(sdwa.result), count = width(sdwa.result);
  u32 mask = ones(count) << first, placed = result << first & mask;
  bool negative = result >> (count - 1) & 1;
  switch (sdwa.unused) {
    case 0:
      return placed;
    case 1:
      return placed | (negative ? ~ones(count) << first : 0);
    default:
      return placed | (before & ~mask);
  }
}

void run_sdwa(Wave& w, const Instruction& i) {
  const Instruction& inner = *i.inner;
  const Sdwa& sdwa = i.sdwa;
  for (u32 k = 0; k < sdwa.sources; ++k)
    select(
        w,
        i,
        i.operands[sdwa.first + k],
        sdwa.source[k],
        sdwa.extend[k],
        kSource + k);
  if (!i.operands[0].vector() || sdwa.first == 0)
    return inner.run(w, inner);
  u32* result = w.v[i.operands[0].index];
  std::memcpy(w.v[kResult], result, sizeof w.v[kResult]);
  inner.run(w, inner);
  each_active(w, [&](u32 l) {
    result[l] = inserted(sdwa, result[l], w.v[kResult][l]);
  });
}

} // namespace

std::unique_ptr<Instruction> wrap_sdwa(
    std::span<const uint32_t> words,
    Instruction& i) {
  constexpr u32 kSdwa = 249;
  if (words.size() != 2 || words[0] >> 31 || (words[0] & 0x1ff) != kSdwa)
    return nullptr;
  u32 word = words[1];
  constexpr u32 kVopc = 0b0111110, kVop1 = 0b0111111;
  bool compares = words[0] >> 25 == kVopc;
  Sdwa& s = i.sdwa;
  s.result = compares ? 6 : word >> 8 & 7;
  s.unused = word >> 11 & 3;
  s.source = {u8(word >> 16 & 7), u8(word >> 24 & 7)};
  s.extend = {bool(word >> 19 & 1), bool(word >> 27 & 1)};
  s.sources = words[0] >> 25 == kVop1 ? 1 : 2;
  bool carries = i.count > 3 && !i.text.starts_with("v_cndmask");
  s.first = compares ? i.count - 2 : carries ? 2 : 1;
  auto inner = std::make_unique<Instruction>(i);
  for (u32 k = 0; k < s.sources; ++k) {
    Operand& o = inner->operands[s.first + k];
    o.kind = Operand::Kind::Vector;
    o.index = u16(kSource + k);
    i.operands[s.first + k].negate = i.operands[s.first + k].absolute = false;
  }
  if (!compares && inner->operands[0].vector())
    inner->operands[0].index = kResult;
  i.inner = inner.get();
  i.run = run_sdwa;
  return inner;
}

} // namespace rdna

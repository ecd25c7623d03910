// Scalar instructions of integers (RDNA3 ISA, "SOP1", "SOP2", "SOPC", "SOPK").
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

// F(sources..., scc) is the result; F may read and write SCC.
template <auto F>
void scalar1(Wave& w, const Instruction& i) {
  set_scalar(w, i.operands[0], F(scalar(w, i.operands[1]), w.scc));
}
template <auto F>
void scalar2(Wave& w, const Instruction& i) {
  u32 a = scalar(w, i.operands[1]), b = scalar(w, i.operands[2]);
  set_scalar(w, i.operands[0], F(a, b, w.scc));
}
template <auto F>
void wide1(Wave& w, const Instruction& i) {
  set_scalar64(w, i.operands[0], F(scalar64(w, i.operands[1]), w.scc));
}
template <auto F>
void wide2(Wave& w, const Instruction& i) {
  u64 a = scalar64(w, i.operands[1]), b = scalar64(w, i.operands[2]);
  set_scalar64(w, i.operands[0], F(a, b, w.scc));
}
// 32 bits from 64, 64 from 32, and 64 from 64 and 32.
template <auto F>
void narrowed(Wave& w, const Instruction& i) {
  set_scalar(w, i.operands[0], F(scalar64(w, i.operands[1]), w.scc));
}
template <auto F>
void widened(Wave& w, const Instruction& i) {
  u32 a = scalar(w, i.operands[1]),
      b = i.count > 2 ? scalar(w, i.operands[2]) : 0;
  set_scalar64(w, i.operands[0], F(a, b));
}
template <auto F>
void shift64(Wave& w, const Instruction& i) {
  u64 a = scalar64(w, i.operands[1]);
  set_scalar64(w, i.operands[0], F(a, scalar(w, i.operands[2]), w.scc));
}

// The result is also the first source; the second is a source or a constant of
// 16 bits.
template <auto F>
void update1(Wave& w, const Instruction& i) {
  u32 a = scalar(w, i.operands[0]), b = scalar(w, i.operands[1]);
  set_scalar(w, i.operands[0], F(a, b, w.scc));
}
template <auto F>
void constant16(Wave& w, const Instruction& i) {
  u32 a = scalar(w, i.operands[0]), b = i32(i16(i.operands[1].value));
  set_scalar(w, i.operands[0], F(a, b, w.scc));
}

template <auto F>
void compare32(Wave& w, const Instruction& i) {
  w.scc = F(scalar(w, i.operands[0]), scalar(w, i.operands[1]));
}
template <auto F>
void compare64(Wave& w, const Instruction& i) {
  w.scc = F(scalar64(w, i.operands[0]), scalar64(w, i.operands[1]));
}
template <auto F>
void bit64(Wave& w, const Instruction& i) {
  w.scc = F(scalar64(w, i.operands[0]), scalar(w, i.operands[1]));
}
template <class Extended, auto F>
void compare16(Wave& w, const Instruction& i) {
  w.scc = F(scalar(w, i.operands[0]), u32(Extended(i.operands[1].value)));
}

// D = EXEC; EXEC = F(S0, EXEC). With Result: D is the new EXEC.
template <bool Wide, bool Result, auto F>
void save_exec(Wave& w, const Instruction& i) {
  u64 source = Wide ? scalar64(w, i.operands[1]) : scalar(w, i.operands[1]);
  u64 exec = Wide ? w.pair(kExec) : w.s[kExec];
  u64 next = F(source, exec);
  if (!Wide)
    next = u32(next);
  w.scc = next != 0;
  if (Wide)
    set_scalar64(w, i.operands[0], Result ? next : exec);
  else
    set_scalar(w, i.operands[0], u32(Result ? next : exec));
  w.set_exec(next);
}

void s_cselect_b64(Wave& w, const Instruction& i) {
  set_scalar64(w, i.operands[0], scalar64(w, i.operands[w.scc ? 1 : 2]));
}
void s_cmov_b32(Wave& w, const Instruction& i) {
  if (w.scc)
    set_scalar(w, i.operands[0], scalar(w, i.operands[1]));
}
void s_cmov_b64(Wave& w, const Instruction& i) {
  if (w.scc)
    set_scalar64(w, i.operands[0], scalar64(w, i.operands[1]));
}
void s_cmovk_i32(Wave& w, const Instruction& i) {
  if (w.scc)
    set_scalar(w, i.operands[0], i32(i16(i.operands[1].value)));
}
// The address of the next instruction.
void s_getpc_b64(Wave& w, const Instruction& i) {
  set_scalar64(w, i.operands[0], w.code + i.pc + i.size);
}

u32 add(u32 a, u32 b, bool& scc) {
  u32 r;
  scc = __builtin_add_overflow(a, b, &r);
  return r;
}
u32 add_carry(u32 a, u32 b, bool& scc) {
  u64 r = u64(a) + b + scc;
  scc = r >> 32;
  return u32(r);
}
u32 subtract(u32 a, u32 b, bool& scc) {
  scc = b > a;
  return a - b;
}
u32 subtract_borrow(u32 a, u32 b, bool& scc) {
  u64 r = u64(a) - b - scc;
  scc = r >> 32 & 1;
  return u32(r);
}
u32 add_signed(u32 a, u32 b, bool& scc) {
  i32 r;
  scc = __builtin_add_overflow(i32(a), i32(b), &r);
  return r;
}
u32 subtract_signed(u32 a, u32 b, bool& scc) {
  i32 r;
  scc = __builtin_sub_overflow(i32(a), i32(b), &r);
  return r;
}
template <u32 Shift>
u32 shift_add(u32 a, u32 b, bool& scc) {
  u64 r = (u64(a) << Shift) + b;
  scc = r >> 32;
  return u32(r);
}
// SCC: the first source is the result.
template <class T, bool Least>
u32 extreme(u32 x, u32 y, bool& scc) {
  T a = T(x), b = T(y);
  scc = Least ? a < b : a >= b;
  return u32(scc ? a : b);
}
u64 twice_each_bit(u32 x) {
  u64 r = 0;
  for (u32 k = 0; k < 32; ++k)
    r |= u64(x >> k & 1) * 3 << 2 * k;
  return r;
}
// Fields of S0: first bit and count are in S1.
u64 field64(u64 x, u32 s) {
  return x >> (s & 63) & ones64(s >> 16 & 127);
}
u64 signed_field64(u64 x, u32 s) {
  u32 first = s & 63, count = s >> 16 & 127;
  if (count == 0)
    return 0;
  if (first + count >= 64)
    return u64(i64(x) >> first);
  return u64(i64(x << (64 - first - count)) >> (64 - count));
}

// clang-format off
// Z: SCC is whether the result is not zero.
#define PLAIN(T, e) -> T { return T(e); }
#define ZERO(T, e) -> T { T r = T(e); scc = r != 0; return r; }
#define SCC bool& scc [[maybe_unused]]
#define S1(name, e) {#name, scalar1<[](u32 a, SCC) PLAIN(u32, e)>, kPlain}
#define S1Z(name, e) {#name, scalar1<[](u32 a, SCC) ZERO(u32, e)>, kPlain}
#define S2(name, e) {#name, scalar2<[](u32 a, u32 b, SCC) PLAIN(u32, e)>, kPlain}
#define S2Z(name, e) {#name, scalar2<[](u32 a, u32 b, SCC) ZERO(u32, e)>, kPlain}
#define W1(name, e) {#name, wide1<[](u64 a, SCC) PLAIN(u64, e)>, kPlain}
#define W1Z(name, e) {#name, wide1<[](u64 a, SCC) ZERO(u64, e)>, kPlain}
#define W2(name, e) {#name, wide2<[](u64 a, u64 b, SCC) PLAIN(u64, e)>, kPlain}
#define W2Z(name, e) {#name, wide2<[](u64 a, u64 b, SCC) ZERO(u64, e)>, kPlain}
#define N1(name, e) {#name, narrowed<[](u64 a, SCC) PLAIN(u32, e)>, kPlain}
#define N1Z(name, e) {#name, narrowed<[](u64 a, SCC) ZERO(u32, e)>, kPlain}
#define SHIFT64Z(name, e) \
  {#name, shift64<[](u64 a, u32 b, SCC) ZERO(u64, e)>, kPlain}
#define WIDENED(name, e) \
  {#name, widened<[](u32 a, u32 b [[maybe_unused]]) PLAIN(u64, e)>, kPlain}
#define UPDATE(name, e) \
  {#name, update1<[](u32 a, u32 b, SCC) PLAIN(u32, e)>, kPlain}
#define COMPARE(op, e) \
  {"s_cmp_" op "_u32", compare32<[](u32 a, u32 b) { return (e); }>, kPlain}, \
  {"s_cmp_" op "_i32", compare32<[](i32 a, i32 b) { return (e); }>, kPlain}, \
  {"s_cmpk_" op "_u32", compare16<u16, [](u32 a, u32 b) { return (e); }>, kPlain}, \
  {"s_cmpk_" op "_i32", compare16<i16, [](i32 a, i32 b) { return (e); }>, kPlain}
#define EXEC(name, result, e) \
  {"s_" name "_b32", \
   save_exec<false, result, [](u64 s, u64 exec) -> u64 { return (e); }>, \
   kPlain}, \
  {"s_" name "_b64", \
   save_exec<true, result, [](u64 s, u64 exec) -> u64 { return (e); }>, \
   kPlain}
#define SAVE(op, e) EXEC(op "_saveexec", false, e)
#define WRITE_EXEC(op, e) EXEC(op "_wrexec", true, e)

constexpr Row rows[] = {
    S1(s_mov_b32, a),
    W1(s_mov_b64, a),
    {"s_movk_i32", constant16<[](u32, u32 b, bool&) { return b; }>, kPlain},
    {"s_cmov_b32", s_cmov_b32, kPlain},
    {"s_cmov_b64", s_cmov_b64, kPlain},
    {"s_cmovk_i32", s_cmovk_i32, kPlain},
    {"s_getpc_b64", s_getpc_b64, kPlain},
    S2(s_cselect_b32, scc ? a : b),
    {"s_cselect_b64", s_cselect_b64, kPlain},

    {"s_add_u32", scalar2<add>, kPlain},
    {"s_addc_u32", scalar2<add_carry>, kPlain},
    {"s_sub_u32", scalar2<subtract>, kPlain},
    {"s_subb_u32", scalar2<subtract_borrow>, kPlain},
    {"s_add_i32", scalar2<add_signed>, kPlain},
    {"s_sub_i32", scalar2<subtract_signed>, kPlain},
    {"s_addk_i32", constant16<add_signed>, kPlain},
    {"s_mulk_i32", constant16<[](u32 a, u32 b, bool&) { return a * b; }>, kPlain},
    W2(s_add_nc_u64, a + b),
    W2(s_sub_nc_u64, a - b),
    W2(s_mul_u64, (a * b)),
    S2(s_mul_i32, (a * b)),
    S2(s_mul_hi_u32, u64(a) * b >> 32),
    S2(s_mul_hi_i32, i64(i32(a)) * i32(b) >> 32),
    {"s_lshl1_add_u32", scalar2<shift_add<1>>, kPlain},
    {"s_lshl2_add_u32", scalar2<shift_add<2>>, kPlain},
    {"s_lshl3_add_u32", scalar2<shift_add<3>>, kPlain},
    {"s_lshl4_add_u32", scalar2<shift_add<4>>, kPlain},
    {"s_min_u32", scalar2<extreme<u32, true>>, kPlain},
    {"s_max_u32", scalar2<extreme<u32, false>>, kPlain},
    {"s_min_i32", scalar2<extreme<i32, true>>, kPlain},
    {"s_max_i32", scalar2<extreme<i32, false>>, kPlain},
    S1Z(s_abs_i32, i32(a) < 0 ? 0 - a : a),

    S2Z(s_and_b32, (a & b)),
    S2Z(s_or_b32, a | b),
    S2Z(s_xor_b32, a ^ b),
    S2Z(s_nand_b32, ~(a & b)),
    S2Z(s_nor_b32, ~(a | b)),
    S2Z(s_xnor_b32, ~(a ^ b)),
    S2Z(s_and_not1_b32, a & ~b),
    S2Z(s_or_not1_b32, a | ~b),
    S1Z(s_not_b32, ~a),
    W2Z(s_and_b64, (a & b)),
    W2Z(s_or_b64, a | b),
    W2Z(s_xor_b64, a ^ b),
    W2Z(s_nand_b64, ~(a & b)),
    W2Z(s_nor_b64, ~(a | b)),
    W2Z(s_xnor_b64, ~(a ^ b)),
    W2Z(s_and_not1_b64, a & ~b),
    W2Z(s_or_not1_b64, a | ~b),
    W1Z(s_not_b64, ~a),

    S2Z(s_lshl_b32, a << (b & 31)),
    S2Z(s_lshr_b32, a >> (b & 31)),
    S2Z(s_ashr_i32, i32(a) >> (b & 31)),
    SHIFT64Z(s_lshl_b64, a << (b & 63)),
    SHIFT64Z(s_lshr_b64, a >> (b & 63)),
    SHIFT64Z(s_ashr_i64, i64(a) >> (b & 63)),
    S2Z(s_bfe_u32, field(a, b & 31, b >> 16 & 127)),
    S2Z(s_absdiff_i32, i32(a - b) < 0 ? b - a : a - b),
    S2Z(s_bfe_i32, signed_field(a, b & 31, b >> 16 & 127)),
    SHIFT64Z(s_bfe_u64, field64(a, b)),
    SHIFT64Z(s_bfe_i64, signed_field64(a, b)),
    S2(s_bfm_b32, ones(a & 31) << (b & 31)),
    WIDENED(s_bfm_b64, ones64(a & 63) << (b & 63)),
    S2(s_pack_ll_b32_b16, (a & 0xffff) | b << 16),
    S2(s_pack_lh_b32_b16, (a & 0xffff) | (b & 0xffff0000)),
    S2(s_pack_hl_b32_b16, a >> 16 | b << 16),
    S2(s_pack_hh_b32_b16, a >> 16 | (b & 0xffff0000)),
    S1(s_brev_b32, reverse(a)),
    W1(s_brev_b64, u64(reverse(u32(a))) << 32 | reverse(u32(a >> 32))),
    S1(s_clz_i32_u32, a ? std::countl_zero(a) : -1),
    S1(s_ctz_i32_b32, a ? std::countr_zero(a) : -1),
    S1(s_cls_i32, sign_bits(a)),
    N1(s_clz_i32_u64, a ? std::countl_zero(a) : -1),
    N1(s_ctz_i32_b64, a ? std::countr_zero(a) : -1),
    S1Z(s_bcnt1_i32_b32, std::popcount(a)),
    S1Z(s_bcnt0_i32_b32, std::popcount(~a)),
    N1Z(s_bcnt1_i32_b64, std::popcount(a)),
    N1Z(s_bcnt0_i32_b64, std::popcount(~a)),
    S1(s_sext_i32_i8, i8(a)),
    S1(s_sext_i32_i16, i16(a)),
    UPDATE(s_bitset0_b32, a & ~(1u << (b & 31))),
    UPDATE(s_bitset1_b32, a | 1u << (b & 31)),
    WIDENED(s_bitreplicate_b64_b32, twice_each_bit(a)),

    COMPARE("eq", a == b),
    COMPARE("lg", a != b),
    COMPARE("gt", a > b),
    COMPARE("ge", a >= b),
    COMPARE("lt", a < b),
    COMPARE("le", a <= b),
    {"s_cmp_eq_u64", compare64<[](u64 a, u64 b) { return a == b; }>, kPlain},
    {"s_cmp_lg_u64", compare64<[](u64 a, u64 b) { return a != b; }>, kPlain},
    {"s_bitcmp0_b32",
     compare32<[](u32 a, u32 b) { return !(a >> (b & 31) & 1); }>,
     kPlain},
    {"s_bitcmp1_b32",
     compare32<[](u32 a, u32 b) { return (a >> (b & 31) & 1); }>,
     kPlain},
    {"s_bitcmp0_b64",
     bit64<[](u64 a, u32 b) { return !(a >> (b & 63) & 1); }>,
     kPlain},
    {"s_bitcmp1_b64",
     bit64<[](u64 a, u32 b) { return (a >> (b & 63) & 1); }>,
     kPlain},

    SAVE("and", (s & exec)),
    SAVE("or", s | exec),
    SAVE("xor", s ^ exec),
    SAVE("nand", ~(s & exec)),
    SAVE("nor", ~(s | exec)),
    SAVE("xnor", ~(s ^ exec)),
    SAVE("and_not0", ~s & exec),
    SAVE("and_not1", s & ~exec),
    SAVE("or_not0", ~s | exec),
    SAVE("or_not1", s | ~exec),
    WRITE_EXEC("and_not0", ~s & exec),
    WRITE_EXEC("and_not1", s & ~exec),
};
// clang-format on

} // namespace

Table scalar_table() {
  return rows;
}

} // namespace rdna

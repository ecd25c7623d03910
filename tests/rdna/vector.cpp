// Vector instructions of 32- and 64-bit integers (RDNA3 ISA, "VOP1", "VOP2",
// "VOP3 & VOP3SD").
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

// Results of one, two and three sources, lane by lane -------------------------

template <auto F>
void lanes1(Wave& w, const Instruction& i) {
  Lanes<u32> a, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  each(w, [&](size_t l) { r[l] = F(p[l]); });
  write(w, i, r);
}
template <auto F>
void lanes2(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  each(w, [&](size_t l) { r[l] = F(p[l], q[l]); });
  write(w, i, r);
}
template <auto F>
void lanes3(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  const u32* s = read(w, i, i.operands[3], c);
  each(w, [&](size_t l) { r[l] = F(p[l], q[l], s[l]); });
  write(w, i, r);
}

// With the clamp modifier: F is the exact result, which saturates to T.
template <class T, auto F>
void clamped2(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  if (i.clamp)
    each(w, [&](size_t l) { r[l] = u32(clamped<T>(F(T(p[l]), T(q[l])))); });
  else
    each(w, [&](size_t l) { r[l] = u32(F(T(p[l]), T(q[l]))); });
  write(w, i, r);
}

// Sources 2 and 3 follow the carry's register; F is exact, and bit 32 of it is
// the carry, which lanes that are not active clear.
template <auto F, bool In>
void carry(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read(w, i, i.operands[2], a, true);
  const u32* q = read(w, i, i.operands[3], b);
  u64 in = In ? scalar_mask(w, i.operands[4]) : 0, out = 0;
  for (u32 l = 0; l < w.lanes; ++l) {
    i64 exact = F(i64(p[l]), i64(q[l]), i64(in >> l & 1));
    u64 carried = exact >> 32 & 1;
    out |= carried << l;
    r[l] = i.clamp && carried ? (exact < 0 ? 0 : ~0u) : u32(exact);
  }
  write(w, i, r);
  set_scalar_mask(w, i.operands[1], out & w.exec());
}

template <auto F>
void shift64(Wave& w, const Instruction& i) {
  Lanes<u32> a;
  Lanes<u64> b, r;
  const u32* p = read(w, i, i.operands[1], a);
  read64(w, i.operands[2], b);
  each(w, [&](size_t l) { r[l] = F(p[l] & 63, b[l]); });
  write64(w, i.operands[0].index, r);
}

// D = S0 * S1 + S2 with 64 bits; the carry out of unsigned sums.
void v_mad_u64_u32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b;
  Lanes<u64> c, r;
  const u32* p = read(w, i, i.operands[2], a);
  const u32* q = read(w, i, i.operands[3], b);
  read64(w, i.operands[4], c);
  u64 out = 0;
  for (u32 l = 0; l < w.lanes; ++l)
    out |= u64(__builtin_add_overflow(u64(p[l]) * q[l], c[l], &r[l])) << l;
  write64(w, i.operands[0].index, r);
  set_scalar_mask(w, i.operands[1], out & w.exec());
}
void v_mad_i64_i32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b;
  Lanes<u64> c, r;
  const u32* p = read(w, i, i.operands[2], a);
  const u32* q = read(w, i, i.operands[3], b);
  read64(w, i.operands[4], c);
  u64 out = 0;
  for (u32 l = 0; l < w.lanes; ++l) {
    i64 exact = i64(i32(p[l])) * i32(q[l]), sum;
    out |= u64(__builtin_add_overflow(exact, i64(c[l]), &sum)) << l;
    r[l] = u64(sum);
  }
  write64(w, i.operands[0].index, r);
  set_scalar_mask(w, i.operands[1], out & w.exec());
}

// D = VCC or S2 ? S1 : S0, with float signs.
void v_cndmask_b32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  const u32* q = read_float(w, i, i.operands[2], b);
  u64 mask = i.count > 3 ? scalar_mask(w, i.operands[3]) : w.vcc();
  for (u32 base = 0; base < w.lanes; base += 32) {
    u32 part = u32(mask >> base);
    for (u32 l = 0; l < 32; ++l)
      r[base + l] = part & (1u << l) ? q[base + l] : p[base + l];
  }
  write(w, i, r);
}

void v_nop(Wave&, const Instruction&) {}

// Byte k of D is the byte of {S0, S1} that byte k of S2 selects: 0 to 7 a byte
// (0 is S1's lowest), 8 to 11 the sign of a half, 12 zero, above all ones.
u32 permute_bytes(u32 a, u32 b, u32 select) {
  u64 from = u64(a) << 32 | b;
  u32 r = 0;
  for (u32 k = 0; k < 32; k += 8) {
    u32 s = select >> k & 255;
    u32 byte = s < 8 ? from >> 8 * s & 255
        : s < 12     ? (from >> (16 * (s - 8) + 15) & 1) * 255
        : s == 12    ? 0
                     : 255;
    r |= byte << k;
  }
  return r;
}
u32 sum_of_differences(u32 a, u32 b, u32 c) {
  for (u32 k = 0; k < 32; k += 8)
    c += std::abs(i32(a >> k & 255) - i32(b >> k & 255));
  return c;
}

// clang-format off
#define U1(name, e) \
  {#name, lanes1<[](u32 a) -> u32 { return (e); }>, kDpp}
#define U2(name, e) \
  {#name, lanes2<[](u32 a, u32 b) -> u32 { return (e); }>, kDpp}
#define I2(name, e) \
  {#name, lanes2<[](i32 a, i32 b) -> u32 { return u32(e); }>, kDpp}
#define U3(name, e) \
  {#name, lanes3<[](u32 a, u32 b, u32 c) -> u32 { return (e); }>, kDpp}
#define I3(name, e) \
  {#name, lanes3<[](i32 a, i32 b, i32 c) -> u32 { return u32(e); }>, kDpp}
#define CLAMPED2(name, T, e) \
  {#name, clamped2<T, [](i64 a, i64 b) -> i64 { return (e); }>, kDpp | kClamp}
#define CARRY(name, in, e) \
  {#name, carry<[](i64 a, i64 b, i64 c) -> i64 { return (e) + 0 * c; }, in>, \
   kDpp | kClamp}
#define SHIFT64(name, e) \
  {#name, shift64<[](u32 a, u64 b) -> u64 { return (e); }>, kPlain}

constexpr Row rows[] = {
    {"v_nop", v_nop, kPlain},
    U1(v_mov_b32, a),
    U1(v_not_b32, ~a),
    U1(v_bfrev_b32, reverse(a)),
    U1(v_clz_i32_u32, a ? std::countl_zero(a) : -1),
    U1(v_ctz_i32_b32, a ? std::countr_zero(a) : -1),
    U1(v_cls_i32, sign_bits(a)),

    CLAMPED2(v_add_nc_u32, u32, a + b),
    CLAMPED2(v_sub_nc_u32, u32, a - b),
    CLAMPED2(v_subrev_nc_u32, u32, b - a),
    CLAMPED2(v_add_nc_i32, i32, a + b),
    CLAMPED2(v_sub_nc_i32, i32, a - b),
    U2(v_and_b32, a & b),
    U2(v_or_b32, a | b),
    U2(v_xor_b32, a ^ b),
    U2(v_xnor_b32, ~(a ^ b)),
    U2(v_lshlrev_b32, b << (a & 31)),
    U2(v_lshrrev_b32, b >> (a & 31)),
    I2(v_ashrrev_i32, b >> (a & 31)),
    U2(v_min_u32, std::min(a, b)),
    U2(v_max_u32, std::max(a, b)),
    I2(v_min_i32, std::min(a, b)),
    I2(v_max_i32, std::max(a, b)),
    U2(v_mul_lo_u32, a * b),
    U2(v_mul_hi_u32, u64(a) * b >> 32),
    I2(v_mul_hi_i32, i64(a) * b >> 32),
    U2(v_mul_u32_u24, (a & 0xffffff) * (b & 0xffffff)),
    U2(v_mul_hi_u32_u24, u64(a & 0xffffff) * (b & 0xffffff) >> 32),
    I2(v_mul_i32_i24, signed24(a) * signed24(b)),
    I2(v_mul_hi_i32_i24, i64(signed24(a)) * signed24(b) >> 32),
    U2(v_bcnt_u32_b32, std::popcount(a) + b),
    U2(v_bfm_b32, ones(a & 31) << (b & 31)),
    I2(v_cvt_pk_i16_i32, u16(clamped<i16>(a)) | u32(u16(clamped<i16>(b))) << 16),
    U2(v_cvt_pk_u16_u32, std::min(a, 0xffffu) | std::min(b, 0xffffu) << 16),

    U3(v_add3_u32, a + b + c),
    U3(v_and_or_b32, (a & b) | c),
    U3(v_or3_b32, a | b | c),
    U3(v_xor3_b32, a ^ b ^ c),
    U3(v_xad_u32, (a ^ b) + c),
    U3(v_lshl_add_u32, (a << (b & 31)) + c),
    U3(v_add_lshl_u32, (a + b) << (c & 31)),
    U3(v_lshl_or_b32, (a << (b & 31)) | c),
    U3(v_bfe_u32, field(a, b & 31, c & 31)),
    I3(v_bfe_i32, signed_field(a, b & 31, c & 31)),
    U3(v_bfi_b32, (a & b) | (~a & c)),
    U3(v_alignbit_b32, (u64(a) << 32 | b) >> (c & 31)),
    U3(v_alignbyte_b32, (u64(a) << 32 | b) >> 8 * (c & 3)),
    U3(v_mad_u32_u24, (a & 0xffffff) * (b & 0xffffff) + c),
    I3(v_mad_i32_i24, signed24(a) * signed24(b) + c),
    U3(v_min3_u32, std::min(std::min(a, b), c)),
    U3(v_max3_u32, std::max(std::max(a, b), c)),
    I3(v_min3_i32, std::min(std::min(a, b), c)),
    I3(v_max3_i32, std::max(std::max(a, b), c)),
    U3(v_minmax_u32, std::max(std::min(a, b), c)),
    U3(v_maxmin_u32, std::min(std::max(a, b), c)),
    I3(v_minmax_i32, std::max(std::min(a, b), c)),
    I3(v_maxmin_i32, std::min(std::max(a, b), c)),
    U3(v_med3_u32, median(a, b, c)),
    I3(v_med3_i32, median(a, b, c)),
    U3(v_perm_b32, permute_bytes(a, b, c)),
    U3(v_sad_u8, sum_of_differences(a, b, c)),

    CARRY(v_add_co_u32, false, a + b),
    CARRY(v_sub_co_u32, false, a - b),
    CARRY(v_subrev_co_u32, false, b - a),
    CARRY(v_add_co_ci_u32, true, a + b + c),
    CARRY(v_sub_co_ci_u32, true, a - b - c),
    CARRY(v_subrev_co_ci_u32, true, b - a - c),

    SHIFT64(v_lshlrev_b64, b << a),
    SHIFT64(v_lshrrev_b64, b >> a),
    SHIFT64(v_ashrrev_i64, i64(b) >> a),
    {"v_mad_u64_u32", v_mad_u64_u32, kPlain},
    {"v_mad_i64_i32", v_mad_i64_i32, kPlain},

    {"v_cndmask_b32", v_cndmask_b32, kSigns | kDpp},
};
// clang-format on

} // namespace

Table vector_table() {
  return rows;
}

} // namespace rdna

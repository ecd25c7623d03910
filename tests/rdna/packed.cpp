// Packed 16-bit, mixed-precision and dot-product instructions (RDNA3 ISA,
// "VOP3P").
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

enum class Sort { Integer, Float };

// What a constant holds for both halves: a float is a binary16 in the low half
// for float operations; all else is 32 bits.
const u32* read_pair(
    const Wave& w,
    const Instruction& i,
    const Operand& o,
    Sort sort,
    Lanes<u32>& room) {
  if (sort == Sort::Integer || !o.real)
    return read(w, i, o, room);
  each(w, [&](size_t l) { room[l] = o.value16; });
  return room.x;
}

u16 part(u32 x, bool high, bool negate) {
  return u16(x >> (high ? 16 : 0)) ^ (negate ? 0x8000 : 0);
}

u16 clamp_half(u16 x) {
  float y = f16(x);
  return y > 0 ? (y < 1 ? x : 0x3c00) : 0;
}

template <int N, Sort S, auto F>
void packed(Wave& w, const Instruction& i) {
  Lanes<u32> room[3], r;
  const u32* source[3] = {};
  for (u32 k = 0; k < N; ++k)
    source[k] = read_pair(w, i, i.operands[1 + k], S, room[k]);
  for (u32 l = 0; l < w.lanes; ++l) {
    u16 x[3] = {}, y[3] = {};
    for (u32 k = 0; k < N; ++k) {
      x[k] = part(source[k][l], i.op_sel >> k & 1, i.neg_lo >> k & 1);
      y[k] = part(source[k][l], i.op_sel_hi >> k & 1, i.neg_hi >> k & 1);
    }
    u16 low = F(x[0], x[1], x[2]), high = F(y[0], y[1], y[2]);
    if (S == Sort::Float) {
      if ((low & 0x7fff) > 0x7c00)
        low = nan16_of(x[0], x[1], x[2]);
      if ((high & 0x7fff) > 0x7c00)
        high = nan16_of(y[0], y[1], y[2]);
      if (i.clamp) {
        low = clamp_half(low);
        high = clamp_half(high);
      }
    }
    r[l] = low | u32(high) << 16;
  }
  write(w, i.operands[0].index, r.x);
}
// Sums and differences, which the clamp modifier saturates.
template <class T, auto F>
void packed_clamped(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_pair(w, i, i.operands[1], Sort::Integer, a);
  const u32* q = read_pair(w, i, i.operands[2], Sort::Integer, b);
  auto result = [&](u16 x, u16 y) {
    i64 exact = F(T(x), T(y));
    return u16(i.clamp ? clamped<T>(exact) : exact);
  };
  for (u32 l = 0; l < w.lanes; ++l) {
    u16 low = result(
        part(p[l], i.op_sel & 1, false), part(q[l], i.op_sel & 2, false));
    u16 high = result(
        part(p[l], i.op_sel_hi & 1, false), part(q[l], i.op_sel_hi & 2, false));
    r[l] = low | u32(high) << 16;
  }
  write(w, i.operands[0].index, r.x);
}

// fma of binary32, of sources that are binary32 or, where op_sel_hi has their
// bit, the half of a register that op_sel selects.
void mixed(Wave& w, const Instruction& i, Lanes<u32>& r) {
  Lanes<u32> x[3];
  for (u32 k = 0; k < 3; ++k) {
    const Operand& o = i.operands[1 + k];
    if (i.op_sel_hi >> k & 1) {
      Lanes<u16> t;
      read16(w, i, o, k, t);
      for (u32 l = 0; l < w.lanes; ++l)
        x[k][l] = bits(f16(t[l]));
    } else {
      Lanes<u32> room;
      const u32* p = read_float(w, i, o, room, k == 0);
      each(w, [&](size_t l) { x[k][l] = p[l]; });
    }
  }
  each(w, [&](size_t l) {
    float a = f32(x[0][l]), b = f32(x[1][l]), c = f32(x[2][l]);
    float f = std::fma(a, b, c);
    r[l] = f == f ? bits(f) : nan_of(a, b, c);
  });
  if (i.clamp)
    each(w, [&](size_t l) { r[l] = bits(modified(i, f32(r[l]))); });
}
void v_fma_mix_f32(Wave& w, const Instruction& i) {
  Lanes<u32> r;
  mixed(w, i, r);
  write(w, i, r);
}
void mix_to_half(Wave& w, const Instruction& i, bool high) {
  Lanes<u32> r;
  Lanes<u16> narrow;
  mixed(w, i, r);
  for (u32 l = 0; l < w.lanes; ++l)
    narrow[l] = half(f32(r[l]));
  write16(w, i, high, narrow);
}
void v_fma_mixlo_f16(Wave& w, const Instruction& i) {
  mix_to_half(w, i, false);
}
void v_fma_mixhi_f16(Wave& w, const Instruction& i) {
  mix_to_half(w, i, true);
}

// Four products of bytes; clamp saturates.
void dot4(
    Wave& w,
    const Instruction& i,
    u32 third,
    bool signed_a,
    bool signed_b) {
  Lanes<u32> a, b, c, r;
  const u32* p = read(w, i, i.operands[1], a);
  const u32* q = read(w, i, i.operands[2], b);
  const u32* s = read(w, i, i.operands[third], c);
  for (u32 l = 0; l < w.lanes; ++l) {
    i64 sum = i32(s[l]);
    for (u32 k = 0; k < 32; k += 8) {
      u8 x = u8(p[l] >> k), y = u8(q[l] >> k);
      sum += (signed_a ? i8(x) : x) * (signed_b ? i8(y) : y);
    }
    r[l] = u32(i.clamp ? clamped<i32>(sum) : sum);
  }
  write(w, i, r);
}
void v_dot4_i32_iu8(Wave& w, const Instruction& i) {
  dot4(w, i, 3, i.neg_lo & 1, i.neg_lo & 2);
}
// RDNA2's.
void v_dot4_i32_i8(Wave& w, const Instruction& i) {
  dot4(w, i, 3, true, true);
}
void v_dot4c_i32_i8(Wave& w, const Instruction& i) {
  dot4(w, i, 0, true, true);
}
void v_dot4_u32_u8(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read(w, i, i.operands[1], a);
  const u32* q = read(w, i, i.operands[2], b);
  const u32* s = read(w, i, i.operands[3], c);
  for (u32 l = 0; l < w.lanes; ++l) {
    i64 sum = s[l];
    for (u32 k = 0; k < 32; k += 8)
      sum += u8(p[l] >> k) * u8(q[l] >> k);
    r[l] = u32(i.clamp ? clamped<u32>(sum) : sum);
  }
  write(w, i, r);
}
// Two products of halves and a binary32; the document leaves the order and the
// rounding of the two sums open.
template <auto Widen>
void dot2(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  const u32* s = read(w, i, i.operands[3], c);
  for (u32 l = 0; l < w.lanes; ++l) {
    auto factor = [&](u32 x, u32 k, bool second) {
      u32 choice = second ? i.op_sel_hi : i.op_sel;
      u32 negate = second ? i.neg_hi : i.neg_lo;
      float y = Widen(part(x, choice >> k & 1, false));
      return negate >> k & 1 ? -y : y;
    };
    float addend = i.neg_lo & 4 ? -f32(s[l]) : f32(s[l]);
    float low =
        std::fma(factor(p[l], 0, false), factor(q[l], 1, false), addend);
    float sum = std::fma(factor(p[l], 0, true), factor(q[l], 1, true), low);
    r[l] = sum == sum ? bits(i.clamp ? modified(i, sum) : sum) : kNan;
  }
  write(w, i, r);
}

// clang-format off
#define PF2(name, e) \
  {#name, \
   packed< \
       2, \
       Sort::Float, \
       [](u16 x, u16 y, u16) -> u16 { \
         float a = f16(x), b = f16(y); \
         return half(e); \
       }>, \
   kPacked | kClamp}
#define P2(name, e) \
  {#name, \
   packed< \
       2, \
       Sort::Integer, \
       [](u16 a, u16 b, u16) -> u16 { return u16(e); }>, \
   kPacked}
#define PI2(name, e) \
  {#name, \
   packed< \
       2, \
       Sort::Integer, \
       [](i16 a, i16 b, i16) -> u16 { return u16(e); }>, \
   kPacked}
#define PCLAMPED2(name, T, e) \
  {#name, packed_clamped<T, [](i64 a, i64 b) -> i64 { return (e); }>, \
   kPacked | kClamp}
#define P3(name, e) \
  {#name, \
   packed< \
       3, \
       Sort::Integer, \
       [](u16 a, u16 b, u16 c) -> u16 { return u16(e); }>, \
   kPacked}

constexpr Row rows[] = {
    PF2(v_pk_add_f16, a + b),
    PF2(v_pk_mul_f16, (a * b)),
    PF2(v_pk_min_f16, min_number(a, b)),
    PF2(v_pk_max_f16, max_number(a, b)),
    {"v_pk_fma_f16", packed<3, Sort::Float, fma16>, kPacked | kClamp},
    PCLAMPED2(v_pk_add_u16, u16, a + b),
    PCLAMPED2(v_pk_sub_u16, u16, a - b),
    PCLAMPED2(v_pk_add_i16, i16, a + b),
    PCLAMPED2(v_pk_sub_i16, i16, a - b),
    P2(v_pk_mul_lo_u16, u32(a) * b),
    P2(v_pk_lshlrev_b16, b << (a & 15)),
    P2(v_pk_lshrrev_b16, b >> (a & 15)),
    PI2(v_pk_ashrrev_i16, b >> (a & 15)),
    P2(v_pk_min_u16, std::min(a, b)),
    P2(v_pk_max_u16, std::max(a, b)),
    PI2(v_pk_min_i16, std::min(a, b)),
    PI2(v_pk_max_i16, std::max(a, b)),
    P3(v_pk_mad_u16, u32(a) * b + c),
    P3(v_pk_mad_i16, u32(a) * b + c),
    {"v_fma_mix_f32", v_fma_mix_f32, kPacked | kSigns | kClamp | kDpp},
    {"v_fma_mixlo_f16", v_fma_mixlo_f16, kPacked | kSigns | kClamp | kDpp},
    {"v_fma_mixhi_f16", v_fma_mixhi_f16, kPacked | kSigns | kClamp | kDpp},
    {"v_dot4_i32_iu8", v_dot4_i32_iu8, kPacked | kClamp},
    {"v_dot4_i32_i8", v_dot4_i32_i8, kPacked | kClamp},
    {"v_dot4c_i32_i8", v_dot4c_i32_i8, kDpp},
    {"v_dot4_u32_u8", v_dot4_u32_u8, kPacked | kClamp},
    {"v_dot2_f32_f16", dot2<f16>, kPacked | kClamp | kDpp},
    {"v_dot2_f32_bf16", dot2<bf16>, kPacked | kClamp | kDpp},
};
// clang-format on

} // namespace

Table packed_table() {
  return rows;
}

} // namespace rdna

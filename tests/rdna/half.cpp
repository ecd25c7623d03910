// Vector instructions of 16-bit operands: a half of a register each (RDNA3
// ISA, "VOP1", "VOP2", "VOP3 & VOP3SD"; halves by op_sel or as v0.l, v0.h).
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

bool high_result(const Instruction& i) {
  return i.operands[0].high || (i.op_sel & 8);
}

// gfx9's operations of one and two sources clear the upper half (LLVM found so:
// zeroesHigh16BitsOfDest); those of three have op_sel and keep it.
bool whole(const Wave& w, int sources) {
  return w.gfx == 9 && sources < 3;
}

enum class Sort { Integer, Float };

// Clamp and output modifier of a binary16 result; NaN as of the sources.
u16 finished(const Instruction& i, u16 r, u16 a, u16 b, u16 c) {
  if ((r & 0x7fff) > 0x7c00)
    return i.clamp ? 0 : nan16_of(a, b, c);
  return modifies(i) ? half(modified(i, f16(r))) : r;
}

// N sources from operand 1; F takes three.
template <int N, auto F, Sort S, int Third = 3>
void halves(Wave& w, const Instruction& i) {
  Lanes<u16> a{}, b{}, c{}, r;
  read16(w, i, i.operands[1], 0, a);
  if (N > 1)
    read16(w, i, i.operands[2], 1, b);
  if (N > 2)
    read16(w, i, i.operands[Third], 2, c);
  for (u32 l = 0; l < w.lanes; ++l) {
    r[l] = F(a[l], b[l], c[l]);
    if (S == Sort::Float)
      r[l] = finished(i, r[l], a[l], b[l], c[l]);
  }
  write16(w, i, high_result(i), r, whole(w, N));
}
template <class T, auto F>
void clamped_halves(Wave& w, const Instruction& i) {
  Lanes<u16> a, b, r;
  read16(w, i, i.operands[1], 0, a);
  read16(w, i, i.operands[2], 1, b);
  for (u32 l = 0; l < w.lanes; ++l) {
    i64 exact = F(T(a[l]), T(b[l]));
    r[l] = u16(i.clamp ? clamped<T>(exact) : exact);
  }
  write16(w, i, high_result(i), r, whole(w, 2));
}

// A sum of 32 bits from 16-bit factors.
template <class T>
void multiply_wide(Wave& w, const Instruction& i) {
  Lanes<u16> a, b;
  Lanes<u32> c, r;
  read16(w, i, i.operands[1], 0, a);
  read16(w, i, i.operands[2], 1, b);
  const u32* s = read(w, i, i.operands[3], c);
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = u32(T(a[l])) * u32(T(b[l])) + s[l];
  write(w, i, r);
}

void v_cvt_f16_f32(Wave& w, const Instruction& i) {
  Lanes<u32> a;
  Lanes<u16> r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  for (u32 l = 0; l < w.lanes; ++l) {
    float x = f32(p[l]);
    // The modifiers apply to the result, as wide as binary32 until rounded.
    r[l] = half(modified(i, x));
    if (x != x)
      r[l] = i.clamp
          ? 0
          : u16((bits(x) >> 16 & 0x8000) | 0x7e00 | (bits(x) >> 13 & 0x1ff));
  }
  write16(w, i, high_result(i), r, whole(w, 1));
}
template <auto F>
void from_half(Wave& w, const Instruction& i) {
  Lanes<u16> a;
  Lanes<u32> r;
  read16(w, i, i.operands[1], 0, a);
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = F(a[l]);
  write(w, i, r);
}
void v_cvt_f32_f16(Wave& w, const Instruction& i) {
  Lanes<u16> a;
  Lanes<u32> r;
  read16(w, i, i.operands[1], 0, a);
  for (u32 l = 0; l < w.lanes; ++l) {
    float x = f16(a[l]);
    r[l] = bits(modified(i, x));
  }
  write(w, i, r);
}
void v_pack_b32_f16(Wave& w, const Instruction& i) {
  Lanes<u16> a, b;
  Lanes<u32> r;
  read16(w, i, i.operands[1], 0, a);
  read16(w, i, i.operands[2], 1, b);
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = a[l] | u32(b[l]) << 16;
  write(w, i, r);
}
void v_cndmask_b16(Wave& w, const Instruction& i) {
  Lanes<u16> a, b, r;
  read16(w, i, i.operands[1], 0, a);
  read16(w, i, i.operands[2], 1, b);
  u64 mask = i.count > 3 ? scalar_mask(w, i.operands[3]) : w.vcc();
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = mask >> l & 1 ? b[l] : a[l];
  write16(w, i, high_result(i), r);
}
void v_swap_b16(Wave& w, const Instruction& i) {
  const Operand &first = i.operands[0], &second = i.operands[1];
  u32 p = first.high * 16, q = second.high * 16;
  each_active(w, [&](u32 l) {
    u32 &x = w.v[first.index][l], &y = w.v[second.index][l];
    u32 a = x >> p & 0xffff, b = y >> q & 0xffff;
    x = (x & ~(0xffffu << p)) | b << p;
    y = (y & ~(0xffffu << q)) | a << q;
  });
}

constexpr uint8_t kHalfFloat = kFloat | kOpSel, kHalf = kDpp | kOpSel;

// clang-format off
#define HF1(name, e) \
  {#name, \
   halves< \
       1, \
       [](u16 x, u16, u16) -> u16 { \
         float a = f16(x); \
         return half(e); \
       }, \
       Sort::Float>, \
   kHalfFloat}
#define HF2(name, e) \
  {#name, \
   halves< \
       2, \
       [](u16 x, u16 y, u16) -> u16 { \
         float a = f16(x), b = f16(y); \
         return half(e); \
       }, \
       Sort::Float>, \
   kHalfFloat}
#define HF3(name, e) \
  {#name, \
   halves< \
       3, \
       [](u16 x, u16 y, u16 z) -> u16 { \
         float a = f16(x), b = f16(y), c = f16(z); \
         return half(e); \
       }, \
       Sort::Float>, \
   kHalfFloat}
#define H1(name, e) \
  {#name, \
   halves<1, [](u16 a, u16, u16) -> u16 { return u16(e); }, Sort::Integer>, \
   kHalf}
#define H2(name, e) \
  {#name, \
   halves<2, [](u16 a, u16 b, u16) -> u16 { return u16(e); }, Sort::Integer>, \
   kHalf}
#define HI2(name, e) \
  {#name, \
   halves<2, [](i16 a, i16 b, i16) -> u16 { return u16(e); }, Sort::Integer>, \
   kHalf}
#define H3(name, e) \
  {#name, \
   halves< \
       3, \
       [](u16 a, u16 b, u16 c) -> u16 { return u16(e); }, \
       Sort::Integer>, \
   kHalf}
#define HI3(name, e) \
  {#name, \
   halves< \
       3, \
       [](i16 a, i16 b, i16 c) -> u16 { return u16(e); }, \
       Sort::Integer>, \
   kHalf}
#define HCLAMPED2(name, T, e) \
  {#name, clamped_halves<T, [](i64 a, i64 b) -> i64 { return (e); }>, \
   kHalf | kClamp}
// An integer from a float, or a float from an integer.
#define HCVT(name, e) \
  {#name, \
   halves<1, [](u16 a, u16, u16) -> u16 { return u16(e); }, Sort::Integer>, \
   kHalf | kSigns | kClamp}
#define FROM_HALF(name, e) \
  {#name, from_half<[](u16 a) -> u32 { return u32(e); }>, kHalf}

constexpr Row rows[] = {
    HF2(v_add_f16, a + b),
    HF2(v_sub_f16, a - b),
    HF2(v_subrev_f16, b - a),
    HF2(v_mul_f16, (a * b)),
    HF2(v_min_f16, min_number(a, b)),
    HF2(v_max_f16, max_number(a, b)),
    HF3(v_min3_f16, min_number(min_number(a, b), c)),
    HF3(v_max3_f16, max_number(max_number(a, b), c)),
    HF3(v_minmax_f16, max_number(min_number(a, b), c)),
    HF3(v_maxmin_f16, min_number(max_number(a, b), c)),
    HF3(v_med3_f16, median(a, b, c)),
    {"v_fma_f16", halves<3, fma16, Sort::Float>, kHalfFloat},
    {"v_fmac_f16", halves<3, fma16, Sort::Float, 0>, kHalfFloat},
    {"v_fmamk_f16", halves<3, fma16, Sort::Float>, kHalfFloat},
    {"v_fmaak_f16", halves<3, fma16, Sort::Float>, kHalfFloat},
    HF1(v_floor_f16, std::floor(a)),
    HF1(v_ceil_f16, std::ceil(a)),
    HF1(v_trunc_f16, std::trunc(a)),
    HF1(v_rndne_f16, nearest(a)),
    HF1(v_fract_f16, std::min(fraction(a), 0x1.ffcp-1f)),
    HF1(v_rcp_f16, 1.0f / a),
    HF1(v_rsq_f16, 1.0f / std::sqrt(a)),
    HF1(v_sqrt_f16, std::sqrt(a)),
    HF1(v_exp_f16, std::exp2(a)),
    HF1(v_log_f16, std::log2(a)),
    HF1(v_sin_f16, sine(a)),
    HF1(v_cos_f16, cosine(a)),
    HF1(v_frexp_mant_f16, mantissa(a)),
    {"v_ldexp_f16",
     halves<
         2,
         [](u16 a, u16 b, u16) -> u16 { return half(scaled(f16(a), i16(b))); },
         Sort::Float>,
     kHalfFloat},

    H1(v_mov_b16, a),
    H1(v_not_b16, ~a),
    H2(v_and_b16, a & b),
    H2(v_or_b16, a | b),
    H2(v_xor_b16, a ^ b),
    H2(v_lshlrev_b16, b << (a & 15)),
    H2(v_lshrrev_b16, b >> (a & 15)),
    HI2(v_ashrrev_i16, b >> (a & 15)),
    H2(v_mul_lo_u16, u32(a) * b),
    H2(v_min_u16, std::min(a, b)),
    H2(v_max_u16, std::max(a, b)),
    HI2(v_min_i16, std::min(a, b)),
    HI2(v_max_i16, std::max(a, b)),
    HCLAMPED2(v_add_nc_u16, u16, a + b),
    HCLAMPED2(v_sub_nc_u16, u16, a - b),
    HCLAMPED2(v_subrev_u16, u16, b - a),
    HCLAMPED2(v_add_nc_i16, i16, a + b),
    HCLAMPED2(v_sub_nc_i16, i16, a - b),
    H3(v_mad_u16, u32(a) * b + c),
    HI3(v_mad_i16, i32(a) * b + c),
    H3(v_min3_u16, std::min(std::min(a, b), c)),
    H3(v_max3_u16, std::max(std::max(a, b), c)),
    HI3(v_min3_i16, std::min(std::min(a, b), c)),
    HI3(v_max3_i16, std::max(std::max(a, b), c)),
    H3(v_med3_u16, median(a, b, c)),
    HI3(v_med3_i16, median(a, b, c)),
    {"v_mad_u32_u16", multiply_wide<u16>, kHalf},
    {"v_mad_i32_i16", multiply_wide<i16>, kHalf},

    HCVT(v_cvt_f16_u16, half(float(a))),
    HCVT(v_cvt_f16_i16, half(float(i16(a)))),
    HCVT(v_cvt_u16_f16, saturate<u16>(f16(a))),
    HCVT(v_cvt_i16_f16, saturate<i16>(f16(a))),
    HCVT(v_frexp_exp_i16_f16, exponent_of(f16(a))),
    FROM_HALF(v_cvt_u32_u16, a),
    FROM_HALF(v_cvt_i32_i16, i32(i16(a))),
    {"v_cvt_f32_f16", v_cvt_f32_f16, kHalfFloat},
    {"v_cvt_f16_f32", v_cvt_f16_f32, kHalfFloat},
    {"v_pack_b32_f16", v_pack_b32_f16, kSigns | kHalf},
    {"v_cndmask_b16", v_cndmask_b16, kSigns | kHalf},
    {"v_swap_b16", v_swap_b16, kPlain},
};
// clang-format on

} // namespace

Table half_table() {
  return rows;
}

} // namespace rdna

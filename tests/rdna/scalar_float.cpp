// Scalar instructions of binary32 (RDNA3.5 ISA and RDNA4 ISA, "SOP1", "SOP2",
// "SOPC", "VOP3" for V_S_*).
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

template <auto F>
void float1(Wave& w, const Instruction& i) {
  float a = scalar_float(w, i.operands[1]);
  float r = modified(i, F(a));
  set_scalar(w, i.operands[0], r == r ? bits(r) : nan_of(a));
}
template <auto F>
void float2(Wave& w, const Instruction& i) {
  float a = scalar_float(w, i.operands[1]);
  float b = scalar_float(w, i.operands[2]);
  float r = F(a, b);
  set_scalar(w, i.operands[0], r == r ? bits(r) : nan_of(a, b));
}
// The third source is operand Third: 0, the result.
template <int Third>
void multiply_add(Wave& w, const Instruction& i) {
  float a = scalar_float(w, i.operands[1]);
  float b = scalar_float(w, i.operands[2]);
  float c = scalar_float(w, i.operands[Third]);
  float r = std::fma(a, b, c);
  set_scalar(w, i.operands[0], r == r ? bits(r) : nan_of(a, b, c));
}
// Minimum and maximum flush denormals where MODE says so.
template <auto F>
void choice2(Wave& w, const Instruction& i) {
  float a = scalar_float(w, i.operands[1]);
  float b = scalar_float(w, i.operands[2]);
  float r = F(a, b);
  u32 x = r == r ? bits(r) : nan_of(a, b);
  set_scalar(w, i.operands[0], w.mode & 0x20 ? x : flushed(x));
}
template <auto F>
void convert(Wave& w, const Instruction& i) {
  set_scalar(w, i.operands[0], F(scalar(w, i.operands[1])));
}
template <auto F>
void compare(Wave& w, const Instruction& i) {
  w.scc = F(f32(scalar(w, i.operands[0])), f32(scalar(w, i.operands[1])));
}
u32 pack_toward_zero(u32 a, u32 b) {
  return half_toward_zero(f32(a)) | u32(half_toward_zero(f32(b))) << 16;
}
void s_cvt_pk_rtz_f16_f32(Wave& w, const Instruction& i) {
  u32 a = scalar(w, i.operands[1]), b = scalar(w, i.operands[2]);
  set_scalar(w, i.operands[0], pack_toward_zero(a, b));
}

// clang-format off
#define F1(name, e) {#name, float1<[](float a) -> float { return (e); }>, kPlain}
#define F1_VECTOR(name, e) \
  {#name, float1<[](float a) -> float { return (e); }>, kSigns | kClamp | kOmod}
#define F2(name, e) \
  {#name, float2<[](float a, float b) -> float { return (e); }>, kPlain}
#define CONVERT(name, e) \
  {#name, convert<[](u32 a) -> u32 { return u32(e); }>, kPlain}
#define COMPARE(op, e) \
  {"s_cmp_" op "_f32", compare<[](float a, float b) { return (e); }>, kPlain}

constexpr Row rows[] = {
    F2(s_add_f32, a + b),
    F2(s_sub_f32, a - b),
    F2(s_mul_f32, (a * b)),
    {"s_min_f32", choice2<min_number>, kPlain},
    {"s_max_f32", choice2<max_number>, kPlain},
    {"s_fmac_f32", multiply_add<0>, kPlain},
    {"s_fmamk_f32", multiply_add<3>, kPlain},
    {"s_fmaak_f32", multiply_add<3>, kPlain},
    F1(s_floor_f32, std::floor(a)),
    F1(s_ceil_f32, std::ceil(a)),
    F1(s_trunc_f32, std::trunc(a)),
    F1(s_rndne_f32, nearest(a)),
    F1_VECTOR(v_s_rcp_f32, reciprocal(a)),
    F1_VECTOR(v_s_rsq_f32, reciprocal_root(a)),
    F1_VECTOR(v_s_sqrt_f32, root(a)),
    F1_VECTOR(v_s_exp_f32, power_of_two(a)),
    F1_VECTOR(v_s_log_f32, logarithm(a)),
    CONVERT(s_cvt_f32_u32, bits(float(a))),
    CONVERT(s_cvt_f32_i32, bits(float(i32(a)))),
    CONVERT(s_cvt_u32_f32, saturate<u32>(f32(a))),
    CONVERT(s_cvt_i32_f32, saturate<i32>(f32(a))),
    CONVERT(s_cvt_f16_f32, half(f32(a))),
    CONVERT(s_cvt_f32_f16, bits(f16(u16(a)))),
    CONVERT(s_cvt_hi_f32_f16, bits(f16(u16(a >> 16)))),
    {"s_cvt_pk_rtz_f16_f32", s_cvt_pk_rtz_f16_f32, kPlain},
    COMPARE("lt", a < b),
    COMPARE("eq", a == b),
    COMPARE("le", a <= b),
    COMPARE("gt", a > b),
    COMPARE("lg", a < b || a > b),
    COMPARE("ge", a >= b),
    COMPARE("o", a == a && b == b),
    COMPARE("u", a != a || b != b),
    COMPARE("nge", !(a >= b)),
    COMPARE("nlg", !(a < b || a > b)),
    COMPARE("ngt", !(a > b)),
    COMPARE("nle", !(a <= b)),
    COMPARE("neq", !(a == b)),
    COMPARE("nlt", !(a < b)),
};
// clang-format on

} // namespace

Table scalar_float_table() {
  return rows;
}

} // namespace rdna

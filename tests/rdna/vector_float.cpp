// Vector instructions of binary32 and their conversions (RDNA3 ISA, "VOP1",
// "VOP2", "VOP3 & VOP3SD"). Rounding and denormals follow MODE, which run()
// keeps in the host's MXCSR.
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

// Denormal results of operations that choose a source, which the host's
// arithmetic never sees: flushed where MODE says so.
enum class Result { Computed, Chosen };

template <Result R>
void finish(Wave& w, const Instruction& i, Lanes<u32>& r) {
  if (R == Result::Chosen && !(w.mode & 0x20))
    each(w, [&](size_t l) { r[l] = flushed(r[l]); });
  if (modifies(i))
    each(w, [&](size_t l) { r[l] = bits(modified(i, f32(r[l]))); });
  write(w, i, r);
}

bool has_nan(const Wave& w, Lanes<u32>& r) {
  u32 any = 0;
  each(w, [&](size_t l) { any |= is_nan(r[l]); });
  return any;
}

template <auto F, Result R = Result::Computed>
void float1(Wave& w, const Instruction& i) {
  Lanes<u32> a, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  each(w, [&](size_t l) { r[l] = bits(F(f32(p[l]))); });
  if (has_nan(w, r))
    for (u32 l = 0; l < w.lanes; ++l)
      if (is_nan(r[l]))
        r[l] = nan_of(f32(p[l]));
  finish<R>(w, i, r);
}
template <auto F, Result R = Result::Computed>
void float2(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  const u32* q = read_float(w, i, i.operands[2], b);
  each(w, [&](size_t l) { r[l] = bits(F(f32(p[l]), f32(q[l]))); });
  if (has_nan(w, r))
    for (u32 l = 0; l < w.lanes; ++l)
      if (is_nan(r[l]))
        r[l] = nan_of(f32(p[l]), f32(q[l]));
  finish<R>(w, i, r);
}
// X, Y, Z: the operands in the order of F's arguments.
template <auto F, Result R = Result::Computed, int X = 1, int Y = 2, int Z = 3>
void float3(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read_float(w, i, i.operands[X], a, true);
  const u32* q = read_float(w, i, i.operands[Y], b);
  const u32* s = read_float(w, i, i.operands[Z], c);
  each(w, [&](size_t l) { r[l] = bits(F(f32(p[l]), f32(q[l]), f32(s[l]))); });
  if (has_nan(w, r))
    for (u32 l = 0; l < w.lanes; ++l)
      if (is_nan(r[l]))
        r[l] = nan_of(f32(p[l]), f32(q[l]), f32(s[l]));
  finish<R>(w, i, r);
}

// To and from integers: no NaN to pass on.
template <auto F>
void to_float(Wave& w, const Instruction& i) {
  Lanes<u32> a, r;
  const u32* p = read(w, i, i.operands[1], a, true);
  each(w, [&](size_t l) { r[l] = bits(modified(i, F(p[l]))); });
  write(w, i, r);
}
template <auto F>
void from_float(Wave& w, const Instruction& i) {
  Lanes<u32> a, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  each(w, [&](size_t l) { r[l] = F(f32(p[l])); });
  write(w, i, r);
}
template <auto F>
void from_floats(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  const u32* q = read_float(w, i, i.operands[2], b);
  each(w, [&](size_t l) { r[l] = F(f32(p[l]), f32(q[l])); });
  write(w, i, r);
}

void v_ldexp_f32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  for (u32 l = 0; l < w.lanes; ++l) {
    float x = f32(p[l]);
    r[l] = x == x ? bits(scaled(x, i32(q[l]))) : nan_of(x);
  }
  finish<Result::Chosen>(w, i, r);
}
// Byte S1 of S2 becomes S0, rounded to an unsigned byte.
void v_cvt_pk_u8_f32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read_float(w, i, i.operands[1], a, true);
  const u32* q = read(w, i, i.operands[2], b);
  const u32* s = read(w, i, i.operands[3], c);
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 shift = 8 * (q[l] & 3), byte = saturate<u8>(nearest(f32(p[l])));
    r[l] = (s[l] & ~(255u << shift)) | byte << shift;
  }
  write(w, i, r);
}

// fma of a value of the lane's quad, by its number in it, and the lane's own
// (RDNA3 ISA, "VINTERP"); compilers also use it outside of pixel shaders.
template <u32 First, bool OwnThird>
void interpolate(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, c, r;
  const u32* p = read_float(w, i, i.operands[1], a);
  const u32* q = read_float(w, i, i.operands[2], b);
  const u32* s = read_float(w, i, i.operands[3], c);
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 quad = l & ~3u;
    float x = f32(p[quad + First]), y = f32(q[l]);
    float z = f32(s[OwnThird ? l : quad]), f = std::fma(x, y, z);
    r[l] = f == f ? bits(f) : nan_of(x, y, z);
  }
  finish<Result::Computed>(w, i, r);
}

// clang-format off
#define F1(name, e) {#name, float1<[](float a) -> float { return (e); }>, kFloat}
#define F2(name, e) \
  {#name, float2<[](float a, float b) -> float { return (e); }>, kFloat}
#define F3(name, e) \
  {#name, float3<[](float a, float b, float c) -> float { return (e); }>, kFloat}
#define CHOICE1(name, e) \
  {#name, float1<[](float a) -> float { return (e); }, Result::Chosen>, kFloat}
#define CHOICE2(name, e) \
  {#name, \
   float2<[](float a, float b) -> float { return (e); }, Result::Chosen>, \
   kFloat}
#define CHOICE3(name, e) \
  {#name, \
   float3< \
       [](float a, float b, float c) -> float { return (e); }, \
       Result::Chosen>, \
   kFloat}
#define TO_FLOAT(name, T, e) \
  {#name, to_float<[](T a) -> float { return (e); }>, kClamp | kOmod | kDpp}
#define FROM_FLOAT(name, e) \
  {#name, from_float<[](float a) -> u32 { return u32(e); }>, \
   kSigns | kClamp | kDpp}
#define FROM_FLOATS(name, e) \
  {#name, from_floats<[](float a, float b) -> u32 { return (e); }>, \
   kSigns | kDpp}

float multiply_add(float a, float b, float c) {
  return std::fma(a, b, c);
}

constexpr Row rows[] = {
    F2(v_add_f32, a + b),
    F2(v_sub_f32, a - b),
    F2(v_subrev_f32, b - a),
    F2(v_mul_f32, (a * b)),
    F2(v_mul_dx9_zero_f32, (a == 0 || b == 0) ? 0 : a * b),
    CHOICE2(v_min_f32, min_number(a, b)),
    CHOICE2(v_max_f32, max_number(a, b)),
    F3(v_fma_f32, std::fma(a, b, c)),
    F3(v_fmamk_f32, std::fma(a, b, c)),
    F3(v_fmaak_f32, std::fma(a, b, c)),
    {"v_fmac_f32", float3<multiply_add, Result::Computed, 1, 2, 0>, kFloat},
    CHOICE3(v_min3_f32, min_number(min_number(a, b), c)),
    CHOICE3(v_max3_f32, max_number(max_number(a, b), c)),
    CHOICE3(v_minmax_f32, max_number(min_number(a, b), c)),
    CHOICE3(v_maxmin_f32, min_number(max_number(a, b), c)),
    CHOICE3(v_med3_f32, median(a, b, c)),

    CHOICE1(v_floor_f32, std::floor(a)),
    CHOICE1(v_ceil_f32, std::ceil(a)),
    CHOICE1(v_trunc_f32, std::trunc(a)),
    CHOICE1(v_rndne_f32, nearest(a)),
    CHOICE1(v_fract_f32, fraction(a)),
    CHOICE1(v_frexp_mant_f32, mantissa(a)),
    F1(v_rcp_f32, reciprocal(a)),
    F1(v_rcp_iflag_f32, reciprocal(a)),
    F1(v_rsq_f32, reciprocal_root(a)),
    F1(v_sqrt_f32, root(a)),
    F1(v_exp_f32, power_of_two(a)),
    F1(v_log_f32, logarithm(a)),
    F1(v_sin_f32, sine(a)),
    F1(v_cos_f32, cosine(a)),
    {"v_ldexp_f32", v_ldexp_f32, kFloat},

    TO_FLOAT(v_cvt_f32_u32, u32, float(a)),
    TO_FLOAT(v_cvt_f32_i32, i32, float(a)),
    TO_FLOAT(v_cvt_f32_ubyte0, u32, float(a & 255)),
    TO_FLOAT(v_cvt_f32_ubyte1, u32, float(a >> 8 & 255)),
    TO_FLOAT(v_cvt_f32_ubyte2, u32, float(a >> 16 & 255)),
    TO_FLOAT(v_cvt_f32_ubyte3, u32, float(a >> 24)),
    FROM_FLOAT(v_cvt_u32_f32, saturate<u32>(a)),
    FROM_FLOAT(v_cvt_i32_f32, saturate<i32>(a)),
    FROM_FLOAT(v_cvt_nearest_i32_f32, saturate<i32>(std::floor(a + 0.5f))),
    FROM_FLOAT(v_cvt_floor_i32_f32, saturate<i32>(std::floor(a))),
    FROM_FLOAT(v_frexp_exp_i32_f32, exponent_of(a)),
    FROM_FLOATS(
        v_cvt_pk_rtz_f16_f32,
        half_toward_zero(a) | u32(half_toward_zero(b)) << 16),
    {"v_cvt_pk_u8_f32", v_cvt_pk_u8_f32, kSigns | kDpp},
    {"v_interp_p10_f32", interpolate<1, false>, kSigns | kClamp},
    {"v_interp_p2_f32", interpolate<2, true>, kSigns | kClamp},
};
// clang-format on

} // namespace

Table vector_float_table() {
  return rows;
}

} // namespace rdna

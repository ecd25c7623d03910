// Vector comparisons (RDNA3 ISA, "VOPC"): V_CMP writes one bit per lane, 0 for
// inactive lanes; V_CMPX writes EXEC, and on gfx9 those bits too.
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

// One bit per lane from lanes of all ones or zero.
u64 gather(const Wave& w, const Lanes<u32>& r) {
  u64 mask = 0;
  for (u32 l = 0; l < w.lanes; l += 8) {
    auto eight = _mm256_load_ps(reinterpret_cast<const float*>(r.x + l));
    mask |= u64(u32(_mm256_movemask_ps(eight))) << l;
  }
  return mask;
}

void conclude(Wave& w, const Instruction& i, bool to_exec, u64 mask) {
  mask &= w.exec();
  if (i.dpp != Dpp::None && i.dpp != Dpp::Lanes8)
    for (u32 l = 0; l < w.lanes; ++l)
      if (!dpp_writes(w, i, l))
        mask &= ~(u64(1) << l);
  if (!to_exec || i.count == 3)
    set_scalar_mask(w, i.operands[0], mask);
  if (to_exec)
    w.set_exec(mask);
}

// The two sources are the last operands.
const Operand& source(const Instruction& i, u32 k) {
  return i.operands[i.count - 2 + k];
}

template <bool X, auto F>
void compare32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read(w, i, source(i, 0), a, true);
  const u32* q = read(w, i, source(i, 1), b);
  each(w, [&](size_t l) { r[l] = F(p[l], q[l]) ? ~0u : 0; });
  conclude(w, i, X, gather(w, r));
}
template <bool X, auto F>
void compare_float(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, source(i, 0), a, true);
  const u32* q = read_float(w, i, source(i, 1), b);
  each(w, [&](size_t l) { r[l] = F(f32(p[l]), f32(q[l])) ? ~0u : 0; });
  conclude(w, i, X, gather(w, r));
}
template <bool X, auto F>
void compare16(Wave& w, const Instruction& i) {
  Lanes<u16> a, b;
  Lanes<u32> r;
  read16(w, i, source(i, 0), 0, a);
  read16(w, i, source(i, 1), 1, b);
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = F(a[l], b[l]) ? ~0u : 0;
  conclude(w, i, X, gather(w, r));
}
template <bool X, auto F>
void compare64(Wave& w, const Instruction& i) {
  Lanes<u64> a, b;
  Lanes<u32> r;
  read64(w, source(i, 0), a);
  read64(w, source(i, 1), b);
  each(w, [&](size_t l) { r[l] = F(a[l], b[l]) ? ~0u : 0; });
  conclude(w, i, X, gather(w, r));
}
// S1 is a mask of classes.
template <bool X>
void class32(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read_float(w, i, source(i, 0), a, true);
  const u32* q = read(w, i, source(i, 1), b);
  each(w, [&](size_t l) { r[l] = q[l] >> float_class(p[l]) & 1 ? ~0u : 0; });
  conclude(w, i, X, gather(w, r));
}
template <bool X>
void class16(Wave& w, const Instruction& i) {
  Lanes<u16> a, b;
  Lanes<u32> r;
  read16(w, i, source(i, 0), 0, a);
  read16(w, i, source(i, 1), 1, b);
  for (u32 l = 0; l < w.lanes; ++l)
    r[l] = b[l] >> float_class16(a[l]) & 1 ? ~0u : 0;
  conclude(w, i, X, gather(w, r));
}

// clang-format off
#define BOTH(op, suffix, compare, honours, ...) \
  {"v_cmp_" op suffix, compare<false, __VA_ARGS__>, honours}, \
  {"v_cmpx_" op suffix, compare<true, __VA_ARGS__>, honours}

#define INTEGER(op, suffix, compare, T, honours, e) \
  BOTH(op, suffix, compare, honours, [](T a, T b) { return (e); })
#define INTEGERS(suffix, compare, T, honours) \
  INTEGER("lt", suffix, compare, T, honours, a < b), \
  INTEGER("eq", suffix, compare, T, honours, a == b), \
  INTEGER("le", suffix, compare, T, honours, a <= b), \
  INTEGER("gt", suffix, compare, T, honours, a > b), \
  INTEGER("ne", suffix, compare, T, honours, a != b), \
  INTEGER("ge", suffix, compare, T, honours, a >= b)

#define FLOAT32(op, e) \
  BOTH(op, "_f32", compare_float, kSigns | kDpp, [](float a, float b) { \
    return (e); \
  })
#define FLOAT16(op, e) \
  BOTH(op, "_f16", compare16, kSigns | kDpp | kOpSel, [](u16 x, u16 y) { \
    float a = f16(x), b = f16(y); \
    return (e); \
  })
#define FLOATS(op, e) FLOAT32(op, e), FLOAT16(op, e)

constexpr Row rows[] = {
    INTEGERS("_u32", compare32, u32, kDpp),
    INTEGERS("_i32", compare32, i32, kDpp),
    INTEGERS("_u64", compare64, u64, kPlain),
    INTEGERS("_i64", compare64, i64, kPlain),
    INTEGERS("_u16", compare16, u16, kDpp | kOpSel),
    INTEGERS("_i16", compare16, i16, kDpp | kOpSel),

    FLOATS("lt", a < b),
    FLOATS("eq", a == b),
    FLOATS("le", a <= b),
    FLOATS("gt", a > b),
    FLOATS("lg", a < b || a > b),
    FLOATS("ge", a >= b),
    FLOATS("o", a == a && b == b),
    FLOATS("u", a != a || b != b),
    FLOATS("nge", !(a >= b)),
    FLOATS("nlg", !(a < b || a > b)),
    FLOATS("ngt", !(a > b)),
    FLOATS("nle", !(a <= b)),
    FLOATS("neq", !(a == b)),
    FLOATS("nlt", !(a < b)),

    {"v_cmp_class_f32", class32<false>, kSigns | kDpp},
    {"v_cmpx_class_f32", class32<true>, kSigns | kDpp},
    {"v_cmp_class_f16", class16<false>, kSigns | kDpp | kOpSel},
    {"v_cmpx_class_f16", class16<true>, kSigns | kDpp | kOpSel},
};
// clang-format on

} // namespace

Table compare_table() {
  return rows;
}

} // namespace rdna

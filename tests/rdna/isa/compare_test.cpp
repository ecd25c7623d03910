#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

namespace {

struct Order {
  const char* name;
  bool less, equal, more, unordered;
};
const Order kIntegers[] = {
    {"lt", true, false, false, false},
    {"eq", false, true, false, false},
    {"le", true, true, false, false},
    {"gt", false, false, true, false},
    {"ne", true, false, true, false},
    {"ge", false, true, true, false},
};
const Order kFloats[] = {
    {"lt", true, false, false, false},
    {"eq", false, true, false, false},
    {"le", true, true, false, false},
    {"gt", false, false, true, false},
    {"lg", true, false, true, false},
    {"ge", false, true, true, false},
    {"o", true, true, true, false},
    {"u", false, false, false, true},
    {"nge", true, false, false, true},
    {"nlg", false, true, false, true},
    {"ngt", true, true, false, true},
    {"nle", false, false, true, true},
    {"neq", true, false, true, true},
    {"nlt", false, true, true, true},
};

// What lanes l % 4 compare: less, equal, more, unordered (of floats).
using Values = u64[4][2];

// V_CMP to a scalar and to VCC, V_CMPX to EXEC; every third lane is inactive.
void check_order(
    const Target& target,
    const std::string& suffix,
    const Order& order,
    const Values& values,
    bool wide,
    const char* half) {
  constexpr u32 active = 0xb6db6db6;
  Machine m(target, active);
  for (u32 l = 0; l < target.lanes; ++l)
    for (u32 k = 0; k < 2; ++k) {
      m.wave.v[2 + 2 * k][l] = u32(values[l % 4][k]);
      m.wave.v[3 + 2 * k][l] = u32(values[l % 4][k] >> 32);
    }
  bool big = target.lanes == 64;
  std::string sources =
      wide ? "v[2:3], v[4:5]" : std::string("v2") + half + ", v4" + half;
  std::string name = order.name + suffix;
  INFO(target.cpu, " ", name);
  const bool results[] = {order.less, order.equal, order.more, order.unordered};
  u64 expected = 0;
  for (u32 l = 0; l < target.lanes; ++l)
    expected |= u64(results[l % 4] && (active >> l % 32 & 1)) << l;
  m("v_cmp_" + name + (big ? " s[4:5], " : " s4, ") + sources);
  CHECK_EQ(big ? m.wave.pair(4) : m.wave.s[4], expected);
  m("v_cmp_" + name + (big ? " vcc, " : " vcc_lo, ") + sources);
  CHECK_EQ(m.wave.vcc(), expected);
  m("v_cmpx_" + name + " " + sources);
  CHECK_EQ(m.wave.exec(), expected);
}

} // namespace

TEST_CASE("comparisons of integers") {
  const Values u32s = {
      {3, 5}, {7, 7}, {0xffffffff, 5}, {0x80000000, 0x7fffffff}};
  const Values i32s = {
      {0xffffffff, 5}, {7, 7}, {5, 3}, {0x7fffffff, 0x80000000}};
  const Values u16s = {
      {0xffff0003, 5}, {0x10007, 7}, {0xffff, 0x70005}, {0x8000, 0x7fff}};
  const Values i16s = {
      {0x7000ffff, 5}, {0x10007, 7}, {5, 0x7000ffff}, {0x7fff, 0x8000}};
  const Values u64s = {
      {0x1ffffffff, 0x200000000},
      {0x300000007, 0x300000007},
      {0xffffffff00000000, 5},
      {0x8000000000000000, 0x7fffffffffffffff}};
  const Values i64s = {
      {0xffffffff00000000, 5},
      {0x300000007, 0x300000007},
      {0x200000000, 0x1ffffffff},
      {0x7fffffffffffffff, 0x8000000000000000}};
  for (const Target& target : everywhere())
    for (Order order : kIntegers) {
      order.unordered = order.more; // the fourth pair is a more, too
      check_order(target, "_u32", order, u32s, false, "");
      check_order(target, "_i32", order, i32s, false, "");
      check_order(target, "_u16", order, u16s, false, ".l");
      check_order(target, "_i16", order, i16s, false, ".l");
      check_order(target, "_u64", order, u64s, true, "");
      check_order(target, "_i64", order, i64s, true, "");
    }
}

TEST_CASE("comparisons of floats") {
  const Values f32s = {
      {0xbf800000, 0x3f800000},
      {0x80000000, 0},
      {0x7f800000, 0x7f7fffff},
      {0x7fc00000, 0x7fc00000}};
  const Values f16s = {
      {0xbc000000, 0x3c000000},
      {0x80000000, 0x00000000},
      {0x7c000000, 0x7bff0000},
      {0x7e000000, 0x3c000000}};
  for (const Target& target : everywhere())
    for (const Order& order : kFloats) {
      check_order(target, "_f32", order, f32s, false, "");
      check_order(target, "_f16", order, f16s, false, ".h");
    }
  // Signs of sources, and denormals that MODE takes for zeros.
  for (const Target& target : everywhere()) {
    Machine m(target);
    std::string d = target.lanes == 64 ? "s[4:5]" : "s4";
    m.set(1, 0x3f800000);
    m.set(2, 0x00000001);
    m("v_cmp_lt_f32 " + d + ", -v1, |v1|");
    CHECK_EQ(m.wave.s[4], 0xffffffff);
    m("v_cmp_gt_f32 " + d + ", v2, 0");
    CHECK_EQ(m.wave.s[4], 0xffffffff);
    m.wave.mode = 0xc0;
    m("v_cmp_gt_f32 " + d + ", v2, 0");
    CHECK_EQ(m.wave.s[4], 0);
  }
}

TEST_CASE("classes of floats") {
  // By bit: signaling NaN, quiet NaN, -infinity, -normal, -denormal, -0, 0, ...
  const u32 f32s[] = {
      0x7f800001,
      0x7fc00000,
      0xff800000,
      0xbf800000,
      0x80000001,
      0x80000000,
      0x00000000,
      0x00000001,
      0x3f800000,
      0x7f800000};
  const u32 f16s[] = {
      0x7c01,
      0x7e00,
      0xfc00,
      0xbc00,
      0x8001,
      0x8000,
      0x0000,
      0x0001,
      0x3c00,
      0x7c00};
  for (const Target& target : everywhere())
    for (u32 k = 0; k < 10; ++k) {
      bool big = target.lanes == 64;
      Machine m(target, 0x000fffff);
      m.set(1, f32s[k]);
      m.set(2, f16s[k] << 16);
      for (u32 l = 0; l < target.lanes; ++l)
        m.wave.v[3][l] = 1u << l % 16; // lane l asks for class l
      u64 expected = (u64(1) << k | u64(1) << (k + 16)) & 0xfffff;
      expected |= big ? expected << 32 : 0;
      INFO(target.cpu, " class ", k);
      m(big ? "v_cmp_class_f32 s[4:5], v1, v3" : "v_cmp_class_f32 s4, v1, v3");
      CHECK_EQ(big ? m.wave.pair(4) : m.wave.s[4], expected);
      m(big ? "v_cmp_class_f16 vcc, v2.h, v3.l"
            : "v_cmp_class_f16 vcc_lo, v2.h, v3.l");
      CHECK_EQ(m.wave.vcc(), expected);
      m("v_cmpx_class_f16 v2.h, v3.l");
      CHECK_EQ(m.wave.exec(), expected);
      m("v_cmpx_class_f32 v1, v3");
      CHECK_EQ(m.wave.exec(), expected);
    }
}

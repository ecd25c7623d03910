// Vector instructions of integers.
#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

TEST_CASE("vector bits and moves") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_mov_b32 v0, v1", {0x80000001}, 0x80000001},
      {"v_mov_b32 v0, 0x12345678", {}, 0x12345678},
      {"v_mov_b32 v0, -16", {}, 0xfffffff0},
      {"v_mov_b32 v0, 0.15915494", {}, 0x3e22f983},
      {"v_not_b32 v0, v1", {0x0000ffff}, 0xffff0000},
      {"v_bfrev_b32 v0, v1", {0x80000006}, 0x60000001},
      {"v_clz_i32_u32 v0, v1", {0x00010000}, 15},
      {"v_clz_i32_u32 v0, v1", {0}, 0xffffffff},
      {"v_ctz_i32_b32 v0, v1", {0x00010000}, 16},
      {"v_ctz_i32_b32 v0, v1", {0}, 0xffffffff},
      {"v_cls_i32 v0, v1", {0xffff0000}, 16},
      {"v_cls_i32 v0, v1", {0x0000ffff}, 16},
      {"v_cls_i32 v0, v1", {0}, 0xffffffff},
      {"v_and_b32 v0, v1, v2", {0xff00ff00, 0x0ff00ff0}, 0x0f000f00},
      {"v_or_b32 v0, v1, v2", {0xff00ff00, 0x0ff00ff0}, 0xfff0fff0},
      {"v_xor_b32 v0, v1, v2", {0xff00ff00, 0x0ff00ff0}, 0xf0f0f0f0},
      {"v_xnor_b32 v0, v1, v2", {0xff00ff00, 0x0ff00ff0}, 0x0f0f0f0f},
      {"v_lshlrev_b32 v0, v1, v2", {33, 0x80000001}, 2},
      {"v_lshrrev_b32 v0, v1, v2", {63, 0x80000001}, 1},
      {"v_ashrrev_i32 v0, v1, v2", {31, 0x80000001}, 0xffffffff},
      {"v_bcnt_u32_b32 v0, v1, v2", {0xf0f0f0f1, 100}, 117},
      {"v_bfm_b32 v0, v1, v2", {8, 4}, 0xff0},
      {"v_and_or_b32 v0, v1, v2, v3", {0xff, 0x3c, 0xf00}, 0xf3c},
      {"v_or3_b32 v0, v1, v2, v3", {1, 2, 4}, 7},
      {"v_xor3_b32 v0, v1, v2, v3", {7, 2, 4}, 1},
      {"v_xad_u32 v0, v1, v2, v3", {7, 2, 0xffffffff}, 4},
      {"v_lshl_or_b32 v0, v1, v2, v3", {3, 36, 1}, 0x31},
      {"v_bfe_u32 v0, v1, v2, v3", {0xabcd1234, 12, 8}, 0xd1},
      {"v_bfe_u32 v0, v1, v2, v3", {0xabcd1234, 12, 32}, 0},
      {"v_bfe_u32 v0, v1, v2, v3", {0xabcd1234, 28, 8}, 0xa},
      {"v_bfe_i32 v0, v1, v2, v3", {0xabcd1234, 12, 8}, 0xffffffd1},
      {"v_bfe_i32 v0, v1, v2, v3", {0xabcd1234, 28, 8}, 0xfffffffa},
      {"v_bfi_b32 v0, v1, v2, v3", {0xff, 0x1234, 0xabcd}, 0xab34},
      {"v_alignbit_b32 v0, v1, v2, v3", {0x11223344, 0x55667788, 36}, 0x45566778},
      {"v_alignbyte_b32 v0, v1, v2, v3", {0x11223344, 0x55667788, 5}, 0x44556677},
      {"v_perm_b32 v0, v1, v2, v3", {0x8f223344, 0x55667788, 0x00040307}, 0x8844558f},
      {"v_perm_b32 v0, v1, v2, v3", {0x8f223344, 0x55667788, 0x0d0c0b08}, 0xff00ff00},
      {"v_perm_b32 v0, v1, v2, v3", {0x8f223344, 0x5566f788, 0x0a09080c}, 0x0000ff00},
          // clang-format on
      });
}

TEST_CASE("pairs of 16 bits saturate") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_cvt_pk_i16_i32 v0, v1, v2", {0x8000, 0xffff7fff}, 0x80007fff},
          {"v_cvt_pk_i16_i32 v0, v1, v2", {0xffffffff, 5}, 0x0005ffff},
          {"v_cvt_pk_u16_u32 v0, v1, v2", {0x10000, 0x1234}, 0x1234ffff},
      });
}

TEST_CASE("vector sums and products") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_add_nc_u32 v0, v1, v2", {0xffffffff, 2}, 1},
      {"v_add_nc_u32 v0, v1, v2 clamp", {0xffffffff, 2}, 0xffffffff},
      {"v_sub_nc_u32 v0, v1, v2", {2, 3}, 0xffffffff},
      {"v_sub_nc_u32 v0, v1, v2 clamp", {2, 3}, 0},
      {"v_subrev_nc_u32 v0, v1, v2", {2, 3}, 1},
      {"v_subrev_nc_u32 v0, v1, v2 clamp", {3, 2}, 0},
      {"v_add_nc_i32 v0, v1, v2", {0x7fffffff, 1}, 0x80000000},
      {"v_add_nc_i32 v0, v1, v2 clamp", {0x7fffffff, 1}, 0x7fffffff},
      {"v_sub_nc_i32 v0, v1, v2", {0x80000000, 1}, 0x7fffffff},
      {"v_sub_nc_i32 v0, v1, v2 clamp", {0x80000000, 1}, 0x80000000},
      {"v_min_u32 v0, v1, v2", {1, 0xffffffff}, 1},
      {"v_max_u32 v0, v1, v2", {1, 0xffffffff}, 0xffffffff},
      {"v_min_i32 v0, v1, v2", {1, 0xffffffff}, 0xffffffff},
      {"v_max_i32 v0, v1, v2", {1, 0xffffffff}, 1},
      {"v_mul_lo_u32 v0, v1, v2", {0x10001, 0x10001}, 0x00020001},
      {"v_mul_hi_u32 v0, v1, v2", {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"v_mul_hi_i32 v0, v1, v2", {0xffffffff, 2}, 0xffffffff},
      {"v_mul_u32_u24 v0, v1, v2", {0xff001001, 0xff001001}, 0x01002001},
      {"v_mul_hi_u32_u24 v0, v1, v2", {0x01ffffff, 0xffffff}, 0x0000ffff},
      {"v_mul_i32_i24 v0, v1, v2", {0x00ffffff, 3}, 0xfffffffd},
      {"v_mul_hi_i32_i24 v0, v1, v2", {0x00ffffff, 3}, 0xffffffff},
      {"v_add3_u32 v0, v1, v2, v3", {0xffffffff, 2, 5}, 6},
      {"v_lshl_add_u32 v0, v1, v2, v3", {3, 36, 1}, 0x31},
      {"v_add_lshl_u32 v0, v1, v2, v3", {3, 1, 36}, 0x40},
      {"v_mad_u32_u24 v0, v1, v2, v3", {0xff000003, 5, 0xfffffffe}, 13},
      {"v_mad_i32_i24 v0, v1, v2, v3", {0x00ffffff, 3, 1}, 0xfffffffe},
      {"v_sad_u8 v0, v1, v2, v3", {0x01ff0010, 0x0300ff08, 1000}, 1000 + 2 + 255 + 255 + 8},
      {"v_min3_u32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 3},
      {"v_max3_u32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 0xffffffff},
      {"v_med3_u32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 5},
      {"v_min3_i32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 0xffffffff},
      {"v_max3_i32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 5},
      {"v_med3_i32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 3},
      {"v_minmax_u32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 5},
      {"v_maxmin_u32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 3},
      {"v_minmax_i32 v0, v1, v2, v3", {5, 0xffffffff, 3}, 3},
      {"v_maxmin_i32 v0, v1, v2, v3", {5, 0xffffffff, 9}, 5},
          // clang-format on
      });
}

TEST_CASE("carries: one bit per lane, of active lanes only") {
  struct Carry {
    const char* text; // of v1, v2 and s[4:5], to v0 and s[2:3]
    u32 first, second;
    u32 without, with; // results of a carry in of 0 and of 1
    bool carry_without, carry_with;
  };
  const Carry all[] = {
      // clang-format off
      {"v_add_co_u32", 0xffffffff, 1, 0, 0, true, true},
      {"v_add_co_u32", 0xfffffffe, 1, 0xffffffff, 0xffffffff, false, false},
      {"v_sub_co_u32", 1, 2, 0xffffffff, 0xffffffff, true, true},
      {"v_sub_co_u32", 2, 2, 0, 0, false, false},
      {"v_subrev_co_u32", 2, 1, 0xffffffff, 0xffffffff, true, true},
      {"v_add_co_ci_u32", 0xffffffff, 0, 0xffffffff, 0, false, true},
      {"v_add_co_ci_u32", 0xffffffff, 0xffffffff, 0xfffffffe, 0xffffffff, true, true},
      {"v_sub_co_ci_u32", 5, 5, 0, 0xffffffff, false, true},
      {"v_sub_co_ci_u32", 0, 0xffffffff, 1, 0, true, true},
      {"v_subrev_co_ci_u32", 5, 5, 0, 0xffffffff, false, true},
      // clang-format on
  };
  constexpr u64 in = 0x00ff00ff0f0f0f0f;
  constexpr u32 active = 0x33333333;
  for (const Target& target : everywhere())
    for (const Carry& c : all) {
      Machine m(target, active);
      bool wide = target.lanes == 64;
      m.set(0, 0xdeadbeef);
      m.set(1, c.first);
      m.set(2, c.second);
      m.wave.s[4] = u32(in);
      m.wave.s[5] = u32(in >> 32);
      std::string text = c.text;
      bool takes = text.find("_ci_") != text.npos;
      text += wide ? " v0, s[2:3], v1, v2" : " v0, s2, v1, v2";
      text += takes ? (wide ? ", s[4:5]" : ", s4") : "";
      INFO(target.cpu, " ", text);
      REQUIRE_NOTHROW(m(text));
      u64 carries = wide ? m.wave.pair(2) : m.wave.s[2];
      for (u32 l = 0; l < target.lanes; ++l) {
        bool on = active >> l % 32 & 1, one = in >> l & 1;
        CAPTURE(l);
        REQUIRE_EQ(
            m.wave.v[0][l], on ? (one ? c.with : c.without) : 0xdeadbeef);
        REQUIRE_EQ(
            carries >> l & 1, on && (one ? c.carry_with : c.carry_without));
      }
      // The short encoding takes and gives VCC.
      Machine n(target);
      n.set(1, c.first);
      n.set(2, c.second);
      n.wave.s[kVcc] = n.wave.s[kVcc + 1] = ~0u;
      std::string vcc = wide ? "vcc" : "vcc_lo";
      if (!takes)
        continue;
      n(std::string(c.text) + " v0, " + vcc + ", v1, v2, " + vcc);
      CHECK_EQ(n.wave.v[0][7], c.with);
      CHECK_EQ(n.wave.vcc() >> 7 & 1, c.carry_with);
    }
  check(
      {kGfx11, kGfx12},
      std::vector<Answer>{
          {"v_add_co_u32 v0, s2, v1, v2 clamp", {0xffffffff, 5}, 0xffffffff},
          {"v_sub_co_u32 v0, s2, v1, v2 clamp", {4, 5}, 0},
      });
}

namespace {

// v[0:1] of v1 and v[2:3], v[4:5].
struct Wide {
  const char* text;
  u32 one;
  u64 first, second, result;
};

void check_wide(
    const std::vector<Target>& targets,
    const std::vector<Wide>& all) {
  for (const Target& target : targets)
    for (const Wide& a : all) {
      Machine m(target, 0x0000ffff);
      m.set64(0, 0x1111111122222222);
      m.set(1, a.one);
      m.set64(2, a.first);
      m.set64(4, a.second);
      m.set64(8, 0x1111111122222222);
      INFO(target.cpu, " ", a.text);
      REQUIRE_NOTHROW(m(a.text));
      auto result = [&](u32 l) {
        return m.wave.v[8][l] | u64(m.wave.v[9][l]) << 32;
      };
      CHECK_EQ(result(3), a.result);
      CHECK_EQ(result(16), 0x1111111122222222);
    }
}

} // namespace

TEST_CASE("vectors of 64 bits") {
  check_wide(
      {kGfx11, kGfx12},
      {
          // clang-format off
      {"v_mad_u64_u32 v[8:9], s2, v1, v2, v[4:5]", 0xffffffff, 0xffffffff, 0x100000000, 0xffffffff00000001},
      {"v_mad_i64_i32 v[8:9], s2, v1, v2, v[4:5]", 0xffffffff, 3, 1, ~u64(1)},
          // clang-format on
      });
  std::vector<Wide> shifts = {
      // clang-format off
      {"v_lshrrev_b64 v[8:9], v1, v[2:3]", 97, 0x8000000100000000, 0, 0x40000000},
      {"v_ashrrev_i64 v[8:9], v1, v[2:3]", 63, 0x8000000100000000, 0, ~u64(0)},
      {"v_lshrrev_b64 v[8:9], 4, v[2:3]", 0, 0x8000000100000000, 0, 0x0800000010000000},
      // clang-format on
  };
  check_wide(everywhere(), shifts);
  check_wide(
      everywhere(),
      {{"v_lshlrev_b64 v[8:9], v1, v[2:3]", 65, 0x80000001, 0, 0x100000002}});
  // The carry of a product and a sum.
  for (bool negative : {false, true}) {
    Machine m(kGfx11, 0xfffffff0);
    m.set(1, negative ? 0x80000000 : 0xffffffff);
    m.set(2, negative ? 0x80000000 : 0xffffffff);
    m.set64(4, negative ? 0x7fffffffffffffff : ~u64(0));
    m(negative ? "v_mad_i64_i32 v[8:9], s2, v1, v2, v[4:5]"
               : "v_mad_u64_u32 v[8:9], s2, v1, v2, v[4:5]");
    CHECK_EQ(m.wave.s[2], 0xfffffff0);
  }
}

TEST_CASE("v_cndmask selects by a lane's bit, with the signs of floats") {
  for (const Target& target : everywhere()) {
    bool wide = target.lanes == 64;
    Machine m(target);
    m.set(1, 0x3f800000);
    m.set(2, 0x40000000);
    m.wave.s[4] = 0x0000ff0f;
    m.wave.s[5] = 0xff;
    std::string mask = wide ? "s[4:5]" : "s4";
    m("v_cndmask_b32 v0, v1, v2, " + mask);
    m("v_cndmask_b32 v3, -v1, -|v2|, " + mask);
    m.wave.s[kVcc] = 0x0000ff0f;
    m.wave.s[kVcc + 1] = 0xff;
    m(wide ? "v_cndmask_b32 v4, v1, v2, vcc"
           : "v_cndmask_b32 v4, v1, v2, vcc_lo");
    for (u32 l = 0; l < target.lanes; ++l) {
      bool second = 0xff0000ff0f >> l & 1;
      CAPTURE(l);
      CHECK_EQ(m.wave.v[0][l], second ? 0x40000000 : 0x3f800000);
      CHECK_EQ(m.wave.v[4][l], m.wave.v[0][l]);
      CHECK_EQ(m.wave.v[3][l], second ? 0xc0000000 : 0xbf800000);
    }
  }
}

TEST_CASE("both halves of a pair read before either writes") {
  Machine m(kGfx11);
  m.set(0, 7);
  m.set(1, 9);
  m("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0");
  CHECK_EQ(m.wave.v[0][5], 9);
  CHECK_EQ(m.wave.v[1][5], 7);
  m.set(2, 0x40000000);
  m.set(3, 0x40400000);
  m("v_dual_fmac_f32 v3, v2, v2 :: v_dual_add_nc_u32 v4, v0, v1");
  CHECK_EQ(m.wave.v[4][5], 16);
  CHECK_EQ(m.wave.v[3][5], 0x40e00000);
  m("v_nop");
}

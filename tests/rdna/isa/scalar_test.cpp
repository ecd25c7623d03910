#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

TEST_CASE("scalar moves and selections") {
  check(
      everywhere(),
      std::vector<ScalarAnswer>{
          {"s_mov_b32 s0, s1", {0x80000001}, 0x80000001},
          {"s_mov_b32 s0, 0x12345678", {}, 0x12345678},
          {"s_mov_b32 s0, -16", {}, 0xfffffff0},
          {"s_mov_b32 s0, 0.5", {}, 0x3f000000},
          {"s_movk_i32 s0, 0x8000", {}, 0xffff8000},
          {"s_movk_i32 s0, 0x7fff", {}, 0x00007fff},
          {"s_cmov_b32 s0, s1", {7}, 7, -1, true},
          {"s_cmov_b32 s0, s1", {7}, 0xdeadbeef, -1, false},
          {"s_cmovk_i32 s0, 0xfffe", {}, 0xfffffffe, -1, true},
          {"s_cmovk_i32 s0, 0xfffe", {}, 0xdeadbeef, -1, false},
          {"s_cselect_b32 s0, s1, s2", {7, 9}, 7, -1, true},
          {"s_cselect_b32 s0, s1, s2", {7, 9}, 9, -1, false},
          {"s_mov_b32 s0, src_scc", {}, 1, -1, true},
          {"s_mov_b32 null, s1", {7}, 0xdeadbeef},
      });
}

TEST_CASE("scalar sums: SCC is the carry, the borrow or the overflow") {
  std::vector<ScalarAnswer> both = {
      {"s_lshl1_add_u32 s0, s1, s2", {3, 5}, 11, 0},
      {"s_lshl2_add_u32 s0, s1, s2", {3, 5}, 17, 0},
      {"s_lshl3_add_u32 s0, s1, s2", {3, 5}, 29, 0},
      {"s_lshl4_add_u32 s0, s1, s2", {3, 5}, 53, 0},
      {"s_lshl1_add_u32 s0, s1, s2", {0x80000000, 5}, 5, 1},
      {"s_lshl4_add_u32 s0, s1, s2", {0x0fffffff, 0x10}, 0, 1},
      {"s_mul_i32 s0, s1, s2", {0x10001, 0x10001}, 0x00020001},
      {"s_mul_hi_u32 s0, s1, s2", {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"s_mul_hi_i32 s0, s1, s2", {0xffffffff, 2}, 0xffffffff},
      {"s_mul_hi_i32 s0, s1, s2", {0x80000000, 0x80000000}, 0x40000000},
      {"s_mulk_i32 s0, 0xffff", {}, 0x21524111},
      {"s_min_u32 s0, s1, s2", {1, 0xffffffff}, 1, 1},
      {"s_min_u32 s0, s1, s2", {5, 5}, 5, 0},
      {"s_min_u32 s0, s1, s2", {9, 5}, 5, 0},
      {"s_max_u32 s0, s1, s2", {1, 0xffffffff}, 0xffffffff, 0},
      {"s_max_u32 s0, s1, s2", {9, 5}, 9, 1},
      {"s_min_i32 s0, s1, s2", {1, 0xffffffff}, 0xffffffff, 0},
      {"s_min_i32 s0, s1, s2", {0x80000000, 1}, 0x80000000, 1},
      {"s_max_i32 s0, s1, s2", {1, 0xffffffff}, 1, 1},
      {"s_max_i32 s0, s1, s2", {0x80000000, 1}, 1, 0},
      {"s_abs_i32 s0, s1", {0xfffffffb}, 5, 1},
      {"s_abs_i32 s0, s1", {0x80000000}, 0x80000000, 1},
      {"s_abs_i32 s0, s1", {0}, 0, 0, true},
  };
  check(everywhere(), both);
  // gfx11's and gfx12's names of the same.
  struct Sum {
    const char *gfx11, *gfx12;
    std::vector<u32> sources;
    u32 result;
    int scc;
    bool before;
  };
  const Sum sums[] = {
      // clang-format off
      {"s_add_u32 s0, s1, s2", "s_add_co_u32 s0, s1, s2", {0xffffffff, 2}, 1, 1, false},
      {"s_add_u32 s0, s1, s2", "s_add_co_u32 s0, s1, s2", {0x7fffffff, 1}, 0x80000000, 0, true},
      {"s_addc_u32 s0, s1, s2", "s_add_co_ci_u32 s0, s1, s2", {0xffffffff, 0}, 0, 1, true},
      {"s_addc_u32 s0, s1, s2", "s_add_co_ci_u32 s0, s1, s2", {4, 5}, 10, 0, true},
      {"s_sub_u32 s0, s1, s2", "s_sub_co_u32 s0, s1, s2", {2, 3}, 0xffffffff, 1, false},
      {"s_sub_u32 s0, s1, s2", "s_sub_co_u32 s0, s1, s2", {3, 3}, 0, 0, true},
      {"s_subb_u32 s0, s1, s2", "s_sub_co_ci_u32 s0, s1, s2", {3, 3}, 0xffffffff, 1, true},
      {"s_subb_u32 s0, s1, s2", "s_sub_co_ci_u32 s0, s1, s2", {3, 0xffffffff}, 3, 1, true},
      {"s_subb_u32 s0, s1, s2", "s_sub_co_ci_u32 s0, s1, s2", {9, 3}, 6, 0, false},
      {"s_add_i32 s0, s1, s2", "s_add_co_i32 s0, s1, s2", {0x7fffffff, 1}, 0x80000000, 1, false},
      {"s_add_i32 s0, s1, s2", "s_add_co_i32 s0, s1, s2", {0xffffffff, 1}, 0, 0, true},
      {"s_sub_i32 s0, s1, s2", "s_sub_co_i32 s0, s1, s2", {0x80000000, 1}, 0x7fffffff, 1, false},
      {"s_sub_i32 s0, s1, s2", "s_sub_co_i32 s0, s1, s2", {1, 2}, 0xffffffff, 0, true},
      {"s_addk_i32 s0, 0xffff", "s_addk_co_i32 s0, 0xffff", {}, 0xdeadbeee, 0, true},
      // clang-format on
  };
  for (const Sum& s : sums) {
    check(
        gfx11(),
        std::vector<ScalarAnswer>{
            {s.gfx11, s.sources, s.result, s.scc, s.before}});
    check(
        gfx12(),
        std::vector<ScalarAnswer>{
            {s.gfx12, s.sources, s.result, s.scc, s.before}});
  }
}

TEST_CASE("scalar bits: SCC is whether the result is not zero") {
  check(
      everywhere(),
      std::vector<ScalarAnswer>{
          {"s_and_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0x0f000f00, 1},
          {"s_and_b32 s0, s1, s2", {0xff00ff00, 0x00ff00ff}, 0, 0, true},
          {"s_or_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0xfff0fff0, 1},
          {"s_xor_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0xf0f0f0f0, 1},
          {"s_nand_b32 s0, s1, s2", {0xffffffff, 0xffffffff}, 0, 0, true},
          {"s_nor_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0x000f000f, 1},
          {"s_xnor_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0x0f0f0f0f, 1},
          {"s_and_not1_b32 s0, s1, s2",
           {0xff00ff00, 0x0ff00ff0},
           0xf000f000,
           1},
          {"s_or_not1_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0xff0fff0f, 1},
          {"s_not_b32 s0, s1", {0xffffffff}, 0, 0, true},
          {"s_not_b32 s0, s1", {0x0000ffff}, 0xffff0000, 1},
          {"s_lshl_b32 s0, s1, s2", {0x80000001, 33}, 2, 1},
          {"s_lshr_b32 s0, s1, s2", {0x80000001, 31}, 1, 1},
          {"s_lshr_b32 s0, s1, s2", {0x00000001, 1}, 0, 0, true},
          {"s_ashr_i32 s0, s1, s2", {0x80000000, 31}, 0xffffffff, 1},
          {"s_bfe_u32 s0, s1, s2", {0xabcd1234, 0x0008000c}, 0xd1, 1},
          {"s_bfe_u32 s0, s1, s2", {0xabcd1234, 0x00000008}, 0, 0, true},
          {"s_bfe_u32 s0, s1, s2", {0xabcd1234, 0x00200000}, 0xabcd1234, 1},
          {"s_absdiff_i32 s0, s1, s2", {2, 5}, 3, 1},
          {"s_absdiff_i32 s0, s1, s2", {0x80000000, 0}, 0x80000000, 1},
          {"s_absdiff_i32 s0, s1, s2", {7, 7}, 0, 0},
          {"s_bfe_i32 s0, s1, s2", {0xabcd1234, 0x0004001c}, 0xfffffffa, 1},
          {"s_bfe_i32 s0, s1, s2", {0xabcd1234, 0x00040000}, 4, 1},
          {"s_bfm_b32 s0, s1, s2", {8, 4}, 0xff0},
          {"s_bfm_b32 s0, s1, s2", {0, 4}, 0},
          {"s_pack_ll_b32_b16 s0, s1, s2",
           {0x11112222, 0x33334444},
           0x44442222},
          {"s_pack_lh_b32_b16 s0, s1, s2",
           {0x11112222, 0x33334444},
           0x33332222},
          {"s_pack_hl_b32_b16 s0, s1, s2",
           {0x11112222, 0x33334444},
           0x44441111},
          {"s_pack_hh_b32_b16 s0, s1, s2",
           {0x11112222, 0x33334444},
           0x33331111},
          {"s_brev_b32 s0, s1", {0x80000006}, 0x60000001},
          {"s_clz_i32_u32 s0, s1", {0x00010000}, 15},
          {"s_clz_i32_u32 s0, s1", {0}, 0xffffffff},
          {"s_ctz_i32_b32 s0, s1", {0x00010000}, 16},
          {"s_ctz_i32_b32 s0, s1", {0}, 0xffffffff},
          {"s_cls_i32 s0, s1", {0xffff0000}, 16},
          {"s_cls_i32 s0, s1", {0x0000ffff}, 16},
          {"s_cls_i32 s0, s1", {0xffffffff}, 0xffffffff},
          {"s_clz_i32_u64 s0, s[2:3]", {0, 0xffffffff, 1}, 31},
          {"s_ctz_i32_b64 s0, s[2:3]", {0, 0, 0x10}, 36},
          {"s_bcnt1_i32_b32 s0, s1", {0xf0f0f0f1}, 17, 1},
          {"s_bcnt0_i32_b32 s0, s1", {0xffffffff}, 0, 0, true},
          {"s_bcnt1_i32_b64 s0, s[2:3]", {0, 0xff, 0xff}, 16, 1},
          {"s_bcnt0_i32_b64 s0, s[2:3]", {0, 0xff, 0xff}, 48, 1},
          {"s_sext_i32_i8 s0, s1", {0x12345680}, 0xffffff80},
          {"s_sext_i32_i16 s0, s1", {0x1234ff80}, 0xffffff80},
          {"s_bitset0_b32 s0, s1", {32}, 0xdeadbeee},
          {"s_bitset1_b32 s0, s1", {4}, 0xdeadbeff},
      });
}

TEST_CASE("scalar comparisons") {
  struct Order {
    const char* name;
    bool less, equal, more; // SCC for 3 and 5, 5 and 5, 5 and 3
  };
  const Order orders[] = {
      {"eq", false, true, false},
      {"lg", true, false, true},
      {"lt", true, false, false},
      {"le", true, true, false},
      {"gt", false, false, true},
      {"ge", false, true, true},
  };
  for (const Order& o : orders) {
    std::string u = std::string("s_cmp_") + o.name + "_u32 s1, s2";
    std::string i = std::string("s_cmp_") + o.name + "_i32 s1, s2";
    // 0xffffffff is the greatest unsigned number and less than 5 if signed.
    check(
        everywhere(),
        std::vector<ScalarAnswer>{
            {u.c_str(), {3, 5}, 0xdeadbeef, o.less, !o.less},
            {u.c_str(), {5, 5}, 0xdeadbeef, o.equal, !o.equal},
            {u.c_str(), {5, 3}, 0xdeadbeef, o.more, !o.more},
            {u.c_str(), {0xffffffff, 5}, 0xdeadbeef, o.more, !o.more},
            {i.c_str(), {0xffffffff, 5}, 0xdeadbeef, o.less, !o.less},
            {i.c_str(), {5, 5}, 0xdeadbeef, o.equal, !o.equal},
            {i.c_str(), {5, 0x80000000}, 0xdeadbeef, o.more, !o.more},
        });
    std::string ku = std::string("s_cmpk_") + o.name + "_u32 s1, 0xfffe";
    std::string ki = std::string("s_cmpk_") + o.name + "_i32 s1, 0xfffe";
    check(
        gfx11(),
        std::vector<ScalarAnswer>{
            {ku.c_str(), {0xfffd}, 0xdeadbeef, o.less, !o.less},
            {ku.c_str(), {0xfffe}, 0xdeadbeef, o.equal, !o.equal},
            {ku.c_str(), {0xfffffffe}, 0xdeadbeef, o.more, !o.more},
            {ki.c_str(), {0xfffffffd}, 0xdeadbeef, o.less, !o.less},
            {ki.c_str(), {0xfffffffe}, 0xdeadbeef, o.equal, !o.equal},
            {ki.c_str(), {0xfffe}, 0xdeadbeef, o.more, !o.more},
        });
  }
  check(
      everywhere(),
      std::vector<ScalarAnswer>{
          {"s_cmp_eq_u64 s[2:3], s[4:5]", {0, 1, 2, 1, 2}, 0xdeadbeef, 1},
          {"s_cmp_eq_u64 s[2:3], s[4:5]", {0, 1, 2, 1, 3}, 0xdeadbeef, 0, true},
          {"s_cmp_lg_u64 s[2:3], s[4:5]", {0, 1, 2, 1, 3}, 0xdeadbeef, 1},
          {"s_cmp_lg_u64 s[2:3], s[4:5]", {0, 1, 2, 1, 2}, 0xdeadbeef, 0, true},
          {"s_bitcmp0_b32 s1, s2", {0x10, 4}, 0xdeadbeef, 0, true},
          {"s_bitcmp0_b32 s1, s2", {0x10, 5}, 0xdeadbeef, 1},
          {"s_bitcmp1_b32 s1, s2", {0x10, 36}, 0xdeadbeef, 1},
          {"s_bitcmp1_b32 s1, s2", {0x10, 5}, 0xdeadbeef, 0, true},
          {"s_bitcmp0_b64 s[2:3], s1", {36, 0, 0x10}, 0xdeadbeef, 0, true},
          {"s_bitcmp1_b64 s[2:3], s1", {36, 0, 0x10}, 0xdeadbeef, 1},
      });
}

namespace {

// s[0:1] of s[2:3], s[4:5].
struct Wide {
  const char* text;
  u64 first, second, result;
  int scc = -1;
};

void check_wide(
    const std::vector<Target>& targets,
    const std::vector<Wide>& all) {
  for (const Target& target : targets)
    for (const Wide& a : all) {
      for (bool before : {false, true}) {
        Machine m(target);
        m.wave.s[2] = u32(a.first);
        m.wave.s[3] = u32(a.first >> 32);
        m.wave.s[4] = u32(a.second);
        m.wave.s[5] = u32(a.second >> 32);
        m.wave.scc = before;
        INFO(target.cpu, " ", a.text);
        REQUIRE_NOTHROW(m(a.text));
        CHECK_EQ(m.wave.pair(0), a.result);
        CHECK_EQ(m.wave.scc, a.scc < 0 ? before : a.scc);
      }
    }
}

} // namespace

TEST_CASE("scalars of 64 bits") {
  constexpr u64 a = 0xff00ff00ff00ff00, b = 0x0ff00ff00ff00ff0;
  check_wide(
      everywhere(),
      {
          // clang-format off
      {"s_mov_b64 s[0:1], s[2:3]", a, b, a},
      {"s_mov_b64 s[0:1], -1", a, b, ~u64(0)},
      {"s_mov_b64 s[0:1], 1.0", a, b, 0x3ff0000000000000},
      {"s_mov_b64 s[0:1], 0x87654321", a, b, 0x87654321},
      {"s_and_b64 s[0:1], s[2:3], s[4:5]", a, b, 0x0f000f000f000f00, 1},
      {"s_and_b64 s[0:1], s[2:3], s[4:5]", a, ~a, 0, 0},
      {"s_or_b64 s[0:1], s[2:3], s[4:5]", a, b, 0xfff0fff0fff0fff0, 1},
      {"s_xor_b64 s[0:1], s[2:3], s[4:5]", a, b, 0xf0f0f0f0f0f0f0f0, 1},
      {"s_nand_b64 s[0:1], s[2:3], s[4:5]", a, b, 0xf0fff0fff0fff0ff, 1},
      {"s_nor_b64 s[0:1], s[2:3], s[4:5]", a, b, 0x000f000f000f000f, 1},
      {"s_xnor_b64 s[0:1], s[2:3], s[4:5]", a, b, 0x0f0f0f0f0f0f0f0f, 1},
      {"s_and_not1_b64 s[0:1], s[2:3], s[4:5]", a, b, 0xf000f000f000f000, 1},
      {"s_or_not1_b64 s[0:1], s[2:3], s[4:5]", a, b, 0xff0fff0fff0fff0f, 1},
      {"s_not_b64 s[0:1], s[2:3]", ~u64(0), 0, 0, 0},
      {"s_not_b64 s[0:1], s[2:3]", a, 0, ~a, 1},
      {"s_lshl_b64 s[0:1], s[2:3], s4", 0x80000001, 68, 0x800000010, 1},
      {"s_lshr_b64 s[0:1], s[2:3], s4", 0x8000000100000000, 33, 0x40000000, 1},
      {"s_lshr_b64 s[0:1], s[2:3], s4", 1, 1, 0, 0},
      {"s_ashr_i64 s[0:1], s[2:3], s4", 0x8000000000000000, 63, ~u64(0), 1},
      {"s_bfe_u64 s[0:1], s[2:3], s4", 0x123456789abcdef0, 0x0010001c, 0x6789, 1},
      {"s_bfe_u64 s[0:1], s[2:3], s4", 0x123456789abcdef0, 0x00000004, 0, 0},
      {"s_bfe_u64 s[0:1], s[2:3], s4", a, 0x00400000, a, 1},
      {"s_bfe_i64 s[0:1], s[2:3], s4", 0x8000000000000000, 0x0004003c, ~u64(7), 1},
      {"s_bfe_i64 s[0:1], s[2:3], s4", 0x70, 0x00040004, 7, 1},
      {"s_bfm_b64 s[0:1], s2, s4", 40, 4, 0xffffffffff0},
      {"s_brev_b64 s[0:1], s[2:3]", 0x8000000000000003, 0, 0xc000000000000001},
      {"s_bitreplicate_b64_b32 s[0:1], s2", 0x80000005, 0, 0xc000000000000033},
      {"s_cselect_b64 s[0:1], s[2:3], s[2:3]", a, b, a},
          // clang-format on
      });
  check_wide(
      gfx12(),
      {
          // clang-format off
      {"s_add_nc_u64 s[0:1], s[2:3], s[4:5]", 0xffffffff, 1, 0x100000000},
      {"s_sub_nc_u64 s[0:1], s[2:3], s[4:5]", 0, 1, ~u64(0)},
      {"s_mul_u64 s[0:1], s[2:3], s[4:5]", 0x100000001, 0x300000005, 0x800000005},
          // clang-format on
      });
  for (const Target& target : everywhere())
    for (bool scc : {false, true}) {
      Machine m(target);
      for (u32 k = 0; k < 6; ++k)
        m.wave.s[k] = k;
      m.wave.scc = scc;
      m("s_cselect_b64 s[0:1], s[2:3], s[4:5]");
      CHECK_EQ(m.wave.pair(0), scc ? 0x300000002 : 0x500000004);
      m("s_cmov_b64 s[0:1], s[4:5]");
      CHECK_EQ(m.wave.pair(0), 0x500000004);
      m("s_getpc_b64 s[0:1]");
      CHECK_EQ(m.wave.pair(0), 0x1004);
    }
}

TEST_CASE("saveexec and wrexec") {
  struct Save {
    const char* name;
    u64 next; // of the source 0xc and EXEC 0xa
  };
  const Save saves[] = {
      {"and_saveexec", 0x8},
      {"or_saveexec", 0xe},
      {"xor_saveexec", 0x6},
      {"nand_saveexec", ~u64(0x8)},
      {"nor_saveexec", ~u64(0xe)},
      {"xnor_saveexec", ~u64(0x6)},
      {"and_not0_saveexec", 0x2},
      {"and_not1_saveexec", 0x4},
      {"or_not0_saveexec", ~u64(0x4)},
      {"or_not1_saveexec", ~u64(0x2)},
      {"and_not0_wrexec", 0x2},
      {"and_not1_wrexec", 0x4},
  };
  for (const Target& target : everywhere())
    for (const Save& save : saves)
      for (bool wide : {false, true}) {
        if (!wide && target.lanes == 64)
          continue;
        Machine m(target);
        m.wave.s[kExec + 1] = 0;
        m.wave.set_exec(0xa);
        m.wave.s[2] = 0xc;
        m.wave.s[3] = 0;
        m.wave.scc = false;
        std::string name = save.name;
        INFO(name, wide);
        m("s_" + name + (wide ? "_b64 s[0:1], s[2:3]" : "_b32 s0, s2"));
        u64 next = target.lanes == 64 ? save.next : u32(save.next);
        CHECK_EQ(m.wave.exec(), next);
        bool result = name.ends_with("wrexec");
        CHECK_EQ(m.wave.s[0], u32(result ? save.next : 0xa));
        CHECK(m.wave.scc);
        CHECK_EQ(m.wave.active[1] != 0, bool(save.next & 2));
        CHECK_EQ(m.wave.active[2] != 0, bool(save.next & 4));
      }
}

namespace {

std::vector<Target> with_scalar_floats() {
  return {kGfx115, kGfx12, kGfx12Wave64};
}

} // namespace

TEST_CASE("scalar floats of gfx11.5 and gfx12") {
  std::vector<Target> all = with_scalar_floats();
  check(
      all,
      std::vector<ScalarAnswer>{
          // clang-format off
      {"s_add_f32 s0, s1, s2", {0x3f800000, 0x33800000}, 0x3f800000}, // a tie
      {"s_add_f32 s0, s1, s2", {0x3f800001, 0x33800000}, 0x3f800002},
      {"s_add_f32 s0, s1, s2", {0x7f800000, 0xff800000}, 0x7fc00000},
      {"s_sub_f32 s0, s1, s2", {0x40400000, 0x3f800000}, 0x40000000},
      {"s_mul_f32 s0, s1, s2", {0x40400000, 0xbf000000}, 0xbfc00000},
      {"s_fmac_f32 s0, s1, s2", {0x00000000, 0x40000000}, 0xdeadbeef},
      {"s_fmamk_f32 s0, s1, 0x40a00000, s2", {0x40400000, 0xbf800000}, 0x41600000},
      {"s_fmaak_f32 s0, s1, s2, 0xbf800000", {0x40400000, 0x40a00000}, 0x41600000},
      {"s_floor_f32 s0, s1", {0xbfc00000}, 0xc0000000},
      {"s_ceil_f32 s0, s1", {0xbfc00000}, 0xbf800000},
      {"s_trunc_f32 s0, s1", {0xbfc00000}, 0xbf800000},
      {"s_rndne_f32 s0, s1", {0x40200000}, 0x40000000},
      {"s_rndne_f32 s0, s1", {0x40600000}, 0x40800000},
      {"s_cvt_f32_u32 s0, s1", {0xffffffff}, 0x4f800000},
      {"s_cvt_f32_i32 s0, s1", {0xffffffff}, 0xbf800000},
      {"s_cvt_u32_f32 s0, s1", {0xbf800000}, 0},
      {"s_cvt_u32_f32 s0, s1", {0x7f800000}, 0xffffffff},
      {"s_cvt_i32_f32 s0, s1", {0xc0266666}, 0xfffffffe},
      {"s_cvt_i32_f32 s0, s1", {0x7fc00000}, 0},
      {"s_cvt_i32_f32 s0, s1", {0xff800000}, 0x80000000},
      {"s_cvt_f16_f32 s0, s1", {0x3f802000}, 0x3c01},
      {"s_cvt_f16_f32 s0, s1", {0x3f801000}, 0x3c00},
      {"s_cvt_f32_f16 s0, s1", {0x3c003c01}, 0x3f802000},
      {"s_cvt_hi_f32_f16 s0, s1", {0x3c013c00}, 0x3f802000},
      {"s_cvt_pk_rtz_f16_f32 s0, s1, s2", {0x3f803fff, 0xbf803fff}, 0xbc013c01},
          // clang-format on
      });
  check(
      {kGfx115},
      std::vector<ScalarAnswer>{
          {"s_min_f32 s0, s1, s2", {0x00000000, 0x80000000}, 0x80000000},
          {"s_max_f32 s0, s1, s2", {0x7fc00000, 0xbf800000}, 0xbf800000},
      });
  check(
      gfx12(),
      std::vector<ScalarAnswer>{
          {"s_min_num_f32 s0, s1, s2", {0x00000000, 0x80000000}, 0x80000000},
          {"s_max_num_f32 s0, s1, s2", {0x7fc00000, 0xbf800000}, 0xbf800000},
          {"v_s_rcp_f32 s0, s1", {0x40800000}, 0x3e800000},
          {"v_s_rcp_f32 s0, -s1", {0x00000000}, 0xff800000},
          {"v_s_rsq_f32 s0, s1", {0x40800000}, 0x3f000000},
          {"v_s_sqrt_f32 s0, s1", {0x41100000}, 0x40400000},
          {"v_s_exp_f32 s0, s1", {0x40400000}, 0x41000000},
          {"v_s_log_f32 s0, s1", {0x41000000}, 0x40400000},
      });
  // fma: 1 + 2^-12 squared less 1 is exactly 2^-11 + 2^-24.
  for (const Target& target : all) {
    Machine m(target);
    m.wave.s[0] = 0xbf800000;
    m.wave.s[1] = 0x3f800800;
    m("s_fmac_f32 s0, s1, s1");
    CHECK_EQ(m.wave.s[0], 0x3a000400);
  }
}

TEST_CASE("comparisons of scalar floats") {
  struct Order {
    const char* name;
    bool less, equal, more, unordered;
  };
  const Order orders[] = {
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
  for (const Order& o : orders) {
    std::string text = std::string("s_cmp_") + o.name + "_f32 s1, s2";
    const char* t = text.c_str();
    check(
        with_scalar_floats(),
        std::vector<ScalarAnswer>{
            {t, {0xbf800000, 0x3f800000}, 0xdeadbeef, o.less, !o.less},
            {t, {0x80000000, 0x00000000}, 0xdeadbeef, o.equal, !o.equal},
            {t, {0x7f800000, 0x7f7fffff}, 0xdeadbeef, o.more, !o.more},
            {t,
             {0x7fc00000, 0x7fc00000},
             0xdeadbeef,
             o.unordered,
             !o.unordered},
        });
  }
}

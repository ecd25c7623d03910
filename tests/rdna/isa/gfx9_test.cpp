// Vega: what its code has and that of later generations has not (Vega ISA,
// sections in parentheses).
#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

namespace {

const Target kGfx9{"gfx900", 9, 64};

void number_lanes(Machine& m, u32 index) {
  for (u32 l = 0; l < kMaxLanes; ++l)
    m.wave.v[index][l] = 100 + l;
}

} // namespace

TEST_CASE("Vega's sums without carry (VOP2, VOP3)") {
  // clang-format off
  check({kGfx9}, std::vector<Answer>{
      {"v_add_u32 v0, v1, v2", {0xffffffff, 3}, 2},
      {"v_add_u32_e64 v0, v1, v2 clamp", {0xffffffff, 3}, 0xffffffff},
      {"v_sub_u32 v0, v1, v2", {3, 5}, 0xfffffffe},
      {"v_sub_u32_e64 v0, v1, v2 clamp", {3, 5}, 0},
      {"v_subrev_u32 v0, v1, v2", {3, 5}, 2},
      {"v_add_i32 v0, v1, v2 clamp", {0x7fffffff, 1}, 0x7fffffff},
      {"v_sub_i32 v0, v1, v2 clamp", {0x80000000, 1}, 0x80000000},
      {"v_add3_u32 v0, v1, v2, v3", {1, 2, 3}, 6},
      {"v_lshl_add_u32 v0, v1, 4, v2", {3, 5}, 53},
  });
  // clang-format on
}

TEST_CASE("Vega's carries, one bit a lane of VCC or a pair (VOP2)") {
  Machine m(kGfx9, 0x7fffffff);
  m.set(1, 0xffffffff);
  for (u32 l = 0; l < 64; ++l)
    m.wave.v[2][l] = l & 1;
  constexpr u64 odd = 0x2aaaaaaa2aaaaaaa; // of lanes that are active
  m("v_add_co_u32_e32 v3, vcc, v1, v2\nv_addc_co_u32_e32 v4, vcc, 7, v1, vcc");
  CHECK_EQ(m.wave.v[3][0], 0xffffffff);
  CHECK_EQ(m.wave.v[3][1], 0);
  CHECK_EQ(m.wave.v[4][40], 6);
  CHECK_EQ(m.wave.v[4][41], 7);
  CHECK_EQ(m.wave.vcc(), 0x7fffffff7fffffff);
  m("v_sub_co_u32_e64 v5, s[4:5], 0, v2\n"
    "v_subb_co_u32_e64 v6, s[6:7], v1, v1, s[4:5]\n"
    "v_subbrev_co_u32_e64 v7, s[8:9], 5, v1, s[4:5]\n"
    "v_subrev_co_u32_e64 v8, s[10:11], v2, 0");
  CHECK_EQ(m.wave.pair(4), odd);
  CHECK_EQ(m.wave.v[6][32], 0);
  CHECK_EQ(m.wave.v[6][33], 0xffffffff);
  CHECK_EQ(m.wave.pair(6), odd);
  CHECK_EQ(m.wave.v[7][33], 0xfffffff9);
  CHECK_EQ(m.wave.pair(8), 0);
  CHECK_EQ(m.wave.pair(10), odd);
}

TEST_CASE("16-bit results of one and two sources clear the upper half") {
  // clang-format off
  check({kGfx9}, std::vector<Answer>{
      {"v_add_f16 v0, v1, v2", {0x3c00, 0x4000}, 0x4200},
      {"v_add_f16_e64 v0, -v1, |v2|", {0x3c00, 0xc000}, 0x3c00},
      {"v_cvt_f16_f32 v0, v1", {0x40000000}, 0x4000},
      {"v_rcp_f16 v0, v1", {0x4000}, 0x3800},
      {"v_add_u16 v0, v1, v2", {0xffff, 3}, 2},
      {"v_sub_u16 v0, v1, v2", {3, 5}, 0xfffe},
      {"v_subrev_u16 v0, v1, v2", {3, 5}, 2},
      {"v_lshlrev_b16 v0, v1, v2", {4, 0xabcd}, 0xbcd0},
      // Those of three have op_sel and keep it (VOP3).
      {"v_fma_f16 v0, v1, v2, v3", {0x4000, 0x4200, 0x3c00}, 0xdead4700},
      {"v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,1]", {0x40000000, 0x4200, 0x3c00}, 0x4700beef},
      {"v_mad_u16 v0, v1, v2, v3", {3, 5, 7}, 0xdead0016},
      {"v_med3_f16 v0, v1, v2, v3", {0x4000, 0x4200, 0x3c00}, 0xdead4000},
      // VOP3P
      {"v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", {0x40003c00, 0x44004200}, 0x45004500},
      {"v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0]", {0x40003c00, 0x44004200, 0}, 0x4800c200},
  });
  // clang-format on
}

TEST_CASE("V_CMPX writes a scalar pair and EXEC (VOPC)") {
  Machine m(kGfx9, 0xffff);
  number_lanes(m, 1);
  m("v_cmpx_lt_u32_e32 vcc, 0x66, v1");
  CHECK_EQ(m.wave.vcc(), 0x0000ffff0000fff8);
  CHECK_EQ(m.wave.exec(), 0x0000ffff0000fff8);
  // v_cmpx_lt_u32_e64 s[4:5], s2, v1, which LLVM does not print.
  const u32 words[] = {0xd0d90004, 0x00020202, 0xbf810000};
  std::vector<uint8_t> code(sizeof words);
  std::memcpy(code.data(), words, sizeof words);
  const Program& program = decode(kGfx9, 0x7000, code);
  m.wave.s[2] = 104;
  m.wave.pc = 0;
  uint64_t budget = 10;
  CHECK_EQ(run(m.wave, program, budget), Stop::Ended);
  CHECK_EQ(m.wave.pair(4), 0x0000ffff0000ffe0);
  CHECK_EQ(m.wave.exec(), 0x0000ffff0000ffe0);
}

TEST_CASE("DPP of all 64 lanes") {
  struct Control {
    const char* text;
    int (*source)(int);
  };
  const Control controls[] = {
      {"wave_shl:1", [](int l) { return l < 63 ? l + 1 : -1; }},
      {"wave_shr:1", [](int l) { return l - 1; }},
      {"wave_rol:1", [](int l) { return (l + 1) % 64; }},
      {"wave_ror:1", [](int l) { return (l + 63) % 64; }},
      {"row_bcast:15", [](int l) { return l / 16 * 16 - 1; }},
      {"row_bcast:31", [](int l) { return l < 32 ? -1 : 31; }},
      {"row_ror:3", [](int l) { return l / 16 * 16 + (l + 13) % 16; }},
      {"row_mirror", [](int l) { return l ^ 15; }},
  };
  for (const Control& c : controls)
    for (bool bound : {false, true}) {
      Machine m(kGfx9);
      number_lanes(m, 1);
      m.set(0, 7);
      m(std::string("v_mov_b32_dpp v0, v1 ") + c.text +
        " row_mask:0xf bank_mask:0xf" + (bound ? " bound_ctrl:0" : ""));
      for (int l = 0; l < 64; ++l) {
        int from = c.source(l);
        CAPTURE(c.text);
        CHECK_EQ(m.wave.v[0][l], from >= 0 ? 100 + from : bound ? 0 : 7);
      }
    }
}

TEST_CASE("permutations reach all 64 lanes (DS_BPERMUTE_B32)") {
  Machine m(kGfx9);
  number_lanes(m, 1);
  for (u32 l = 0; l < 64; ++l)
    m.wave.v[2][l] = 4 * (63 - l);
  m("ds_bpermute_b32 v3, v2, v1\nds_permute_b32 v4, v2, v1");
  for (u32 l = 0; l < 64; ++l) {
    CHECK_EQ(m.wave.v[3][l], 163 - l);
    CHECK_EQ(m.wave.v[4][l], 163 - l);
  }
}

TEST_CASE("Vega's sub-dword addressing, also of scalars (SDWA)") {
  std::string all = " dst_sel:DWORD dst_unused:UNUSED_PAD ";
  Machine m(kGfx9);
  m.set(1, 0x11223344);
  m.set(2, 0x00000a00);
  m.set(3, 0x55667788);
  m.wave.s[4] = 0x55667788;
  m.wave.s[kVcc] = 1;
  m.wave.s[kVcc + 1] = 0;
  m("v_cndmask_b32_sdwa v5, v3, v1, vcc" + all +
    "src0_sel:BYTE_1 src1_sel:WORD_1\n"
    "v_addc_co_u32_sdwa v6, vcc, v1, v2, vcc" +
    all +
    "src0_sel:BYTE_0 src1_sel:BYTE_1\n"
    "v_cmp_gt_u32_sdwa s[6:7], v1, s4 src0_sel:DWORD src1_sel:WORD_1");
  CHECK_EQ(m.wave.v[5][0], 0x1122);
  CHECK_EQ(m.wave.v[5][1], 0x77);
  CHECK_EQ(m.wave.v[6][0], 0x4f);
  CHECK_EQ(m.wave.v[6][1], 0x4e);
  CHECK_EQ(m.wave.vcc(), 0);
  CHECK_EQ(m.wave.pair(6), ~u64(0));
}

TEST_CASE("Vega's caches and scratch registers") {
  Machine m(kGfx9);
  m.wave.s[2] = 5;
  m("buffer_wbinvl1\nbuffer_wbinvl1_vol\ns_add_u32 flat_scratch_lo, s2, 3\n"
    "s_mov_b64 s[4:5], flat_scratch");
  CHECK_EQ(m.wave.s[4], 8);
}

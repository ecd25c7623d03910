#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

TEST_CASE("branches") {
  struct Branch {
    const char* name;
    bool scc;
    u64 vcc, exec;
    bool taken;
  };
  const Branch branches[] = {
      {"s_branch", false, 0, 1, true},
      {"s_cbranch_scc0", false, 0, 1, true},
      {"s_cbranch_scc0", true, 0, 1, false},
      {"s_cbranch_scc1", true, 0, 1, true},
      {"s_cbranch_scc1", false, 0, 1, false},
      {"s_cbranch_vccz", false, 0, 1, true},
      {"s_cbranch_vccz", false, 4, 1, false},
      {"s_cbranch_vccnz", false, 4, 1, true},
      {"s_cbranch_vccnz", false, 0, 1, false},
      {"s_cbranch_execz", false, 0, 0, true},
      {"s_cbranch_execz", false, 0, 1, false},
      {"s_cbranch_execnz", false, 0, 1, true},
      {"s_cbranch_execnz", false, 0, 0, false},
  };
  for (const Target& target : everywhere())
    for (const Branch& b : branches) {
      Machine m(target);
      m.wave.scc = b.scc;
      m.wave.s[kVcc] = u32(b.vcc);
      m.wave.s[kVcc + 1] = 0;
      m.wave.set_exec(b.exec);
      m.wave.s[0] = 1;
      INFO(b.name);
      m(std::string(b.name) + " 1\ns_movk_i32 s0, 2\ns_movk_i32 s1, 3");
      CHECK_EQ(m.wave.s[0], b.taken ? 1 : 2);
      CHECK_EQ(m.wave.s[1], 3);
    }
}

TEST_CASE("VCC of a wave32 is its low half") {
  Machine m(kGfx11);
  m.wave.s[kVcc] = 0;
  m.wave.s[kVcc + 1] = 1;
  CHECK_EQ(m.wave.vcc(), 0);
  m("s_mov_b32 s0, vcc_hi\ns_mov_b32 s1, 4\ns_cbranch_vccz 1\ns_mov_b32 s1, 5");
  CHECK_EQ(m.wave.s[0], 1);
  CHECK_EQ(m.wave.s[1], 4);
}

TEST_CASE("a loop, its count and the budget") {
  Machine m(kGfx11);
  m.wave.s[0] = 10;
  m("s_addk_i32 s0, 0xffff\n"
    "s_cmp_lg_u32 s0, 0\n"
    "s_cbranch_scc1 65533");
  CHECK_EQ(m.wave.s[0], 0);
  m.wave.ended = false;
  CHECK_EQ(m("s_branch 65535"), Stop::Paused);
}

TEST_CASE("barriers and pauses stop a wave, which goes on after them") {
  Machine m(kGfx11);
  CHECK_EQ(m("s_barrier"), Stop::Barrier);
  CHECK_EQ(m.wave.pc, 1);
  CHECK_EQ(m("s_sleep 1"), Stop::Paused);
  CHECK_EQ(m("s_endpgm"), Stop::Ended);
  CHECK(m.wave.ended);
  Machine n(kGfx12);
  CHECK_EQ(
      n("s_barrier_signal -1\ns_movk_i32 s0, 7\ns_barrier_wait -1"),
      Stop::Barrier);
  CHECK_EQ(n.wave.s[0], 7);
  CHECK_EQ(n.wave.pc, 3);
  CHECK_THROWS_WITH_AS(
      n("s_barrier_wait -1"),
      "wave 0, +0x0 s_barrier_wait 0xffff: waits for a barrier that it has not "
      "signalled",
      Fault);
  CHECK_THROWS_AS(n("s_barrier_signal -1\ns_barrier_signal -1"), Fault);
}

TEST_CASE("MODE: rounding and denormals of binary32") {
  // 1 + 2^-24 is a tie between 1 and the next float.
  const u32 rounded[] = {0x3f800000, 0x3f800001, 0x3f800000, 0x3f800000};
  const u32 negative[] = {0xbf800000, 0xbf800000, 0xbf800001, 0xbf800000};
  for (u32 mode = 0; mode < 4; ++mode) {
    check(
        everywhere(),
        std::vector<Answer>{
            {"v_add_f32 v0, v1, v2", {0x3f800000, 0x33800000}, rounded[mode]},
            {"v_add_f32 v0, v1, v2", {0xbf800000, 0xb3800000}, negative[mode]},
            // Not these.
            {"v_rndne_f32 v0, v1", {0x40200000}, 0x40000000},
            {"v_cvt_f16_f32 v0.l, v1", {0x3f801000}, 0xdead3c00},
        },
        0xf0 | mode);
  }
  // Denormals: bit 4 allows sources, bit 5 results.
  constexpr u32 least = 0x00000001, normal = 0x00800000, half = 0x3f000000;
  for (u32 mode : {0xc0, 0xd0, 0xe0, 0xf0}) {
    bool sources = mode & 0x10, results = mode & 0x20;
    check(
        everywhere(),
        std::vector<Answer>{
            // clang-format off
        {"v_add_f32 v0, v1, v2", {normal, least}, sources ? 0x00800001u : normal},
        {"v_mul_f32 v0, v1, v2", {normal, half}, results ? 0x00400000u : 0},
        {"v_mul_f32 v0, v1, v2", {normal | kSign, half}, results ? 0x80400000u : kSign},
        {"v_add_f32 v0, v1, v1", {least}, sources && results ? 2u : 0},
        {"v_mov_b32 v0, v1", {least}, least},
            // clang-format on
        },
        mode);
  }
  check(gfx11(), std::vector<Answer>{{"v_max_f32 v0, v1, v1", {1}, 0}}, 0xc0);
  check(gfx11(), std::vector<Answer>{{"v_max_f32 v0, v1, v1", {1}, 1}}, 0xf0);
}

TEST_CASE("MODE changes while a wave runs") {
  for (const Target& target : everywhere()) {
    Machine m(target);
    m.set(1, 0x3f800000);
    m.set(2, 0x33800000);
    m("s_round_mode 0x1\nv_add_f32 v3, v1, v2\n"
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\nv_add_f32 v4, v1, v2\n"
      "s_denorm_mode 12\nv_add_f32 v5, 1, v0");
    CHECK_EQ(m.wave.v[3][0], 0x3f800001);
    CHECK_EQ(m.wave.v[4][0], 0x3f800000);
    CHECK_EQ(m.wave.v[5][0], 0);
    m.wave.s[0] = 3;
    m("s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s0\ns_nop 0");
    CHECK_EQ(m.wave.mode, 0xc3);
    CHECK_THROWS_AS(m("s_round_mode 0x4"), Fault);
    CHECK_THROWS_AS(m("s_setreg_b32 hwreg(HW_REG_TRAPSTS, 0, 2), s0"), Fault);
  }
}

TEST_CASE("what has no effect here") {
  Machine m(kGfx11), n(kGfx12);
  m("s_nop 0\ns_delay_alu instid0(VALU_DEP_1)\ns_clause 0x1\n"
    "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_depctr 0xfffe\n"
    "s_waitcnt_vscnt null, 0x0\ns_waitcnt_vmcnt null, 0x0\n"
    "s_waitcnt_expcnt null, 0x0\ns_waitcnt_lgkmcnt null, 0x0\n"
    "s_wait_event 0x1\ns_wait_idle\ns_set_inst_prefetch_distance 0x1\n"
    "s_icache_inv\ns_dcache_inv\ns_gl1_inv\ns_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n"
    "s_setprio 0\nbuffer_gl0_inv\nbuffer_gl1_inv");
  n("s_wait_alu 0xfffe\ns_wait_expcnt 0x0\ns_wait_loadcnt 0x0\n"
    "s_wait_loadcnt_dscnt 0x0\ns_wait_samplecnt 0x0\ns_wait_storecnt 0x0\n"
    "s_wait_storecnt_dscnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0\n"
    "s_prefetch_data s[0:1], 0x0, s2, 0\ns_prefetch_inst s[0:1], 0x0, s2, 0\n"
    "s_prefetch_inst_pc_rel 0x0, s2, 0\nglobal_inv scope:SCOPE_DEV\n"
    "global_wb scope:SCOPE_DEV\nglobal_wbinv scope:SCOPE_DEV");
  CHECK(m.wave.ended);
  CHECK(n.wave.ended);
}

TEST_CASE("what is unknown is named") {
  Machine m(kGfx11);
  CHECK_THROWS_WITH_AS(
      m("v_qsad_pk_u16_u8 v[0:1], v[2:3], v4, v[6:7]"),
      "gfx1100 +0x0 v_qsad_pk_u16_u8 v[0:1], v[2:3], v4, v[6:7]: unknown "
      "instruction v_qsad_pk_u16_u8",
      Fault);
  CHECK_THROWS_WITH_AS(
      m("v_mul_hi_u32 v0, v1, v2\nv_sad_u8 v0, v1, v2, v3 clamp"),
      "gfx1100 +0x8 v_sad_u8 v0, v1, v2, v3 clamp: unknown modifier of v_sad_u8",
      Fault);
  std::vector<uint8_t> code(16, 0xff);
  CHECK_THROWS_AS(decode(kGfx11, 0, code), Fault);
  CHECK_THROWS_AS(decode(kGfx11, 0, {}), Fault);
}

// RDNA2: what its code has and that of later generations has not.
#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

namespace {

const Target kGfx10{"gfx1030", 10, 32}, kGfx10Wave64{"gfx1030", 10, 64};

} // namespace

TEST_CASE("sub-dword addressing: parts of sources and of results") {
  // clang-format off
  check({kGfx10, kGfx10Wave64}, std::vector<Answer>{
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_3", {0x11223344, 0x55667788}, 0x99},
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD", {0xffff3344, 1}, 0x10000},
      {"v_add_nc_u32_sdwa v0, sext(v1), sext(v2) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_1", {0xffff3344, 0x0000fe00}, 0xfffffffd},
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", {0x1f0, 1}, 0x0000f100},
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD", {0x1f0, 1}, 0xfffff100},
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", {0x1f0, 1}, 0xdeadf1ef},
      {"v_add_nc_u32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", {0x12340, 1}, 0x2341beef},
      {"v_lshlrev_b32_sdwa v0, 2, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_2", {0x00ff0000}, 0x3fc},
      {"v_mov_b32_sdwa v0, v1 dst_sel:WORD_0 dst_unused:UNUSED_PAD src0_sel:WORD_1", {0x12345678}, 0x1234},
      {"v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0", {0x40000000, 0x3c00}, 0x4200beef},
      {"v_add_f16_sdwa v0, -v1, |v2| dst_sel:WORD_0 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0", {0x40000000, 0xbc00}, 0x0000bc00},
      {"v_add_f32_sdwa v0, -v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", {0x40000000, 0x3f800000}, 0xbf800000},
      {"v_cvt_f32_ubyte0_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3", {0x03000000}, 0x40400000},
  });
  // clang-format on
}

TEST_CASE("sub-dword comparisons and carries") {
  Machine m(kGfx10, 0x7fffffff);
  for (u32 l = 0; l < 32; ++l)
    m.wave.v[1][l] = l << 8;
  m.set(2, 0x000a0000);
  m("v_cmp_lt_u32_sdwa s4, v1, v2 src0_sel:BYTE_1 src1_sel:WORD_1");
  CHECK_EQ(m.wave.s[4], 0x3ff);
  m.wave.s[kVcc] = 0x5;
  m("v_add_co_ci_u32_sdwa v3, vcc_lo, v1, v2, vcc_lo dst_sel:DWORD "
    "dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1");
  CHECK_EQ(m.wave.v[3][0], 11);
  CHECK_EQ(m.wave.v[3][1], 11);
  CHECK_EQ(m.wave.v[3][2], 13);
  CHECK_EQ(m.wave.s[kVcc], 0);
  m("v_cmpx_lt_u32_sdwa v1, v2 src0_sel:BYTE_1 src1_sel:WORD_1");
  CHECK_EQ(m.wave.exec(), 0x3ff);
}

TEST_CASE("comparisons with DPP, which LLVM does not print") {
  struct Code {
    u32 words[2];
    u64 expected;
  };
  // v_cmp_lt_u32 vcc_lo, v1, v2: v1 of the lane above in its row, of which row
  // 15 has none; and of each 8 lanes mirrored.
  const Code codes[] = {
      {{0x7d8204fa, 0xff010101}, 0x7fff7fff},
      {{0x7d8204e9, 0x05397701}, 0xf0f0f0f0},
  };
  for (const Code& c : codes) {
    std::vector<uint8_t> code(12);
    std::memcpy(code.data(), c.words, 8);
    u32 end = 0xbf810000;
    std::memcpy(code.data() + 8, &end, 4);
    const Program& program = decode(kGfx10, 0x5000, code);
    Machine m(kGfx10);
    for (u32 l = 0; l < 32; ++l) {
      m.wave.v[1][l] = l;
      m.wave.v[2][l] = c.words[0] == codes[0].words[0] ? l + 2 : l;
    }
    uint64_t budget = 10;
    run(m.wave, program, budget);
    CHECK_EQ(m.wave.s[kVcc], c.expected);
  }
}

TEST_CASE("a selection that extends signs, which LLVM does not print") {
  // v_cndmask_b32_sdwa v12, sext(v12), sext(v13), vcc_lo, halves 0.
  const u32 words[] = {0x02181af9, 0x0c0c060c, 0xbf810000};
  std::vector<uint8_t> code(sizeof words);
  std::memcpy(code.data(), words, sizeof words);
  const Program& program = decode(kGfx10, 0x6000, code);
  Machine m(kGfx10);
  m.set(12, 0x1234fffe);
  m.set(13, 0x12347ffe);
  m.wave.s[kVcc] = 2;
  uint64_t budget = 10;
  CHECK_EQ(run(m.wave, program, budget), Stop::Ended);
  CHECK_EQ(m.wave.v[12][0], 0xfffffffe);
  CHECK_EQ(m.wave.v[12][1], 0x00007ffe);
}

TEST_CASE("vector registers that both halves of a wave share") {
  Machine m(kGfx10Wave64);
  m.wave.first_shared = 8;
  for (u32 l = 0; l < 64; ++l)
    m.wave.v[3][l] = l;
  // The halves exchange v3, as RADV's compiler does it.
  m("v_mov_b32_dpp v8, v3 quad_perm:[0,1,2,3] row_mask:0x3 bank_mask:0xf fi:1\n"
    "v_mov_b32_dpp v9, v3 quad_perm:[0,1,2,3] row_mask:0xc bank_mask:0xf fi:1\n"
    "v_mov_b32_dpp v4, v8 quad_perm:[0,1,2,3] row_mask:0xc bank_mask:0xf fi:1\n"
    "v_mov_b32_dpp v4, v9 quad_perm:[0,1,2,3] row_mask:0x3 bank_mask:0xf fi:1");
  for (u32 l = 0; l < 64; ++l)
    CHECK_EQ(m.wave.v[4][l], l ^ 32);
  m.wave.set_exec(u64(1) << 40);
  m("v_add_nc_u32 v8, v3, 1");
  CHECK_EQ(m.wave.v[8][8], 41);
  CHECK_EQ(m.wave.v[8][9], 9);
}

TEST_CASE("RDNA2's names") {
  // clang-format off
  check({kGfx10, kGfx10Wave64}, std::vector<Answer>{
      {"v_ffbh_u32 v0, v1", {0x00010000}, 15},
      {"v_ffbl_b32 v0, v1", {0x00010000}, 16},
      {"v_ffbh_i32 v0, v1", {0xffff0000}, 16},
      {"v_mul_legacy_f32 v0, v1, v2", {0x7f800000, 0}, 0},
      {"v_cvt_pkrtz_f16_f32 v0, v1, v2", {0x3f803fff, 0xbf803fff}, 0xbc013c01},
      {"v_cvt_rpi_i32_f32 v0, v1", {0x40200000}, 3},
      {"v_cvt_flr_i32_f32 v0, v1", {0xbfc00000}, 0xfffffffe},
      {"v_add_f16 v0, v1, v2", {0x3c00, 0x4000}, 0xdead4200},
      {"v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,1]", {0x40000000, 0x4200, 0x3c00}, 0x4700beef},
      {"v_min_f32 v0, v1, v2", {0, kSign}, kSign},
      {"v_dot4c_i32_i8 v0, v1, v2", {0x01ff0280, 0x03020105}, u32(0xdeadbeef + 3 - 2 + 2 - 640)},
      {"v_dot4_i32_i8 v0, v1, v2, v3", {0x01ff0280, 0x03020105, 100}, u32(100 + 3 - 2 + 2 - 640)},
  });
  check({kGfx10, kGfx10Wave64}, std::vector<ScalarAnswer>{
      {"s_andn2_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0xf000f000, 1},
      {"s_orn2_b32 s0, s1, s2", {0xff00ff00, 0x0ff00ff0}, 0xff0fff0f, 1},
      {"s_ff1_i32_b32 s0, s1", {0x00010000}, 16},
      {"s_ff1_i32_b64 s0, s[2:3]", {0, 0, 0x10}, 36},
      {"s_flbit_i32_b32 s0, s1", {0x00010000}, 15},
      {"s_flbit_i32_b64 s0, s[2:3]", {0, 0xffffffff, 1}, 31},
      {"s_flbit_i32 s0, s1", {0xffff0000}, 16},
  });
  // clang-format on
  struct Save {
    const char* text;
    u32 next; // of the source 0xc and EXEC 0xa
  };
  const Save saves[] = {
      {"s_andn1_saveexec_b32 s0, s2", 0x2},
      {"s_andn2_saveexec_b32 s0, s2", 0x4},
      {"s_orn1_saveexec_b32 s0, s2", ~0x4u},
      {"s_orn2_saveexec_b32 s0, s2", ~0x2u},
      {"s_andn1_wrexec_b32 s0, s2", 0x2},
      {"s_andn2_wrexec_b32 s0, s2", 0x4},
  };
  for (const Save& save : saves) {
    Machine m(kGfx10);
    m.wave.set_exec(0xa);
    m.wave.s[2] = 0xc;
    INFO(save.text);
    m(save.text);
    CHECK_EQ(m.wave.exec(), save.next);
  }
}

TEST_CASE("RDNA2's names of memory instructions") {
  for (const Target& target : {kGfx10, kGfx10Wave64}) {
    Machine m(target, 2);
    m.wave.set_exec(2);
    for (u32 k = 0; k < 64; ++k)
      m.memory.global[k] = m.memory.shared[k] = u8(0x80 + k);
    m.set64(2, TestMemory::kBase);
    m.wave.s[4] = u32(TestMemory::kBase);
    m.wave.s[5] = u32(TestMemory::kBase >> 32);
    m.set(4, 0);
    for (u32 r = 16; r < 64; ++r)
      m.set(r, 0xdeadbeef);
    m("global_load_dword v16, v[2:3], off offset:4\n"
      "global_load_dwordx4 v[20:23], v4, s[4:5] offset:8\n"
      "global_load_ubyte v24, v4, s[4:5]\nglobal_load_sbyte v25, v4, s[4:5]\n"
      "global_load_ushort v26, v4, s[4:5]\nglobal_load_sshort v27, v4, s[4:5]\n"
      "global_load_short_d16 v28, v4, s[4:5]\n"
      "global_load_short_d16_hi v29, v4, s[4:5]\n"
      "ds_read_b64 v[30:31], v4 offset:8\nds_read2_b32 v[32:33], v4 offset1:2\n"
      "ds_read_u16_d16_hi v34, v4\nds_read_u8 v35, v4 offset:3\n"
      "s_load_dwordx2 s[8:9], s[4:5], 0x10");
    auto at = [&](u32 r) { return m.wave.v[r][1]; };
    CHECK_EQ(at(16), 0x87868584);
    CHECK_EQ(at(16 + 4), 0x8b8a8988);
    CHECK_EQ(at(23), 0x97969594);
    CHECK_EQ(at(24), 0x80);
    CHECK_EQ(at(25), 0xffffff80);
    CHECK_EQ(at(26), 0x8180);
    CHECK_EQ(at(27), 0xffff8180);
    CHECK_EQ(at(28), 0xdead8180);
    CHECK_EQ(at(29), 0x8180beef);
    CHECK_EQ(at(31), 0x8f8e8d8c);
    CHECK_EQ(at(33), 0x8b8a8988);
    CHECK_EQ(at(34), 0x8180beef);
    CHECK_EQ(at(35), 0x83);
    CHECK_EQ(m.wave.s[9], 0x97969594);
    CHECK_EQ(m.wave.v[16][0], 0xdeadbeef);
    m.set(40, 0x11223344);
    m.set(41, 0x55667788);
    m("global_store_dwordx2 v[2:3], v[40:41], off\n"
      "global_store_byte v4, v40, s[4:5] offset:8\n"
      "global_store_short_d16_hi v4, v40, s[4:5] offset:10\n"
      "ds_write_b32 v4, v40\nds_write2_b32 v4, v40, v41 offset0:1 offset1:3\n"
      "ds_write_b16_d16_hi v4, v40 offset:8");
    auto word = [](const std::vector<uint8_t>& bytes, size_t k) {
      u32 x;
      std::memcpy(&x, bytes.data() + k, 4);
      return x;
    };
    CHECK_EQ(word(m.memory.global, 4), 0x55667788);
    CHECK_EQ(word(m.memory.global, 8), 0x11228944);
    CHECK_EQ(word(m.memory.shared, 0), 0x11223344);
    CHECK_EQ(word(m.memory.shared, 4), 0x11223344);
    CHECK_EQ(word(m.memory.shared, 8), 0x8b8a1122);
    CHECK_EQ(word(m.memory.shared, 12), 0x55667788);
    m.set(42, 5);
    m.set(43, 0x11223344);
    m("global_atomic_add v50, v4, v42, s[4:5] glc\n"
      "global_atomic_umax v4, v42, s[4:5] offset:4\n"
      // Sources of ds_cmpst: the comparison's, then the new value.
      "ds_cmpst_rtn_b32 v51, v4, v43, v42\nds_cmpst_b32 v4, v43, v42 offset:12\n"
      "ds_wrxchg_rtn_b32 v52, v4, v43 offset:4");
    CHECK_EQ(at(50), 0x11223344);
    CHECK_EQ(word(m.memory.global, 0), 0x11223349);
    CHECK_EQ(word(m.memory.global, 4), 0x55667788);
    CHECK_EQ(at(51), 0x11223344);
    CHECK_EQ(word(m.memory.shared, 0), 5);
    CHECK_EQ(word(m.memory.shared, 12), 0x55667788);
    CHECK_EQ(at(52), 0x11223344);
  }
}

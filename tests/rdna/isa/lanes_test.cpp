// Instructions that move values between lanes, and DPP.
#include <doctest/doctest.h>

#include <functional>

#include "rig.h"

using namespace rdna;

namespace {

// v1 of lane l is 100 + l.
void number_lanes(Machine& m) {
  for (u32 l = 0; l < kMaxLanes; ++l)
    m.wave.v[1][l] = 100 + l;
}

constexpr int kKept = -1, kZero = -2;

// v0 of an active lane must be that of the lane that `source` names.
void check_moves(
    const Target& target,
    const std::string& text,
    u32 active,
    const std::function<int(u32)>& source) {
  Machine m(target, active);
  number_lanes(m);
  m.set(0, 7);
  INFO(target.cpu, " wave", target.lanes, " ", text);
  REQUIRE_NOTHROW(m(text));
  for (u32 l = 0; l < target.lanes; ++l) {
    int from = active >> l % 32 & 1 ? source(l) : kKept;
    u32 expected = from == kKept ? 7 : from == kZero ? 0 : 100 + from;
    CAPTURE(l);
    REQUIRE_EQ(m.wave.v[0][l], expected);
  }
}

} // namespace

TEST_CASE("DPP: where each lane reads") {
  struct Control {
    const char* text;
    int (*source)(u32);
  };
  auto in_row = [](u32 l, int at) {
    return at < 0 || at > 15 ? kKept : int(l / 16 * 16) + at;
  };
  static auto row = in_row;
  const Control controls[] = {
      // clang-format off
      {"quad_perm:[3,0,2,1]",
       [](u32 l) { return int(l / 4 * 4) + (l % 4 == 0 ? 3 : l % 4 == 1 ? 0 : l % 4 == 2 ? 2 : 1); }},
      {"row_shl:3", [](u32 l) { return row(l, int(l % 16) + 3); }},
      {"row_shr:3", [](u32 l) { return row(l, int(l % 16) - 3); }},
      {"row_ror:3", [](u32 l) { return row(l, int(l + 13) % 16); }},
      {"row_mirror", [](u32 l) { return row(l, 15 - int(l % 16)); }},
      {"row_half_mirror", [](u32 l) { return int(l / 8 * 8 + 7 - l % 8); }},
      {"row_share:5", [](u32 l) { return row(l, 5); }},
      {"row_xmask:6", [](u32 l) { return row(l, int(l % 16) ^ 6); }},
      // clang-format on
  };
  for (const Target& target : everywhere())
    for (const Control& c : controls) {
      std::string text = std::string("v_mov_b32_dpp v0, v1 ") + c.text;
      std::string masks = " row_mask:0xf bank_mask:0xf";
      check_moves(target, text + masks, ~0u, c.source);
      check_moves(target, text + masks + " bound_ctrl:1", ~0u, [&](u32 l) {
        int from = c.source(l);
        return from == kKept ? kZero : from;
      });
      // Inactive lanes: not read, read as 0, or read.
      constexpr u32 active = 0x5bd1e995;
      auto inactive = [&](int from) { return !(active >> from % 32 & 1); };
      check_moves(target, text + masks, active, [&](u32 l) {
        int from = c.source(l);
        return from < 0 || inactive(from) ? kKept : from;
      });
      check_moves(target, text + masks + " bound_ctrl:1", active, [&](u32 l) {
        int from = c.source(l);
        return from < 0 || inactive(from) ? kZero : from;
      });
      check_moves(target, text + masks + " fi:1", active, c.source);
      // Rows and banks that are not written.
      check_moves(
          target, text + " row_mask:0x5 bank_mask:0x9", ~0u, [&](u32 l) {
            bool written = (0x5 >> l / 16 & 1) && (0x9 >> l / 4 % 4 & 1);
            return written ? c.source(l) : kKept;
          });
    }
}

TEST_CASE("DPP8 and DPP of the first source only") {
  const int select[] = {7, 6, 1, 0, 3, 3, 2, 5};
  auto source = [&](u32 l) { return int(l / 8 * 8) + select[l % 8]; };
  for (const Target& target : everywhere()) {
    check_moves(
        target, "v_mov_b32_dpp v0, v1 dpp8:[7,6,1,0,3,3,2,5]", ~0u, source);
    Machine m(target);
    number_lanes(m);
    m("v_sub_nc_u32_dpp v0, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\n"
      "v_cmp_eq_u32_e32 vcc" +
      std::string(target.lanes == 64 ? "" : "_lo") + ", v1, v1");
    CHECK_EQ(m.wave.v[0][17], u32(-1));
    CHECK_EQ(m.wave.v[0][16], u32(-116));
    for (u32 l = 0; l < kMaxLanes; ++l)
      m.wave.v[2][l] = bits(float(l));
    m("v_add_f32_dpp v3, -v2, |v2| quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf");
    CHECK_EQ(f32(m.wave.v[3][8]), -1.0f);
    CHECK_EQ(f32(m.wave.v[3][9]), 1.0f);
  }
  // Of three sources, of halves, of mixed and packed operands.
  for (const Target& target : everywhere()) {
    Machine m(target);
    for (u32 l = 0; l < kMaxLanes; ++l) {
      m.wave.v[1][l] = bits(float(l));
      m.wave.v[2][l] = half(float(l)) << 16;
    }
    m.set(9, bits(2.0f));
    m.set(10, bits(1.0f));
    m.set(11, half(3.0f) << 16);
    std::string dpp = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf";
    m("v_fma_f32_e64_dpp v4, v1, v9, v1" + dpp +
      "\nv_fma_mix_f32_e64_dpp v5, v2, v9, v1 op_sel:[1,0,0] op_sel_hi:[1,0,0]" +
      dpp + "\nv_fma_mixlo_f16_e64_dpp v6, v1, v10, v1" + dpp +
      "\nv_dot2_f32_f16_e64_dpp v7, v2, v11, v1" + dpp +
      "\nv_add_f16_e64_dpp v8.l, v2.h, v2.h" + dpp);
    for (u32 l = 0; l < target.lanes; ++l) {
      float other = float(l ^ 1);
      CHECK_EQ(f32(m.wave.v[4][l]), 2 * other + l);
      CHECK_EQ(f32(m.wave.v[5][l]), 2 * other + l);
      CHECK_EQ(f16(u16(m.wave.v[6][l])), other + l);
      CHECK_EQ(f32(m.wave.v[7][l]), 3 * other + l);
      CHECK_EQ(f16(u16(m.wave.v[8][l])), other + l);
    }
  }
  // A comparison clears the bits of lanes that are not written.
  Machine m(kGfx11);
  number_lanes(m);
  m("v_cmp_ge_u32_e64_dpp s4, v1, v1 row_shl:1 row_mask:0xf bank_mask:0xf");
  CHECK_EQ(m.wave.s[4], 0x7fff7fff);
}

TEST_CASE("one lane's value in a scalar") {
  for (const Target& target : everywhere()) {
    Machine m(target, 0xffffff00);
    number_lanes(m);
    m("v_readfirstlane_b32 s0, v1");
    CHECK_EQ(m.wave.s[0], 108);
    m.wave.s[1] = 67;
    m("v_readlane_b32 s0, v1, s1\nv_readlane_b32 s2, v1, 31");
    CHECK_EQ(m.wave.s[0], 103);
    CHECK_EQ(m.wave.s[2], 131);
    m.wave.s[3] = 55;
    m("v_writelane_b32 v1, s3, 5");
    CHECK_EQ(m.wave.v[1][5], 55);
    CHECK_EQ(m.wave.v[1][6], 106);
    m.wave.set_exec(0);
    m("v_readfirstlane_b32 s0, v1");
    CHECK_EQ(m.wave.s[0], 100);
  }
}

TEST_CASE("counts of lower lanes") {
  for (const Target& target : everywhere()) {
    Machine m(target);
    m.wave.s[0] = 0xf0f0f0f0;
    m.wave.s[1] = 0x0000ffff;
    m("v_mbcnt_lo_u32_b32 v0, s0, 1000\nv_mbcnt_hi_u32_b32 v2, s1, v0");
    u64 mask = 0x0000fffff0f0f0f0;
    for (u32 l = 0; l < target.lanes; ++l) {
      u32 below = 0;
      for (u32 k = 0; k < l; ++k)
        below += mask >> k & 1;
      CHECK_EQ(m.wave.v[2][l], 1000 + below);
    }
  }
}

TEST_CASE("permutations of rows") {
  // Lane k of a row takes lane (7 k + 3) % 16: 4 bits each.
  u64 select = 0;
  for (u64 k = 0; k < 16; ++k)
    select |= ((7 * k + 3) % 16) << (4 * k);
  constexpr u32 active = 0x5bd1e995;
  for (const Target& target : everywhere())
    for (bool across : {false, true})
      for (int mode = 0; mode < 4; ++mode) {
        Machine m(target, active);
        number_lanes(m);
        m.set(0, 7);
        m.wave.s[2] = u32(select);
        m.wave.s[3] = u32(select >> 32);
        const char* modes[] = {
            "", " op_sel:[1,0]", " op_sel:[0,1]", " op_sel:[1,1]"};
        std::string text = across ? "v_permlanex16_b32" : "v_permlane16_b32";
        m(text + " v0, v1, s2, s3" + modes[mode]);
        for (u32 l = 0; l < target.lanes; ++l) {
          if (!(active >> l % 32 & 1))
            continue;
          u32 from = l / 16 * 16 + (7 * (l % 16) + 3) % 16;
          from = across ? from ^ 16 : from;
          bool read = (active >> from % 32 & 1) || (mode & 1);
          INFO(text, modes[mode], l);
          CHECK_EQ(m.wave.v[0][l], read ? 100 + from : mode & 2 ? 0 : 7);
        }
      }
  Machine m(kGfx11Wave64, 0x0000ffff);
  number_lanes(m);
  m("v_permlane64_b32 v0, v1");
  CHECK_EQ(m.wave.v[0][3], 135);
  CHECK_EQ(m.wave.v[0][33], 101);
  CHECK_EQ(m.wave.v[0][16], 0);
  Machine n(kGfx11);
  number_lanes(n);
  n("v_permlane64_b32 v0, v1");
  CHECK_EQ(n.wave.v[0][3], 0);
}

TEST_CASE("swaps") {
  Machine m(kGfx11, 0xffff0000);
  number_lanes(m);
  m("v_swap_b32 v1, v2");
  CHECK_EQ(m.wave.v[2][20], 120);
  CHECK_EQ(m.wave.v[1][20], 0x02020202);
  CHECK_EQ(m.wave.v[1][3], 103);
}

TEST_CASE("ds_bpermute, ds_permute, ds_swizzle") {
  for (const Target& target : everywhere()) {
    Machine m(target, 0xfffffffe);
    number_lanes(m);
    for (u32 l = 0; l < kMaxLanes; ++l)
      m.wave.v[2][l] = 4 * ((5 * l + 40) % 64);
    m("ds_bpermute_b32 v0, v2, v1 offset:4");
    bool rows = target.gfx < 12; // within 32 lanes
    for (u32 l = 1; l < target.lanes; ++l) {
      if (l == 32)
        continue; // inactive
      u32 from = (5 * l + 41) % 64;
      from = rows ? from % 32 + l / 32 * 32 : from % target.lanes;
      bool active = from % 32 != 0;
      CAPTURE(l);
      CHECK_EQ(m.wave.v[0][l], active ? 100 + from : 0);
    }
    // Only lanes 1 to 31 (and 33 to 63) send.
    m("ds_permute_b32 v3, v2, v1");
    std::vector<u32> expected(target.lanes);
    for (u32 l = 0; l < target.lanes; ++l) {
      u32 to = (5 * l + 40) % 64;
      to = rows ? to % 32 + l / 32 * 32 : to % target.lanes;
      if (l % 32 != 0)
        expected[to] = 100 + l;
    }
    for (u32 l = 1; l < 32; ++l)
      CHECK_EQ(m.wave.v[3][l], expected[l]);
  }
  struct Swizzle {
    const char* offset;
    u32 (*source)(u32);
  };
  const Swizzle swizzles[] = {
      {"swizzle(QUAD_PERM,3,2,1,0)", [](u32 l) { return l ^ 3; }},
      {"swizzle(SWAP,16)", [](u32 l) { return l ^ 16; }},
      {"swizzle(REVERSE,8)", [](u32 l) { return l ^ 7; }},
      {"swizzle(BROADCAST,8,5)", [](u32 l) { return l / 8 * 8 + 5; }},
      {"swizzle(BITMASK_PERM,\"1ip0p\")",
       [](u32 l) { return (l & 32) | 16 | ((l & 8) ^ 8) | (l & 4) | (l & 1); }},
  };
  for (const Target& target : everywhere())
    for (const Swizzle& s : swizzles)
      check_moves(
          target,
          std::string("ds_swizzle_b32 v0, v1 offset:") + s.offset,
          ~0u,
          [&](u32 l) { return int(s.source(l)); });
}

// Vector instructions of 16-bit operands, packed ones and dot products.
#include <doctest/doctest.h>

#include <cmath>

#include "rig.h"

using namespace rdna;

// Results are in the low half of v0, whose high half stays 0xdead.

TEST_CASE("binary16 sums and products are rounded once") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_add_f16 v0.l, v1.l, v2.l", {0x3c00, 0x1000}, 0xdead3c00}, // 2^-11: a tie
      {"v_add_f16 v0.l, v1.l, v2.l", {0x3c01, 0x1000}, 0xdead3c02},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x3c00, 0x1001}, 0xdead3c01},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x0001, 0x0001}, 0xdead0002},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x7bff, 0x7bff}, 0xdead7c00},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x7c00, 0xfc00}, 0xdead7e00},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x7c01, 0x3c00}, 0xdead7e01},
      {"v_add_f16 v0.l, v1.l, v2.l", {0x3c00, 0xfe05}, 0xdeadfe05},
      {"v_add_f16 v0.h, v1.h, v2.l", {0x4000ffff, 0x3c00}, 0x4200beef},
      {"v_add_f16 v0.l, v1.h, v2.h", {0x4000ffff, 0x3c00ffff}, 0xdead4200},
      {"v_add_f16 v0.l, -v1.l, |v2.l|", {0x3c00, 0xbc00}, 0xdead0000},
      {"v_add_f16 v0.l, v1.l, 1.0", {0x3c00}, 0xdead4000},
      {"v_add_f16 v0.l, v1.l, v2.l clamp", {0x4000, 0x3c00}, 0xdead3c00},
      {"v_add_f16 v0.l, v1.l, v2.l clamp", {0x7c00, 0xfc00}, 0xdead0000},
      {"v_add_f16 v0.l, v1.l, v2.l mul:2", {0x4000, 0x3c00}, 0xdead4600},
      {"v_sub_f16 v0.l, v1.l, v2.l", {0x4200, 0x3c00}, 0xdead4000},
      {"v_subrev_f16 v0.l, v1.l, v2.l", {0x4200, 0x3c00}, 0xdeadc000},
      {"v_mul_f16 v0.l, v1.l, v2.l", {0x3c01, 0x3c01}, 0xdead3c02},
      {"v_mul_f16 v0.l, v1.l, v2.l", {0x0400, 0x3800}, 0xdead0200},
      {"v_mul_f16 v0.l, v1.l, v2.l", {0x0001, 0x3800}, 0xdead0000},
      // (1 + 2^-10)^2 - (1 + 2^-9) is 2^-20 exactly.
      {"v_fma_f16 v0.l, v1.l, v2.l, v3.l", {0x3c01, 0x3c01, 0xbc02}, 0xdead0010},
      // 2^-11 * (1 + 2^-10) + 1: above the tie that 2^-11 is.
      {"v_fma_f16 v0.l, v1.l, v2.l, v3.l", {0x1001, 0x3c00, 0x3c00}, 0xdead3c01},
      {"v_fma_f16 v0.l, v1.l, v2.l, -v3.h", {0x4000, 0x4200, 0x3c000000}, 0xdead4500},
      // 0xbeef is -1.7334.
      {"v_fmac_f16 v0.l, v1.l, v2.l", {0x4000, 0x4200}, 0xdead4444},
      {"v_fmamk_f16 v0.l, v1.l, 0x4500, v2.l", {0x4200, 0xbc00}, 0xdead4b00},
      {"v_fmaak_f16 v0.l, v1.l, v2.l, 0xbc00", {0x4200, 0x4500}, 0xdead4b00},
          // clang-format on
      });
}

TEST_CASE(
    "a binary16 fma is rounded once: random operands in exact arithmetic") {
  u32 state = 12345;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
  Machine m(kGfx11);
  for (int round = 0; round < 40; ++round) {
    for (u32 l = 0; l < 32; ++l)
      for (u32 k = 1; k < 4; ++k) {
        u32 x = next();
        // Exponents near one another, and addends far below products.
        x = (x & 0x83ff) | (k < 3 ? 10 + x % 8 : 1 + x % 20) << 10;
        m.wave.v[k][l] = x;
      }
    m("v_fma_f16 v0.l, v1.l, v2.l, v3.l");
    for (u32 l = 0; l < 32; ++l) {
      // All three are multiples of 2^-24, products of 2^-48: integers.
      auto whole = [&](u32 k) {
        return (long long)std::ldexp(double(f16(u16(m.wave.v[k][l]))), 24);
      };
      __int128 exact =
          __int128(whole(1)) * whole(2) + (__int128(whole(3)) << 24);
      u16 got = u16(m.wave.v[0][l]);
      if ((got & 0x7fff) >= 0x7bff)
        continue;
      // The neighbours of the result are not nearer; a tie is even.
      auto distance = [&](u16 x) {
        __int128 y = __int128((long long)std::ldexp(double(f16(x)), 24)) << 24;
        return y > exact ? y - exact : exact - y;
      };
      for (u16 other : {u16(got + 1), u16(got - 1)}) {
        if ((other ^ got) & 0x8000)
          continue;
        CHECK(distance(got) <= distance(other));
        if (distance(got) == distance(other))
          CHECK((got & 1) == 0);
      }
    }
  }
}

TEST_CASE("binary16 choices and functions") {
  std::vector<Answer> both = {
      {"v_floor_f16 v0.l, v1.l", {0xbe00}, 0xdeadc000}, // -1.5
      {"v_ceil_f16 v0.l, v1.l", {0xbe00}, 0xdeadbc00},
      {"v_trunc_f16 v0.l, v1.l", {0xbe00}, 0xdeadbc00},
      {"v_rndne_f16 v0.l, v1.l", {0x4100}, 0xdead4000}, // 2.5
      {"v_fract_f16 v0.l, v1.l", {0xbd00}, 0xdead3a00}, // of -1.25: 0.75
      {"v_fract_f16 v0.l, v1.l", {0x8001}, 0xdead3bff},
      {"v_rcp_f16 v0.l, v1.l", {0x4400}, 0xdead3400},
      {"v_rcp_f16 v0.l, v1.l", {0x8000}, 0xdeadfc00},
      {"v_rsq_f16 v0.l, v1.l", {0x4400}, 0xdead3800},
      {"v_sqrt_f16 v0.l, v1.l", {0x4880}, 0xdead4200},
      {"v_sqrt_f16 v0.l, v1.l", {0xbc00}, 0xdead7e00},
      {"v_exp_f16 v0.l, v1.l", {0x4200}, 0xdead4800},
      {"v_log_f16 v0.l, v1.l", {0x4800}, 0xdead4200},
      {"v_sin_f16 v0.l, v1.l", {0x3400}, 0xdead3c00},
      {"v_cos_f16 v0.l, v1.l", {0x3800}, 0xdeadbc00},
      {"v_frexp_mant_f16 v0.l, v1.l", {0xc600}, 0xdeadba00},
      {"v_frexp_exp_i16_f16 v0.l, v1.l", {0xc600}, 0xdead0003},
      {"v_ldexp_f16 v0.l, v1.l, v2.l", {0x4200, 0xfffe}, 0xdead3a00},
  };
  check(everywhere(), both);
  check(
      gfx11(),
      std::vector<Answer>{
          // clang-format off
      {"v_min_f16 v0.l, v1.l, v2.l", {0x0000, 0x8000}, 0xdead8000},
      {"v_max_f16 v0.l, v1.l, v2.l", {0x7e00, 0xbc00}, 0xdeadbc00},
      {"v_min3_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead3c00},
      {"v_max3_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead4200},
      {"v_med3_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead4000},
      {"v_minmax_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead4000},
      {"v_maxmin_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead4000},
          // clang-format on
      });
  check(
      gfx12(),
      std::vector<Answer>{
          // clang-format off
      {"v_min_num_f16 v0.l, v1.l, v2.l", {0x0000, 0x8000}, 0xdead8000},
      {"v_max_num_f16 v0.h, v1.h, v2.l", {0x7e000000, 0xbc00}, 0xbc00beef},
      {"v_med3_num_f16 v0.l, v1.l, v2.l, v3.l", {0x4200, 0x3c00, 0x4000}, 0xdead4000},
          // clang-format on
      });
}

TEST_CASE("16-bit integers") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_mov_b16 v0.l, v1.h", {0x12345678}, 0xdead1234},
      {"v_mov_b16 v0.h, v1.l", {0x12345678}, 0x5678beef},
      {"v_mov_b16 v0.l, 0x1234", {}, 0xdead1234},
      {"v_not_b16 v0.l, v1.l", {0x00ff}, 0xdeadff00},
      {"v_and_b16 v0.l, v1.l, v2.l", {0xff00, 0x0ff0}, 0xdead0f00},
      {"v_or_b16 v0.l, v1.l, v2.l", {0xff00, 0x0ff0}, 0xdeadfff0},
      {"v_xor_b16 v0.h, v1.l, v2.l", {0xff00, 0x0ff0}, 0xf0f0beef},
      {"v_lshlrev_b16 v0.l, v1.l, v2.l", {17, 0x8001}, 0xdead0002},
      {"v_lshrrev_b16 v0.l, v1.l, v2.l", {15, 0x8001}, 0xdead0001},
      {"v_ashrrev_i16 v0.l, v1.l, v2.l", {15, 0x8001}, 0xdeadffff},
      {"v_mul_lo_u16 v0.l, v1.l, v2.l", {0x0101, 0x0101}, 0xdead0201},
      {"v_min_u16 v0.l, v1.l, v2.l", {1, 0xffff}, 0xdead0001},
      {"v_max_u16 v0.l, v1.l, v2.l", {1, 0xffff}, 0xdeadffff},
      {"v_min_i16 v0.l, v1.l, v2.l", {1, 0xffff}, 0xdeadffff},
      {"v_max_i16 v0.l, v1.l, v2.l", {1, 0xffff}, 0xdead0001},
      {"v_add_nc_u16 v0.l, v1.l, v2.l", {0xffff, 2}, 0xdead0001},
      {"v_add_nc_u16 v0.l, v1.l, v2.l clamp", {0xffff, 2}, 0xdeadffff},
      {"v_sub_nc_u16 v0.l, v1.l, v2.l", {1, 2}, 0xdeadffff},
      {"v_sub_nc_u16 v0.l, v1.l, v2.l clamp", {1, 2}, 0xdead0000},
      {"v_add_nc_i16 v0.l, v1.l, v2.l", {0x7fff, 1}, 0xdead8000},
      {"v_add_nc_i16 v0.l, v1.l, v2.l clamp", {0x7fff, 1}, 0xdead7fff},
      {"v_sub_nc_i16 v0.l, v1.l, v2.l", {0x8000, 1}, 0xdead7fff},
      {"v_sub_nc_i16 v0.l, v1.l, v2.l clamp", {0x8000, 1}, 0xdead8000},
      {"v_mad_u16 v0.l, v1.l, v2.l, v3.l", {0x0101, 0x0101, 0xffff}, 0xdead0200},
      {"v_mad_i16 v0.l, v1.l, v2.l, v3.h", {0xffff, 3, 0x00010000}, 0xdeadfffe},
      {"v_min3_u16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdead0003},
      {"v_max3_u16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdeadffff},
      {"v_med3_u16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdead0005},
      {"v_min3_i16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdeadffff},
      {"v_max3_i16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdead0005},
      {"v_med3_i16 v0.l, v1.l, v2.l, v3.l", {5, 0xffff, 3}, 0xdead0003},
      {"v_mad_u32_u16 v0, v1.l, v2.h, v3", {0xffff, 0xffff0000, 1}, 0xfffe0002},
      {"v_mad_i32_i16 v0, v1.l, v2.l, v3", {0xffff, 3, 1}, 0xfffffffe},
      {"v_pack_b32_f16 v0, v1.l, v2.h", {0x11112222, 0x33334444}, 0x33332222},
          // clang-format on
      });
}

TEST_CASE("conversions of 16 bits") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_cvt_f16_f32 v0.l, v1", {0x3f801000}, 0xdead3c00},
          {"v_cvt_f16_f32 v0.h, v1", {0x3f801001}, 0x3c01beef},
          {"v_cvt_f16_f32 v0.l, v1", {0x33000000}, 0xdead0000}, // 2^-25: a tie
          {"v_cvt_f16_f32 v0.l, v1", {0x33000001}, 0xdead0001},
          {"v_cvt_f16_f32 v0.l, v1", {0x477ff000}, 0xdead7c00}, // 65520
          {"v_cvt_f16_f32 v0.l, v1", {0x477fefff}, 0xdead7bff},
          {"v_cvt_f16_f32 v0.l, v1", {0x7fc00000}, 0xdead7e00},
          {"v_cvt_f16_f32 v0.l, v1", {0xff800001}, 0xdeadfe00},
          {"v_cvt_f16_f32 v0.l, -v1", {0x3f800000}, 0xdeadbc00},
          {"v_cvt_f32_f16 v0, v1.l", {0x12340001}, 0x33800000},
          {"v_cvt_f32_f16 v0, v1.h", {0xfc000000}, 0xff800000},
          {"v_cvt_f32_f16 v0, -v1.l", {0x3c00}, 0xbf800000},
          {"v_cvt_f32_f16 v0, v1.l", {0x7c01}, 0x7fc02000},
          {"v_cvt_u32_u16 v0, v1.l", {0x1234ffff}, 0x0000ffff},
          {"v_cvt_i32_i16 v0, v1.h", {0xffff1234}, 0xffffffff},
          {"v_cvt_f16_u16 v0.l, v1.l", {0xffff}, 0xdead7c00},
          {"v_cvt_f16_u16 v0.l, v1.l", {0x0803}, 0xdead6802}, // 2051: a tie
          {"v_cvt_f16_i16 v0.l, v1.l", {0xffff}, 0xdeadbc00},
          {"v_cvt_u16_f16 v0.l, v1.l", {0x4100}, 0xdead0002},
          {"v_cvt_u16_f16 v0.l, v1.l", {0xbc00}, 0xdead0000},
          {"v_cvt_u16_f16 v0.l, v1.l", {0x7c00}, 0xdeadffff},
          {"v_cvt_i16_f16 v0.l, v1.l", {0xc100}, 0xdeadfffe},
          {"v_cvt_i16_f16 v0.l, v1.l", {0xfc00}, 0xdead8000},
          {"v_cvt_i16_f16 v0.l, v1.l", {0x7e00}, 0xdead0000},
      });
}

TEST_CASE("halves: selections and swaps") {
  for (const Target& target : everywhere()) {
    Machine m(target, 0xfffffff0);
    bool wide = target.lanes == 64;
    m.set(0, 0xdeadbeef);
    m.set(1, 0x11112222);
    m.set(2, 0x33334444);
    m.wave.s[4] = m.wave.s[5] = 0xaaaaaaaa;
    std::string mask = wide ? "s[4:5]" : "s4";
    m("v_cndmask_b16 v0.h, v1.l, v2.h, " + mask);
    CHECK_EQ(m.wave.v[0][4], 0x2222beef);
    CHECK_EQ(m.wave.v[0][5], 0x3333beef);
    CHECK_EQ(m.wave.v[0][0], 0xdeadbeef);
    m("v_swap_b16 v1.l, v2.h");
    CHECK_EQ(m.wave.v[1][9], 0x11113333);
    CHECK_EQ(m.wave.v[2][9], 0x22224444);
    CHECK_EQ(m.wave.v[1][0], 0x11112222);
  }
}

TEST_CASE("packed halves: selection and signs of each") {
  std::vector<Answer> both = {
      // clang-format off
      {"v_pk_add_f16 v0, v1, v2", {0x3c004000, 0x40003c00}, 0x42004200},
      {"v_pk_add_f16 v0, v1, v2", {0x7c003c00, 0xfc001000}, 0x7e003c00},
      {"v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", {0x3c004000, 0x00000000}, 0x40003c00},
      {"v_pk_add_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]", {0x3c004000, 0x40003c00}, 0xbc00bc00},
      {"v_pk_add_f16 v0, v1, v2 clamp", {0x3c00bc00, 0x40003800}, 0x3c000000},
      {"v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]", {0x3c004000}, 0x40004200},
      {"v_pk_mul_f16 v0, v1, v2", {0x3c014200, 0x3c014000}, 0x3c024600},
      {"v_pk_fma_f16 v0, v1, v2, v3", {0x3c014200, 0x3c014000, 0xbc023c00}, 0x00104700},
      {"v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[0,0,0]", {0x00004200, 0x00004000, 0x00003c00}, 0x47004700},
      {"v_pk_add_u16 v0, v1, v2", {0xffff0001, 0x00020002}, 0x00010003},
      {"v_pk_add_u16 v0, v1, v2 clamp", {0xffff0001, 0x00020002}, 0xffff0003},
      {"v_pk_add_u16 v0, v1, 1", {0x00010001}, 0x00010002},
      {"v_pk_add_u16 v0, v1, -1", {0x00010001}, 0x00000000},
      {"v_pk_sub_u16 v0, v1, v2", {0x00010005, 0x00020002}, 0xffff0003},
      {"v_pk_sub_u16 v0, v1, v2 clamp", {0x00010005, 0x00020002}, 0x00000003},
      {"v_pk_add_i16 v0, v1, v2 clamp", {0x7fff8000, 0x0001ffff}, 0x7fff8000},
      {"v_pk_sub_i16 v0, v1, v2", {0x80007fff, 0x0001ffff}, 0x7fff8000},
      {"v_pk_mul_lo_u16 v0, v1, v2", {0x01010003, 0x01010005}, 0x0201000f},
      {"v_pk_lshlrev_b16 v0, v1, v2", {0x00110001, 0x80018001}, 0x00020002},
      {"v_pk_lshrrev_b16 v0, v1, v2", {0x00110001, 0x80018001}, 0x40004000},
      {"v_pk_ashrrev_i16 v0, v1, v2", {0x00110001, 0x80018001}, 0xc000c000},
      {"v_pk_min_u16 v0, v1, v2", {0x0001ffff, 0xffff0001}, 0x00010001},
      {"v_pk_max_u16 v0, v1, v2", {0x0001ffff, 0xffff0001}, 0xffffffff},
      {"v_pk_min_i16 v0, v1, v2", {0x0001ffff, 0xffff0001}, 0xffffffff},
      {"v_pk_max_i16 v0, v1, v2", {0x0001ffff, 0xffff0001}, 0x00010001},
      {"v_pk_mad_u16 v0, v1, v2, v3", {0x01010003, 0x01010005, 0xffff0001}, 0x02000010},
      {"v_pk_mad_i16 v0, v1, v2, v3", {0xffff0003, 0x00030005, 0x00010001}, 0xfffe0010},
      // clang-format on
  };
  check(everywhere(), both);
  check(
      gfx11(),
      std::vector<Answer>{
          {"v_pk_min_f16 v0, v1, v2", {0x00004000, 0x80003c00}, 0x80003c00},
          {"v_pk_max_f16 v0, v1, v2", {0x00007e00, 0x80003c00}, 0x00003c00},
      });
  check(
      gfx12(),
      std::vector<Answer>{
          {"v_pk_min_num_f16 v0, v1, v2", {0x00004000, 0x80003c00}, 0x80003c00},
          {"v_pk_max_num_f16 v0, v1, v2", {0x00007e00, 0x80003c00}, 0x00003c00},
      });
}

TEST_CASE("mixed fma: sources of 16 or 32 bits") {
  constexpr u32 two = 0x40000000, three = 0x40400000, one = 0x3f800000;
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_fma_mix_f32 v0, v1, v2, v3", {two, three, one}, 0x40e00000},
      {"v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]", {0xffff4000, three, one}, 0x40e00000},
      {"v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,1] op_sel_hi:[1,1,1]", {0x4000ffff, 0xffff4200, 0x3c00ffff}, 0x40e00000},
      {"v_fma_mix_f32 v0, -v1, |v2|, v3", {two, 0xc0400000, one}, 0xc0a00000},
      {"v_fma_mix_f32 v0, v1, -v2, v3 op_sel_hi:[0,1,0]", {two, 0x00004200, one}, 0xc0a00000},
      {"v_fma_mix_f32 v0, v1, v2, v3 clamp", {two, three, one}, one},
      {"v_fma_mixlo_f16 v0, v1, v2, v3", {two, three, one}, 0xdead4700},
      {"v_fma_mixlo_f16 v0, v1, v2, v3", {0x3f801000, one, 0}, 0xdead3c00},
      {"v_fma_mixhi_f16 v0, v1, v2, v3", {two, three, one}, 0x4700beef},
      {"v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]", {0x4000, 0x4200, one}, 0x4700beef},
          // clang-format on
      });
}

TEST_CASE("dot products") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]", {0x01ff0280, 0x03020105, 100}, u32(100 + 3 - 2 + 2 - 640)},
      {"v_dot4_i32_iu8 v0, v1, v2, v3", {0x01ff0280, 0x03020105, 100}, 100 + 3 + 510 + 2 + 640},
      {"v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0]", {0x000000ff, 0x000000ff, 0}, u32(-255)},
      {"v_dot4_i32_iu8 v0, v1, v2, v3 clamp", {0x01, 0x01, 0x7fffffff}, 0x7fffffff},
      {"v_dot4_u32_u8 v0, v1, v2, v3", {0x01ff0280, 0x03020105, 100}, 100 + 3 + 510 + 2 + 640},
      {"v_dot4_u32_u8 v0, v1, v2, v3 clamp", {0x01, 0x01, 0xffffffff}, 0xffffffff},
      {"v_dot2_f32_f16 v0, v1, v2, v3", {0x40003c00, 0x42004400, 0x3f800000}, 0x41300000},
      {"v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[0,1,1] neg_hi:[1,0,0]", {0x40003c00, 0x42004400, 0x3f800000}, 0xc1300000},
      {"v_dot2_f32_bf16 v0, v1, v2, v3", {0x40003f80, 0x40404080, 0x3f800000}, 0x41300000},
          // clang-format on
      });
}

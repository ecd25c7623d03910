// Vector instructions of binary32.
#include <doctest/doctest.h>

#include <cmath>

#include "rig.h"

using namespace rdna;

namespace {

constexpr u32 kOne = 0x3f800000, kTwo = 0x40000000, kThree = 0x40400000;
constexpr u32 kHalf = 0x3f000000, kMinusOne = 0xbf800000;
constexpr u32 kSignaling = 0x7f800001, kQuietNan = 0x7fc00000;
constexpr u32 kInf = 0x7f800000, kMinusInf = 0xff800000;
constexpr u32 kLargest = 0x7f7fffff;

} // namespace

TEST_CASE("sums and products are rounded once, to the nearest even") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_add_f32 v0, v1, v2", {kOne, 0x33800000}, kOne}, // 2^-24: a tie
      {"v_add_f32 v0, v1, v2", {0x3f800001, 0x33800000}, 0x3f800002},
      {"v_add_f32 v0, v1, v2", {kOne, 0x33800001}, 0x3f800001},
      {"v_add_f32 v0, v1, v2", {kLargest, kLargest}, kInf},
      {"v_add_f32 v0, v1, v2", {kSign, 0}, 0},
      {"v_add_f32 v0, v1, v2", {kSign, kSign}, kSign},
      {"v_add_f32 v0, -v1, |v2|", {kOne, kMinusOne}, 0},
      {"v_add_f32 v0, v1, -|v2|", {kOne, kMinusOne}, 0},
      {"v_sub_f32 v0, v1, v2", {kThree, kOne}, kTwo},
      {"v_subrev_f32 v0, v1, v2", {kThree, kOne}, 0xc0000000},
      {"v_mul_f32 v0, v1, v2", {0x3f800001, 0x3f800001}, 0x3f800002},
      {"v_mul_f32 v0, v1, v2", {kLargest, kTwo}, kInf},
      {"v_mul_f32 v0, v1, v2", {0x00800000, kHalf}, 0x00400000},
      {"v_mul_dx9_zero_f32 v0, v1, v2", {kInf, kSign}, 0},
      {"v_mul_dx9_zero_f32 v0, v1, v2", {kTwo, kThree}, 0x40c00000},
      // (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46 exactly.
      {"v_fma_f32 v0, v1, v2, v3", {0x3f800001, 0x3f800001, 0xbf800002}, 0x28800000},
      {"v_fma_f32 v0, -v1, v2, |v3|", {kTwo, kThree, kMinusOne}, 0xc0a00000},
      {"v_fmamk_f32 v0, v1, 0x40a00000, v2", {kThree, kMinusOne}, 0x41600000},
      {"v_fmaak_f32 v0, v1, v2, 0xbf800000", {kThree, 0x40a00000}, 0x41600000},
      // 0xdeadbeef is -6.2598534e18.
      {"v_fmac_f32 v0, v1, v2", {0, kOne}, 0xdeadbeef},
      {"v_fmac_f32 v0, v1, v2", {0x5eadbeef, kOne}, 0},
          // clang-format on
      });
}

TEST_CASE("NaN: the first source's, quiet; a new one is positive") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_add_f32 v0, v1, v2", {kInf, kMinusInf}, kQuietNan},
          {"v_mul_f32 v0, v1, v2", {kInf, 0}, kQuietNan},
          {"v_add_f32 v0, v1, v2", {kSignaling, kOne}, 0x7fc00001},
          {"v_add_f32 v0, v1, v2", {0x7fc00005, 0x7fc00009}, 0x7fc00005},
          {"v_add_f32 v0, v1, v2", {kOne, 0xffc00009}, 0xffc00009},
          {"v_fma_f32 v0, v1, v2, v3", {kOne, kOne, kSignaling}, 0x7fc00001},
          {"v_fma_f32 v0, v1, v2, v3", {kInf, kOne, kMinusInf}, kQuietNan},
          {"v_sqrt_f32 v0, v1", {kMinusOne}, kQuietNan},
          {"v_rsq_f32 v0, v1", {kMinusOne}, kQuietNan},
          {"v_log_f32 v0, v1", {kMinusOne}, kQuietNan},
          {"v_sin_f32 v0, v1", {kInf}, kQuietNan},
          {"v_cos_f32 v0, v1", {kMinusInf}, kQuietNan},
          {"v_fract_f32 v0, v1", {kInf}, kQuietNan},
          {"v_add_f32 v0, v1, v2 clamp", {kInf, kMinusInf}, 0},
      });
}

TEST_CASE("minimum and maximum: a number beats NaN, -0 is less than 0") {
  struct Choice {
    u32 first, second, least, most;
  };
  const Choice choices[] = {
      {kOne, kTwo, kOne, kTwo},
      {kTwo, kOne, kOne, kTwo},
      {0, kSign, kSign, 0},
      {kSign, 0, kSign, 0},
      {kQuietNan, kMinusOne, kMinusOne, kMinusOne},
      {kMinusOne, kQuietNan, kMinusOne, kMinusOne},
      {kQuietNan, kQuietNan, kQuietNan, kQuietNan},
      {kMinusInf, kInf, kMinusInf, kInf},
  };
  for (const Choice& c : choices) {
    std::vector<u32> two = {c.first, c.second};
    check(
        gfx11(),
        std::vector<Answer>{
            {"v_min_f32 v0, v1, v2", two, c.least},
            {"v_max_f32 v0, v1, v2", two, c.most},
        });
    check(
        gfx12(),
        std::vector<Answer>{
            {"v_min_num_f32 v0, v1, v2", two, c.least},
            {"v_max_num_f32 v0, v1, v2", two, c.most},
        });
  }
  check(
      gfx11(),
      std::vector<Answer>{
          {"v_min3_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kOne},
          {"v_max3_f32 v0, v1, v2, v3", {kQuietNan, kOne, kTwo}, kTwo},
          {"v_med3_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
          {"v_med3_f32 v0, v1, v2, v3", {kMinusOne, 0, kOne}, 0},
          {"v_med3_f32 v0, v1, v2, v3", {kQuietNan, kThree, kTwo}, kTwo},
          {"v_minmax_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
          {"v_maxmin_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
          {"v_maxmin_f32 v0, v1, v2, -v3", {kThree, kOne, kTwo}, 0xc0000000},
      });
  check(
      gfx12(),
      std::vector<Answer>{
          {"v_min3_num_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kOne},
          {"v_max3_num_f32 v0, v1, v2, v3", {kQuietNan, kOne, kTwo}, kTwo},
          {"v_med3_num_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
          {"v_minmax_num_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
          {"v_maxmin_num_f32 v0, v1, v2, v3", {kThree, kOne, kTwo}, kTwo},
      });
}

TEST_CASE("output modifier and clamp, in that order") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_mul_f32 v0, v1, v2 mul:2", {kThree, kOne}, 0x40c00000},
          {"v_mul_f32 v0, v1, v2 mul:4", {kThree, kOne}, 0x41400000},
          {"v_mul_f32 v0, v1, v2 div:2", {kThree, kOne}, 0x3fc00000},
          {"v_add_f32 v0, v1, v2 clamp", {kThree, kOne}, kOne},
          {"v_add_f32 v0, v1, v2 clamp", {0xc0400000, kOne}, 0},
          {"v_add_f32 v0, v1, v2 clamp", {kSign, kSign}, 0},
          {"v_add_f32 v0, v1, v2 clamp mul:2", {0x3e800000, 0}, kHalf},
          {"v_add_f32 v0, v1, v2 clamp div:2", {kOne, kHalf}, 0x3f400000},
      });
}

TEST_CASE("whole numbers and parts") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_floor_f32 v0, v1", {0xbfc00000}, 0xc0000000},
          {"v_ceil_f32 v0, v1", {0xbfc00000}, kMinusOne},
          {"v_ceil_f32 v0, v1", {0xbf000000}, kSign},
          {"v_trunc_f32 v0, v1", {0xbfc00000}, kMinusOne},
          {"v_rndne_f32 v0, v1", {0x40200000}, kTwo}, // 2.5
          {"v_rndne_f32 v0, v1", {0x40600000}, 0x40800000}, // 3.5
          {"v_rndne_f32 v0, v1", {0xbf000000}, kSign},
          {"v_fract_f32 v0, v1", {0xbfa00000}, 0x3f400000}, // of -1.25: 0.75
          {"v_fract_f32 v0, v1", {0xb3000000}, 0x3f7fffff}, // of -2^-25
          {"v_frexp_mant_f32 v0, v1", {0xc0c00000}, 0xbf400000}, // of -6: -0.75
          {"v_frexp_mant_f32 v0, v1", {kInf}, kInf},
          {"v_frexp_exp_i32_f32 v0, v1", {0xc0c00000}, 3},
          {"v_frexp_exp_i32_f32 v0, v1", {kInf}, 0},
          {"v_frexp_exp_i32_f32 v0, v1", {0x3e800000}, 0xffffffff},
          {"v_ldexp_f32 v0, v1, v2", {kThree, 4}, 0x42400000},
          {"v_ldexp_f32 v0, v1, v2", {kThree, 0xfffffffc}, 0x3e400000},
          {"v_ldexp_f32 v0, v1, v2", {kOne, 0x7fffffff}, kInf},
          {"v_ldexp_f32 v0, v1, v2", {kMinusOne, 0x80000000}, kSign},
          {"v_ldexp_f32 v0, v1, v2", {kSignaling, 1}, 0x7fc00001},
      });
}

TEST_CASE("conversions round toward zero, saturate, and take NaN for 0") {
  check(
      everywhere(),
      std::vector<Answer>{
          // clang-format off
      {"v_cvt_f32_u32 v0, v1", {0xffffffff}, 0x4f800000},
      {"v_cvt_f32_u32 v0, v1", {0x01000001}, 0x4b800000}, // 2^24 + 1: a tie
      {"v_cvt_f32_u32 v0, v1", {0x01000003}, 0x4b800002},
      {"v_cvt_f32_i32 v0, v1", {0xffffffff}, kMinusOne},
      {"v_cvt_f32_i32 v0, v1", {0x80000000}, 0xcf000000},
      {"v_cvt_f32_ubyte0 v0, v1", {0x04030201}, kOne},
      {"v_cvt_f32_ubyte1 v0, v1", {0x04030201}, kTwo},
      {"v_cvt_f32_ubyte2 v0, v1", {0x04030201}, kThree},
      {"v_cvt_f32_ubyte3 v0, v1", {0xff030201}, 0x437f0000},
      {"v_cvt_u32_f32 v0, v1", {0x40266666}, 2},
      {"v_cvt_u32_f32 v0, v1", {kMinusOne}, 0},
      {"v_cvt_u32_f32 v0, v1", {0x4f800000}, 0xffffffff},
      {"v_cvt_u32_f32 v0, v1", {0x4f7fffff}, 0xffffff00},
      {"v_cvt_u32_f32 v0, v1", {kQuietNan}, 0},
      {"v_cvt_i32_f32 v0, v1", {0xc0266666}, 0xfffffffe},
      {"v_cvt_i32_f32 v0, v1", {kInf}, 0x7fffffff},
      {"v_cvt_i32_f32 v0, v1", {kMinusInf}, 0x80000000},
      {"v_cvt_i32_f32 v0, -|v1|", {kThree}, 0xfffffffd},
      {"v_cvt_nearest_i32_f32 v0, v1", {0x40200000}, 3},
      {"v_cvt_nearest_i32_f32 v0, v1", {0xc0200000}, 0xfffffffe},
      {"v_cvt_floor_i32_f32 v0, v1", {0xbfc00000}, 0xfffffffe},
      {"v_cvt_pk_rtz_f16_f32 v0, v1, v2", {0x3f803fff, 0xbf803fff}, 0xbc013c01},
      {"v_cvt_pk_rtz_f16_f32 v0, v1, v2", {0x7f7fffff, kMinusInf}, 0xfc007bff},
      {"v_cvt_pk_u8_f32 v0, v1, v2, v3", {0x40200000, 1, 0xffffffff}, 0xffff02ff},
      {"v_cvt_pk_u8_f32 v0, v1, v2, v3", {0x43960000, 7, 0}, 0xff000000},
      {"v_cvt_pk_u8_f32 v0, -v1, v2, v3", {0x43960000, 0, 0xffffffff}, 0xffffff00},
          // clang-format on
      });
}

TEST_CASE("transcendental functions: exact ones, limits and denormals") {
  check(
      everywhere(),
      std::vector<Answer>{
          {"v_rcp_f32 v0, v1", {0x40800000}, 0x3e800000},
          {"v_rcp_f32 v0, v1", {kSign}, kMinusInf},
          {"v_rcp_f32 v0, v1", {kMinusInf}, kSign},
          {"v_rcp_f32 v0, v1", {1}, kInf},
          {"v_rcp_f32 v0, v1", {kLargest}, 0},
          {"v_rcp_iflag_f32 v0, v1", {0x40800000}, 0x3e800000},
          {"v_rsq_f32 v0, v1", {0x40800000}, kHalf},
          {"v_rsq_f32 v0, v1", {0}, kInf},
          {"v_rsq_f32 v0, v1", {kInf}, 0},
          {"v_sqrt_f32 v0, v1", {0x41100000}, kThree},
          {"v_sqrt_f32 v0, v1", {kSign}, kSign},
          {"v_exp_f32 v0, v1", {kThree}, 0x41000000},
          {"v_exp_f32 v0, v1", {0xc2fc0000}, 0x00800000}, // 2^-126
          {"v_exp_f32 v0, v1", {0xc2fe0000}, 0}, // 2^-127
          {"v_exp_f32 v0, v1", {0x43000000}, kInf}, // 2^128
          {"v_exp_f32 v0, v1", {kMinusInf}, 0},
          {"v_log_f32 v0, v1", {0x41000000}, kThree},
          {"v_log_f32 v0, v1", {0}, kMinusInf},
          {"v_log_f32 v0, v1", {1}, kMinusInf},
          {"v_sin_f32 v0, v1", {0x3e800000}, kOne}, // a quarter of a turn
          {"v_cos_f32 v0, v1", {kHalf}, kMinusOne},
      });
  // Within one unit of the last place of the value in double precision.
  struct Function {
    const char* text;
    double (*exact)(double);
  };
  const Function functions[] = {
      {"v_rcp_f32 v0, v1", [](double x) { return 1 / x; }},
      {"v_rsq_f32 v0, v1", [](double x) { return 1 / std::sqrt(x); }},
      {"v_sqrt_f32 v0, v1", [](double x) { return std::sqrt(x); }},
      {"v_exp_f32 v0, v1", [](double x) { return std::exp2(x); }},
      {"v_log_f32 v0, v1", [](double x) { return std::log2(x); }},
      {"v_sin_f32 v0, v1", [](double x) { return std::sin(x * 2 * M_PI); }},
      {"v_cos_f32 v0, v1", [](double x) { return std::cos(x * 2 * M_PI); }},
  };
  for (const Function& f : functions) {
    Machine m(kGfx11);
    for (u32 l = 0; l < 32; ++l)
      m.wave.v[1][l] = bits(0.37f + 0.71f * l);
    m(f.text);
    for (u32 l = 0; l < 32; ++l) {
      double exact = f.exact(f32(m.wave.v[1][l]));
      double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
      INFO(f.text, l);
      CHECK(std::abs(f32(m.wave.v[0][l]) - exact) <= unit);
    }
  }
}

TEST_CASE("interpolation takes values of a lane's quad") {
  for (const Target& target : {kGfx11, kGfx12}) {
    Machine m(target);
    for (u32 l = 0; l < 32; ++l) {
      m.wave.v[1][l] = bits(float(l));
      m.wave.v[2][l] = bits(2.0f);
      m.wave.v[3][l] = bits(100.0f * l);
    }
    m("v_interp_p10_f32 v4, v1, v2, v3 wait_exp:7\n"
      "v_interp_p2_f32 v5, v1, -v2, v3 wait_exp:7");
    for (u32 l = 0; l < 32; ++l) {
      u32 quad = l / 4 * 4;
      CHECK_EQ(f32(m.wave.v[4][l]), (quad + 1) * 2.0f + quad * 100.0f);
      CHECK_EQ(f32(m.wave.v[5][l]), (quad + 2) * -2.0f + l * 100.0f);
    }
  }
}

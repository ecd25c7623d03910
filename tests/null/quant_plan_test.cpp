#include <doctest/doctest.h>

#include "null/devices.h"
#include "ops/quant/plan.h"

using namespace mlx::core::vulkan;

namespace {

Caps gpu(uint32_t subgroup, uint32_t cores, uint32_t vendor) {
  Caps c;
  c.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  c.vendor_id = vendor;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = subgroup;
  c.required_subgroup_size = c.full_subgroups = true;
  c.core_count = cores;
  count_cores(c);
  return c;
}

const Caps plain_gpu = gpu(32, 132, 0x10de);
const Caps big_gpu = [] {
  Caps c = plain_gpu;
  c.cooperative_matrix = c.coopmat_f16 = true;
  c.shared_memory = 49152;
  c.max_workgroup_size = 1024;
  return c;
}();

QuantShape linear(uint32_t m, uint32_t n, uint32_t k) {
  auto format = quant_modes[0].format(4, 64);
  return {.common = {{Type::f16, format, true}}, .m = m, .n = n, .k = k};
}

template <typename Variant>
bool takes(const Caps& caps, const QuantShape& s) {
  return std::holds_alternative<Variant>(plan_quant(caps, s).kernel);
}
template <typename Variant>
Variant variant(const Caps& caps, const QuantShape& s) {
  return std::get<Variant>(plan_quant(caps, s).kernel);
}

} // namespace

TEST_CASE("quantized: matrix units from five rows on, where x is aligned") {
  CHECK(takes<QmmSkinnyVariant>(big_gpu, linear(5, 4096, 4096)));
  QuantShape s = linear(2048, 4096, 12288);
  QuantPlan plan = plan_quant(big_gpu, s);
  CHECK(variant<QmmCoopmatVariant>(big_gpu, s).BN == 256);
  CHECK(plan.m_tiles == 16);
  CHECK(plan.n_tiles == 16);
  CHECK(takes<QmvVariant>(big_gpu, linear(4, 4096, 4096)));
  CHECK(takes<QmmCoopmatVariant>(big_gpu, linear(65, 4096, 4096)));

  QuantShape odd = linear(2048, 4096, 4096);
  odd.x_aligned = false;
  CHECK(takes<QmmVariant>(big_gpu, odd));
  CHECK(takes<QmmVariant>(plain_gpu, linear(2048, 4096, 4096)));
}

TEST_CASE("quantized: up to 64 rows read the weights once") {
  auto skinny = [](const Caps& caps, uint32_t m, uint32_t n, uint32_t k) {
    return variant<QmmSkinnyVariant>(caps, linear(m, n, k));
  };
  for (uint32_t m : {9, 16, 17, 32, 33, 64}) {
    for (uint32_t n : {1, 1024, 4096, 24576, 151936}) {
      CAPTURE(m);
      CAPTURE(n);
      QuantPlan plan = plan_quant(big_gpu, linear(m, n, 4096));
      auto v = std::get<QmmSkinnyVariant>(plan.kernel);
      CHECK(plan.m_tiles == (v.rows() >= m ? 1 : 2));
      CHECK(uint64_t(plan.n_tiles) * v.outputs() >= n);
      CHECK(uint64_t(plan.n_tiles - 1) * v.outputs() < n);
      CHECK(v.shared_memory() <= big_gpu.shared_memory);
      CHECK(v.WN * v.WK * v.SG <= big_gpu.max_workgroup_size);
      // The kernel deals out whole loads.
      CHECK(v.FN * 32 % v.SG == 0);
      CHECK(v.FM * 128 % (v.WN * v.SG) == 0);
      CHECK(v.FM * 64 >= v.WN * v.SG);
    }
  }
  // Fewer parts of k where shared memory is small.
  Caps small = big_gpu;
  small.shared_memory = 32768;
  CHECK(skinny(small, 16, 4096, 4096).WK < skinny(big_gpu, 16, 4096, 4096).WK);
  for (uint32_t m : {16, 32, 64}) {
    CHECK(skinny(small, m, 24576, 4096).shared_memory() <= 32768);
  }
  small.shared_memory = 16384;
  CHECK(takes<QmmCoopmatVariant>(small, linear(16, 4096, 4096)));

  // Rows of w must hold whole runs of 32 codes and start at 16 bytes.
  QuantShape s = linear(16, 4096, 4096);
  s.aligned = false;
  CHECK(takes<QmmCoopmatVariant>(big_gpu, s));
  CHECK(takes<QmmCoopmatVariant>(big_gpu, linear(16, 4096, 4112)));
  CHECK(takes<QmmVariant>(plain_gpu, linear(16, 4096, 4096)));
  // A product of each small group is scaled, for each row.
  auto grouped = [&](int group, uint32_t m) {
    QuantShape small = linear(m, 4096, 4096);
    small.common.GROUP = group;
    return takes<QmmSkinnyVariant>(big_gpu, small);
  };
  CHECK(grouped(128, 64));
  CHECK(grouped(32, 16));
  CHECK_FALSE(grouped(32, 17));
  CHECK_FALSE(grouped(16, 9));
  // As the user wishes.
  s = linear(16, 4096, 4096);
  auto taken = [&](int rows) {
    return std::holds_alternative<QmmSkinnyVariant>(
        plan_quant(asked(big_gpu, {.skinny_rows = rows}), s).kernel);
  };
  CHECK_FALSE(taken(0));
  CHECK(taken(16));
  CHECK_FALSE(taken(17));
}

TEST_CASE("quantized: up to 64 rows load fragments where layouts are known") {
  Caps known = big_gpu;
  known.known_fragments = true;
  for (int bits : {4, 8}) {
    for (int group : {32, 64, 128}) {
      for (uint32_t m : {5, 16, 17, 32, 33, 64}) {
        for (uint32_t n : {1, 4096, 24576}) {
          QuantShape s = linear(m, n, 4096);
          s.common.BITS = bits;
          s.common.GROUP = group;
          QuantPlan plan = plan_quant(asked(known, {.skinny_rows = 5}), s);
          auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel);
          // Unless asked for, up to 8 rows of few outputs are taken by qmv.
          bool measured = bits == 4 && group > 32;
          REQUIRE((v != nullptr) == measured);
          // More than 32 rows of many weights, or of bytes, are taken by
          // qmm_tall.
          bool tall = m > 32 && (bits == 8 || n > 4096);
          CHECK(
              takes<QmmFragmentsVariant>(known, s) ==
              (measured && (m > 8 || n > 4096) && !tall));
          CHECK(takes<QmmTallVariant>(known, s) == (group > 32 && tall));
          if (!v) {
            continue;
          }
          CHECK(group % v->SPREAD == 0);
          CHECK(plan.m_tiles * v->rows() >= m);
          CHECK(uint64_t(plan.n_tiles) * v->outputs() >= n);
          CHECK(uint64_t(plan.n_tiles - 1) * v->outputs() < n);
          CHECK(v->shared_memory() <= 32768);
          CHECK(v->WN * v->WK * v->SG <= known.max_workgroup_size);
          CHECK(s.k % (128 * v->DEPTH) == 0);
        }
      }
    }
  }
  auto takes_it = [&](const QuantShape& s) {
    return takes<QmmFragmentsVariant>(known, s);
  };
  CHECK_FALSE(takes_it(linear(4, 4096, 4096)));
  CHECK(takes_it(linear(32, 151936, 4096)));
  CHECK_FALSE(takes_it(linear(33, 151936, 4096)));
  CHECK_FALSE(takes_it(linear(65, 4096, 4096)));
  CHECK_FALSE(takes_it(linear(16, 4096, 4096 + 32)));
  CHECK_FALSE(takes_it(linear(16, 4096, 512)));
  QuantShape s = linear(16, 4096, 4096);
  s.sides_aligned = false;
  CHECK(takes<QmmSkinnyVariant>(known, s));
  s = linear(16, 4096, 4096);
  s.common.BITS = 3;
  CHECK(takes<QmmSkinnyVariant>(known, s));
  // By a device without matrices when a test asks for it.
  Caps software = known;
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  s = linear(16, 4096, 256);
  auto emulated = [&](int rows) {
    auto plan = plan_quant(asked(software, {.skinny_rows = rows}), s);
    auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel);
    return v && v->EMULATED && !v->COOPMAT;
  };
  CHECK(emulated(5));
  CHECK_FALSE(emulated(-1));
  CHECK_FALSE(emulated(0));
}

TEST_CASE("quantized: many rows repay dequantizing first") {
  QuantShape s = linear(768, 4096, 12288);
  CHECK(dequantizes_first(big_gpu, s));
  CHECK_FALSE(dequantizes_first(asked(big_gpu, {.dequantize_rows = 0}), s));
  CHECK(dequantizes_first(big_gpu, linear(128, 4096, 4096)));
  CHECK_FALSE(dequantizes_first(big_gpu, linear(127, 4096, 4096)));
  Caps integrated = big_gpu;
  integrated.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  CHECK(dequantizes_first(integrated, s));
  CHECK_FALSE(dequantizes_first(integrated, linear(767, 4096, 4096)));
  CHECK(dequantizes_first(
      asked(big_gpu, {.dequantize_rows = 40}), linear(40, 4096, 4096)));
  // Without matrix units, only when asked to.
  CHECK_FALSE(dequantizes_first(plain_gpu, s));
  CHECK(dequantizes_first(asked(plain_gpu, {.dequantize_rows = 768}), s));
  // 256 MiB at most; not for stacks of matrices, nor for experts.
  CHECK_FALSE(dequantizes_first(big_gpu, linear(768, 151936, 4096)));
  s.common.BATCH = BATCH_GATHER;
  CHECK_FALSE(dequantizes_first(big_gpu, s));
}

TEST_CASE("quantized: bfloat16 is dequantized sooner for f16 matrices") {
  const QuantFormat affine = quant_modes[0].format(4, 64);
  const QuantFormat mxfp4 = quant_modes[1].format(4, 32);
  auto first = [&](const char* device,
                   uint32_t m,
                   bool transpose,
                   Type t,
                   const QuantFormat& format) {
    QuantShape s = linear(m, 4096, 4096);
    s.common = {{t, format, true}, BATCH_ONE};
    s.transpose = transpose;
    return dequantizes_first(caps_of(device), s);
  };
  const char* halo = "AMD Radeon Graphics (RADV STRIX_HALO)";
  const char* navi = "AMD Radeon Graphics (RADV NAVI31)";
  // Tiles of codes are faster at any number of rows, but take affine ones
  // alone.
  CHECK_FALSE(first(halo, 4096, true, Type::bf16, affine));
  CHECK_FALSE(first(navi, 4096, true, Type::bf16, affine));
  CHECK_FALSE(first(halo, 191, true, Type::bf16, mxfp4));
  CHECK(first(halo, 192, true, Type::bf16, mxfp4));
  CHECK_FALSE(first(navi, 127, true, Type::bf16, mxfp4));
  CHECK(first(navi, 128, true, Type::bf16, mxfp4));
  // f16 has matrices without that, and a w of the other layout has none.
  for (const char* device : {halo, navi}) {
    CHECK_FALSE(first(device, 767, true, Type::f16, affine));
    CHECK(first(device, 768, true, Type::f16, affine));
  }
  CHECK_FALSE(first(halo, 767, false, Type::bf16, affine));
  CHECK(first(halo, 768, false, Type::bf16, affine));
  CHECK_FALSE(first("AMD Radeon RX 6800", 4096, true, Type::bf16, affine));
}

TEST_CASE("quantized: tiles that were not timed have the least rounds") {
  Caps halo = caps_of("AMD Radeon Graphics (RADV STRIX_HALO)");
  auto tile = [&](uint32_t m, uint32_t n) {
    QuantShape s = linear(m, n, 4096);
    s.common.T = Type::bf16;
    auto v = variant<QmmSortedVariant>(halo, s);
    CHECK(v.units.halves);
    CHECK_FALSE(v.SORTED);
    return std::pair(v.BM, v.BN);
  };
  // 1,024 outputs of 128 rows: 16 large tiles would leave 24 of 40 cores idle.
  CHECK(tile(128, 12288) == std::pair(64u, 128u));
  CHECK(tile(128, 1024) == std::pair(32u, 64u));
  CHECK(tile(16, 4096) == std::pair(16u, 64u));
  CHECK(tile(2048, 4096) == std::pair(64u, 128u));
  // Experts of 32 rows each do not fill a tile of 64.
  auto s = linear(1, 768, 2048);
  s.common.BATCH = BATCH_GATHER;
  s.sorted = true;
  s.batch = 4096;
  s.matrices = 128;
  CHECK(variant<QmmSortedVariant>(halo, s).BM == 32);
  s.batch = 16384;
  CHECK(variant<QmmSortedVariant>(halo, s).BM == 64);
}

TEST_CASE("quantized: x is rounded to bytes where the user asks for it") {
  Caps fast = gpu(32, 60, 0x1002);
  fast.integer_dot_product = fast.fast_dot_signed = true;
  fast.shared_memory = 32768;
  fast.max_workgroup_size = 1024;
  auto takes_bytes = [](const Caps& caps, const QuantShape& s, int int8) {
    auto plan = plan_quant(asked(caps, {}, int8), s);
    return std::holds_alternative<QmmDotVariant>(plan.kernel);
  };
  QuantShape s = linear(512, 4096, 4096);
  CHECK(takes_bytes(fast, s, 1));
  CHECK_FALSE(takes_bytes(fast, s, 0));
  CHECK(takes<QmmVariant>(fast, s));
  // Of many rows; w transposed; no stacks, no experts.
  CHECK(takes_bytes(fast, linear(9, 4096, 4096), 1));
  CHECK_FALSE(takes_bytes(fast, linear(8, 4096, 4096), 1));
  s.transpose = false;
  CHECK_FALSE(takes_bytes(fast, s, 2));
  for (int batch : {BATCH_STACK, BATCH_GATHER}) {
    s = linear(512, 4096, 4096);
    s.common.BATCH = batch;
    CHECK_FALSE(takes_bytes(fast, s, 2));
  }
  s = linear(1, 4096, 4096);
  s.sorted = true;
  s.batch = 4096;
  s.matrices = 8;
  CHECK_FALSE(takes_bytes(fast, s, 2));
  // Nor more of packed x than 256 MiB.
  CHECK(takes_bytes(fast, linear(52428, 4096, 4096), 1));
  CHECK_FALSE(takes_bytes(fast, linear(52429, 4096, 4096), 1));
  // Matrix units are better where they can be had; tests may ask for bytes.
  Caps both = fast;
  both.cooperative_matrix = both.coopmat_f16 = true;
  s = linear(512, 4096, 4096);
  CHECK_FALSE(takes_bytes(both, s, 1));
  CHECK(takes_bytes(both, s, 2));
  s.common.T = Type::f32;
  CHECK(takes_bytes(both, s, 1));
  // Slow products of bytes are for tests alone, none for nobody.
  Caps slow = fast;
  slow.fast_dot_signed = false;
  CHECK_FALSE(takes_bytes(slow, s, 1));
  CHECK(takes_bytes(slow, s, 2));
  slow.integer_dot_product = false;
  CHECK_FALSE(takes_bytes(slow, s, 2));
  // Codes are unsigned where mixed products alone are fast.
  auto mixed = [&](const Caps& caps, int int8) {
    auto plan = plan_quant(asked(caps, {}, int8), linear(512, 4096, 4096));
    return std::get<QmmDotVariant>(plan.kernel).MIXED;
  };
  Caps adreno = fast;
  adreno.fast_dot_signed = false;
  adreno.fast_dot_mixed = true;
  CHECK(mixed(adreno, 1));
  CHECK_FALSE(mixed(fast, 1));
  CHECK_FALSE(mixed(adreno, 2));
  CHECK(mixed(fast, 3));
}

TEST_CASE(
    "quantized: tiles of bytes, of every format of groups of 32 or more") {
  Caps fast = gpu(32, 60, 0x1002);
  fast.integer_dot_product = fast.fast_dot_signed = true;
  fast.shared_memory = 16384;
  Caps software = fast;
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  int taken = 0;
  for (auto& mode : quant_modes) {
    for (const int* bits = mode.bits; *bits; ++bits) {
      for (const int* group = mode.groups; *group; ++group) {
        for (uint32_t m : {9, 32, 33, 300, 4096}) {
          for (const Caps* caps : {&fast, &software}) {
            QuantShape s = linear(m, 4097, 3 * *group);
            auto format = mode.format(*bits, *group);
            s.common = {{Type::f16, format, format.bias}, BATCH_ONE};
            auto plan = plan_quant(asked(*caps, {}, 2), s);
            auto* v = std::get_if<QmmDotVariant>(&plan.kernel);
            bool e4m3 = mode.code == CODE_E4M3;
            CHECK((v != nullptr) == (*group >= 32 && !e4m3));
            if (!v) {
              continue;
            }
            ++taken;
            CHECK(plan.m_tiles == (m + v->BM - 1) / v->BM);
            CHECK(plan.n_tiles == (4097 + v->BN - 1) / v->BN);
            CHECK(v->shared_memory() <= caps->shared_memory);
            CHECK(v->BK % DOT_BLOCK == 0);
            CHECK((v->GROUP % v->BK == 0 || v->BK % v->GROUP == 0));
            CHECK(v->BM % v->TM == 0);
            CHECK(v->BN % v->TN == 0);
            CHECK(v->BM / v->TM * (v->BN / v->TN) <= 256);
          }
        }
      }
    }
  }
  CHECK(taken == (7 * 3 + 1) * 5 * 2);
  // A packed row is whole pieces of 16 bytes: 32 items are 32 bytes and two
  // floats.
  CHECK(packed_row_words(32) == 12);
  CHECK(packed_row_words(64) == 20);
  CHECK(packed_row_words(4096) == 1280);
}

TEST_CASE("quantized: eight rows stay within few registers") {
  CHECK(
      variant<QmvVariant>(gpu(64, 40, 0x10de), linear(8, 4096, 4096)).OUTS ==
      2);
  Caps amd = gpu(64, 40, 0x1002);
  CHECK(variant<QmvVariant>(amd, linear(8, 4096, 4096)).OUTS == 1);
  CHECK(variant<QmvVariant>(amd, linear(4, 4096, 4096)).OUTS == 2);
  // Intel's and Apple's hold four.
  CHECK(
      variant<QmvVariant>(gpu(32, 8, 0x8086), linear(8, 4096, 4096)).ROWS == 4);
}

TEST_CASE("quantized: workgroups are of the subgroups that run") {
  Caps arc = gpu(32, 32, 0x8086);
  arc.min_subgroup_size = 8;
  CHECK(policy_of(arc).lanes == 16);
  auto v = variant<QmvVariant>(arc, linear(1, 4096, 4096));
  CHECK_FALSE(v.WHOLE_WORKGROUP);
  CHECK(v.BLOCK == v.WG / 16 * v.OUTS);
}

TEST_CASE("quantized: small products take small tiles to fill the device") {
  auto tile = [](uint32_t m, uint32_t n, uint32_t k) {
    return variant<QmmCoopmatVariant>(big_gpu, linear(m, n, k));
  };
  CHECK(tile(2048, 2048, 1024).BN == 128);
  CHECK(tile(2048, 1024, 2048).BM == 64);
  CHECK(tile(2048, 1024, 2048).BN == 128);
  CHECK(tile(512, 1024, 2048).BN == 64);
}

TEST_CASE("quantized: 65 rows and more are one kernel if layouts are known") {
  Caps known = big_gpu;
  known.known_fragments = true;
  for (uint32_t m : {65, 96, 97, 128, 129, 200, 511, 512, 2048}) {
    for (uint32_t n : {40, 1024, 4096, 12288, 151936}) {
      QuantShape s = linear(m, n, 4096);
      QuantPlan plan = plan_quant(known, s);
      auto* v = std::get_if<QmmTallVariant>(&plan.kernel);
      REQUIRE(v);
      CHECK_FALSE(dequantizes_first(known, s));
      CHECK(uint64_t(plan.m_tiles) * v->BM >= m);
      CHECK((plan.m_tiles - 1) * v->BM < m);
      CHECK(uint64_t(plan.n_tiles) * v->BN >= n);
      CHECK(v->BN == 32 * v->WN);
      CHECK((v->WN == 4 || m > 256));
      CHECK(v->SPLIT == (plan.splits > 1));
      CHECK(v->shared_memory() <= known.shared_memory);
      if (v->SPLIT) {
        CHECK(plan.k_split % v->depth == 0);
        CHECK(uint64_t(plan.splits) * plan.k_split >= s.k);
        CHECK(uint64_t(plan.splits - 1) * plan.k_split < s.k);
        s.may_split = false;
        CHECK(plan_quant(known, s).splits == 1);
      }
    }
  }
  CHECK(dequantizes_first(big_gpu, linear(513, 4096, 4096)));
  QuantShape bytes = linear(256, 4096, 4096);
  bytes.common.BITS = 8;
  CHECK(variant<QmmTallVariant>(known, bytes).BM <= 96);
  CHECK_FALSE(dequantizes_first(known, bytes));
  bytes.m = 257;
  CHECK(dequantizes_first(known, bytes));
  CHECK_FALSE(takes<QmmTallVariant>(big_gpu, linear(128, 4096, 4096)));
  CHECK_FALSE(takes<QmmTallVariant>(known, linear(128, 4096, 4096 + 64)));
}

// The fastest tiles on an H200 (docs/lab/2026-11-27-rounds.md).
TEST_CASE("quantized: tiles of many rows leave few cores without work") {
  auto tile = [](uint32_t m, uint32_t n, uint32_t k) {
    QuantPlan plan = plan_quant(caps_of("NVIDIA H200"), linear(m, n, k));
    auto& v = std::get<QmmTallVariant>(plan.kernel);
    return std::array{v.BM, v.BN, plan.splits};
  };
  using Tile = std::array<uint32_t, 3>;
  CHECK(tile(2048, 4096, 4096) == Tile{128, 256, 1});
  CHECK(tile(2048, 3072, 3072) == Tile{96, 256, 1});
  CHECK(tile(2048, 2560, 9728) == Tile{96, 256, 1});
  CHECK(tile(1024, 1024, 1024) == Tile{64, 128, 1});
  CHECK(tile(512, 4096, 12288) == Tile{128, 256, 2});
  // A second product of the same rows is expected to fill the last round.
  CHECK(tile(512, 12288, 4096) == Tile{128, 256, 1});
  CHECK(tile(2048, 3072, 1024) == Tile{128, 256, 1});
}

TEST_CASE("quantized: sorted experts load fragments where layouts are known") {
  Caps known = big_gpu;
  known.known_fragments = true;
  QuantShape s = linear(1, 768, 2048);
  s.common.BATCH = BATCH_GATHER;
  s.sorted = true;
  s.matrices = 128;
  auto kernel = [&](uint64_t rows) {
    s.batch = rows;
    QuantPlan plan = plan_quant(known, s);
    auto* f = std::get_if<QmmFragmentsVariant>(&plan.kernel);
    auto* t = std::get_if<QmmTallVariant>(&plan.kernel);
    CHECK(plan.sorted == (f || t));
    CHECK((!f || (f->SORTED && plan.tile_height == f->rows())));
    CHECK((!t || (t->SORTED && !t->SPLIT && plan.tile_height == t->BM)));
    return f ? "few" : t ? "more" : "each";
  };
  CHECK(kernel(63) == std::string("each"));
  CHECK(kernel(64) == std::string("few"));
  CHECK(kernel(16 * 128) == std::string("few"));
  for (auto [rows, height] :
       {std::pair(17, 32),
        {32, 32},
        {33, 64},
        {65, 96},
        {97, 128},
        {300, 128}}) {
    CHECK(kernel(rows * 128) == std::string("more"));
    CHECK(plan_quant(known, s).tile_height == height);
  }
}

TEST_CASE("quantized: sorted experts take tiles of their own rows") {
  QuantShape s = linear(1, 768, 2048);
  s.sorted = true;
  s.batch = 4096;
  s.matrices = 128;
  auto plan = plan_quant(big_gpu, s);
  CHECK(takes<QmmSortedVariant>(big_gpu, s));
  CHECK(plan.tile_height == variant<QmmSortedVariant>(big_gpu, s).BM);
  // Each expert may end a tile before it is full.
  CHECK(plan.m_tiles == 4096 / plan.tile_height + 128);
  CHECK(plan.tile_height == 64);
  s.batch = 32768;
  CHECK(plan_quant(big_gpu, s).tile_height == 128);
  // Weights that it does not take are dequantized, in such tiles too.
  for (bool QuantShape::*part :
       {&QuantShape::transpose, &QuantShape::aligned}) {
    QuantShape other = s;
    other.*part = false;
    CHECK(takes<QmmCoopmatVariant>(big_gpu, other));
    CHECK(plan_quant(big_gpu, other).tile_height == 128);
  }
  for (int group : {16, 32, 64, 128}) {
    QuantShape small = s;
    small.common.GROUP = group;
    auto v = variant<QmmSortedVariant>(big_gpu, small);
    CHECK(v.shared_memory() <= big_gpu.shared_memory);
  }
  s.batch = 128; // one row each: matvec reads every expert once too
  CHECK(takes<QmvVariant>(big_gpu, s));
}

TEST_CASE("quantized: one row keeps the device busy") {
  // Many outputs: a subgroup takes four, two chunks of k at once.
  auto row = [](uint32_t n, uint32_t k) {
    return variant<QmvVariant>(big_gpu, linear(1, n, k));
  };
  CHECK(row(12288, 4096).OUTS == 4);
  CHECK(row(12288, 4096).TURNS == 2);
  CHECK_FALSE(row(12288, 4096).WHOLE_WORKGROUP);
  // Fewer: workgroups share long rows; short ones stay with a subgroup each.
  CHECK(row(4096, 4096).WHOLE_WORKGROUP);
  CHECK(row(4096, 4096).OUTS == 2);
  CHECK(row(1024, 4096).OUTS == 1);
  CHECK_FALSE(row(2048, 1024).WHOLE_WORKGROUP);
  CHECK(row(2048, 1024).OUTS == 1);
  // All lanes take the same number of chunks where some size allows it.
  CHECK(row(1024, 3072).CHUNK == 16);
  CHECK(row(1024, 3072).TURNS == 1);
}

TEST_CASE("quantized: few rows by matrix units of known elements") {
  Caps caps = big_gpu;
  caps.known_fragments = true;
  auto by_matrices = [&](const QuantShape& s) {
    auto plan = plan_quant(caps, s);
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    return v && v->COOPMAT;
  };
  for (uint32_t m : {2u, 3u, 4u, 5u, 8u}) {
    CHECK(by_matrices(linear(m, 4096, 12288)));
    auto v = variant<QmvVariant>(caps, linear(m, 4096, 12288));
    CHECK(v.ROWS == (m == 2 ? 2 : m <= 4 ? 4 : 8));
    CHECK(v.WG >= 16 * v.ROWS); // an invocation stores one output of a row
    CHECK(v.TURNS == 2);
  }
  CHECK(takes<QmmFragmentsVariant>(caps, linear(2, 12288, 4096)));
  CHECK_FALSE(by_matrices(linear(9, 4096, 4096)));
  CHECK(std::holds_alternative<QmmFragmentsVariant>(
      plan_quant(asked(caps, {.skinny_rows = 5}), linear(8, 4096, 4096))
          .kernel));
  caps.known_fragments = false;
  CHECK_FALSE(by_matrices(linear(2, 4096, 2048)));
}

TEST_CASE("quantized: a row by integer dot products") {
  Caps caps = big_gpu;
  caps.vendor_id = 0x10de;
  caps.integer_dot_product = caps.fast_dot_signed = true;
  auto by_dots = [&](const QuantShape& s) {
    auto plan = plan_quant(caps, s);
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    return v && v->INT_DOT;
  };
  for (int group : {32, 64, 128}) {
    for (uint32_t k : {128u, 384u, 1024u, 2560u, 8192u}) {
      for (uint32_t n : {1u, 128u, 1000u, 4096u, 12288u, 151936u}) {
        CAPTURE(group);
        CAPTURE(k);
        CAPTURE(n);
        QuantShape s = linear(1, n, k);
        s.common.GROUP = group;
        QuantPlan plan = plan_quant(caps, s);
        auto v = std::get<QmvVariant>(plan.kernel);
        REQUIRE(v.INT_DOT);
        CHECK(v.ROW_ITEMS == k);
        CHECK(v.CHUNK == 32); // a chunk has one exponent
        CHECK(
            (v.TURNS == 1 ||
             k % (v.CHUNK * policy_of(caps).lanes * v.TURNS) == 0));
        CHECK(v.digit_bytes(k) <= caps.shared_memory);
        CHECK(v.BLOCK % (v.WG / policy_of(caps).lanes * v.OUTS) == 0);
        CHECK(uint64_t(plan.n_tiles) * v.BLOCK >= n);
        CHECK(uint64_t(plan.n_tiles - 1) * v.BLOCK < n);
      }
    }
  }
  // Other formats, indices, rows that 16-byte loads do not reach, long ones.
  for (int bits : {2, 3, 8}) {
    QuantShape s = linear(1, 4096, 2048);
    s.common.BITS = bits;
    CHECK_FALSE(by_dots(s));
  }
  QuantShape s = linear(1, 4096, 2048);
  s.common.BATCH = BATCH_GATHER;
  CHECK_FALSE(by_dots(s));
  s = linear(1, 4096, 2048);
  s.aligned = false;
  CHECK_FALSE(by_dots(s));
  s = linear(1, 4096, 2048);
  s.common.T = Type::f32;
  CHECK_FALSE(by_dots(s));
  CHECK_FALSE(by_dots(linear(2, 4096, 2048)));
  CHECK_FALSE(by_dots(linear(1, 4096, 12288)));
  caps.driver_id = VK_DRIVER_ID_MESA_NVK;
  CHECK_FALSE(by_dots(linear(1, 4096, 2048)));
  caps.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  CHECK(by_dots(linear(1, 4096, 2048)));
  caps.fast_dot_signed = false;
  CHECK_FALSE(by_dots(linear(1, 4096, 2048)));
}

TEST_CASE("quantized: few rows and software devices") {
  QuantShape s = linear(1, 4096, 4096);
  CHECK(variant<QmvVariant>(big_gpu, s).ROWS == 1);
  CHECK(variant<QmvVariant>(big_gpu, linear(3, 4096, 4096)).ROWS == 4);
  s.transpose = false;
  CHECK(takes<QvmVariant>(big_gpu, s));
  Caps software;
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  software.subgroup_size = 32;
  CHECK(variant<QmmVariant>(software, linear(100, 512, 512)).TM == 16);
  CHECK(variant<QmmVariant>(software, linear(100, 64, 64)).TM == 8);
  CHECK(variant<QmvVariant>(software, linear(1, 512, 512)).OUTS == 16);
}

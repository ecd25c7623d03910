#include <doctest/doctest.h>

#include <sstream>

#include "null/devices.h"
#include "ops/matrix_tiles.h"
#include "ops/quant/plan.h"

using namespace mlx::core::vulkan;

namespace {

QuantShape linear(
    uint32_t m,
    uint32_t n,
    uint32_t k,
    int bits = 4,
    int group = 64,
    Type t = Type::f16) {
  auto format = quant_modes[0].format(bits, group);
  return {.common = {{t, format, true}}, .m = m, .n = n, .k = k};
}
QuantShape bf16(uint32_t m, uint32_t n, uint32_t k) {
  return linear(m, n, k, 4, 64, Type::bf16);
}
QuantShape plain(QuantShape s) { // w is not transposed
  s.transpose = false;
  return s;
}

// Rows of so many experts, sorted.
QuantShape experts(uint64_t rows, uint32_t n, uint32_t k, uint32_t matrices) {
  QuantShape s = linear(1, n, k);
  s.common.BATCH = BATCH_GATHER;
  s.sorted = true;
  s.batch = rows;
  s.matrices = matrices;
  return s;
}

template <typename F>
void each_format(F f) {
  for (auto& mode : quant_modes) {
    for (const int* bits = mode.bits; *bits; ++bits) {
      for (const int* group = mode.groups; *group; ++group) {
        f(mode.format(*bits, *group));
      }
    }
  }
}

template <typename V>
uint32_t rows_of(const V& v) {
  if constexpr (requires { v.ROWS; }) {
    return v.ROWS;
  } else if constexpr (requires { v.rows(); }) {
    return v.rows();
  } else {
    return v.BM;
  }
}
template <typename V>
uint32_t outputs_of(const V& v) {
  if constexpr (requires { v.BLOCK; }) {
    return v.BLOCK;
  } else if constexpr (requires { v.TX; }) {
    return 8 * v.TX;
  } else if constexpr (requires { v.outputs(); }) {
    return v.outputs();
  } else {
    return v.BN;
  }
}

// What each kernel needs of a shape and its tile.
bool legal(const Target& gpu, const QuantShape& s, const QmvVariant& v) {
  uint32_t lanes = std::max(gpu.policy.lanes, 4u);
  bool digits = !v.INT_DOT ||
      (v.CHUNK == 32 && v.ROW_ITEMS == s.k && s.m == 1 && s.aligned &&
       gpu.caps.integer_dot_product && s.common.T != Type::f32 &&
       v.digit_bytes(s.k) <= gpu.caps.shared_memory);
  // A subgroup of matrices stores one output of a row per invocation.
  bool matrices = !v.COOPMAT ||
      (gpu.caps.known_fragments && s.aligned && v.WG >= 16 * v.ROWS);
  bool whole = v.WHOLE_WORKGROUP || v.BLOCK % (v.WG / lanes * v.OUTS) == 0;
  return s.transpose && digits && matrices && whole && (s.aligned || !v.VEC);
}
bool legal(const Target&, const QuantShape& s, const QvmVariant&) {
  return !s.transpose;
}
bool legal(const Target&, const QuantShape& s, const QmmVariant& v) {
  bool vec = s.transpose && s.x_aligned && s.k % 32 == 0;
  return v.BM % v.TM == 0 && v.BN % v.TN == 0 && (vec || !v.VEC);
}
bool legal(const Target& gpu, const QuantShape& s, const QmmCoopmatVariant& v) {
  auto& shape = v.units.shape;
  bool codes = !v.units.halves &&
      (!v.CODES || (s.transpose && s.aligned && s.k % 32 == 0));
  bool packed = v.units.halves && v.CODES && s.transpose && s.aligned &&
      v.CODE == CODE_INTEGER;
  bool tile = v.BM % (v.WM * shape.m) == 0 && v.BN % (v.WN * shape.n) == 0 &&
      v.BK % 32 == 0 && (v.BM * v.BK / 8) % (v.WM * v.WN * v.units.lanes) == 0;
  return s.x_aligned && (codes || packed) && tile;
}
bool legal(const Target&, const QuantShape& s, const QmmSkinnyVariant& v) {
  // The kernel deals out whole loads.
  bool loads = v.FN * 32 % v.SG == 0 && v.FM * 128 % (v.WN * v.SG) == 0 &&
      v.FM * 64 >= v.WN * v.SG;
  return s.transpose && s.aligned && s.k % 32 == 0 && v.SG == 32 && loads;
}
bool legal(const Target&, const QuantShape& s, const QmmFragmentsVariant& v) {
  return s.transpose && s.aligned && s.sides_aligned && v.BITS == 4 &&
      v.GROUP % v.SPREAD == 0 && s.k % (128 * v.DEPTH) == 0;
}
bool legal(const Target&, const QuantShape& s, const QmmTallVariant& v) {
  return s.transpose && s.aligned && s.sides_aligned && s.k % 128 == 0 &&
      (v.BITS == 4 || (v.BITS == 8 && v.BM <= 96)) &&
      (v.EMULATED || v.BN == 32 * v.WN);
}
bool legal(const Target& gpu, const QuantShape& s, const QmmDotVariant& v) {
  uint32_t group = v.GROUP;
  return gpu.caps.integer_dot_product && s.transpose && !s.sorted &&
      v.BK % DOT_BLOCK == 0 && (group % v.BK == 0 || v.BK % group == 0) &&
      v.BM % v.TM == 0 && v.BN % v.TN == 0 &&
      v.BM / v.TM * (v.BN / v.TN) <= 256;
}

// Whether a plan is legal and covers its product, once.
bool covers(const Target& gpu, const QuantShape& s) {
  QuantPlan plan = plan_quant(gpu, s);
  auto all = [](uint64_t tiles, uint64_t size, uint64_t items) {
    return tiles * size >= items && (tiles - 1) * size < items;
  };
  bool found = std::visit(
      [&](auto& v) {
        bool rows = plan.sorted ? plan.tile_height == rows_of(v) &&
                plan.m_tiles ==
                    s.batch / rows_of(v) +
                        std::min<uint64_t>(s.batch, s.matrices)
                                : all(plan.m_tiles, rows_of(v), s.m);
        return rows && all(plan.n_tiles, outputs_of(v), s.n) &&
            legal(gpu, s, v) && fits(gpu.caps, v);
      },
      plan.kernel);
  return found &&
      (plan.splits == 1 ||
       (s.may_split && !plan.sorted && plan.k_split % 128 == 0 &&
        all(plan.splits, plan.k_split, s.k)));
}

// The kernel of a shape and its tile, in words.
std::string kernel(const Target& gpu, const QuantShape& s) {
  if (dequantizes_first(gpu, s)) {
    return "dequantized";
  }
  QuantPlan plan = plan_quant(gpu, s);
  auto text = [](auto... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
  };
  return std::visit(
      [&](auto& v) {
        std::string name(v.file.substr(v.file.find('/') + 1));
        name += text(' ', rows_of(v), 'x', outputs_of(v));
        if constexpr (requires { v.CODES; }) {
          name += v.CODES ? v.units.halves ? " halves" : " codes" : "";
        }
        if constexpr (requires { v.OUTS; }) {
          name += v.COOPMAT ? " matrices"
              : v.INT_DOT   ? " digits"
                            : text(" OUTS=", v.OUTS, " CHUNK=", v.CHUNK);
          name += text(" TURNS=", v.TURNS);
        }
        return plan.splits > 1 ? text(name, " in ", plan.splits) : name;
      },
      plan.kernel);
}

// Without matrix units or with those of f16, as a test varies them.
Caps gpu(uint32_t cores, bool matrices) {
  Caps c = usable_gpu("a GPU");
  c.vendor_id = 0x10de;
  c.required_subgroup_size = c.full_subgroups = true;
  c.core_count = cores;
  count_cores(c);
  c.cooperative_matrix = c.coopmat_f16 = matrices;
  c.shared_memory = 49152;
  return c;
}
const Caps plain_gpu = gpu(132, false);
const Caps big_gpu = gpu(132, true);

template <typename Variant>
bool takes(const Target& gpu, const QuantShape& s) {
  return std::holds_alternative<Variant>(plan_quant(gpu, s).kernel);
}
template <typename Variant>
Variant variant(const Target& gpu, const QuantShape& s) {
  return std::get<Variant>(plan_quant(gpu, s).kernel);
}

} // namespace

TEST_CASE("quantized: every plan is legal and covers its product") {
  std::vector<Target> targets;
  for (auto& caps : device_table()) {
    targets.emplace_back(caps);
    for (int int8 : {1, 2}) {
      targets.push_back(asked(caps, {}, int8));
    }
    targets.push_back(asked(caps, {.skinny_rows = 5}));
  }
  Caps least = least_device();
  targets.emplace_back(least);
  for (auto& target : targets) {
    CAPTURE(target.caps.name);
    int right = 0, all = 0;
    auto check = [&](const QuantShape& s) {
      ++all;
      right += covers(target, s);
    };
    each_format([&](const QuantFormat& f) {
      uint32_t group = f.group;
      for (uint32_t m : {1, 2, 5, 8, 9, 16, 17, 32, 33, 65, 97, 300, 4096}) {
        for (auto [n, k] :
             {std::array{1u, 3 * group},
              {40u, 512u},
              {1024u, 4096u},
              {4097u, 4096u + group},
              {151936u, 2048u}}) {
          QuantShape s = linear(m, n, k);
          s.common = {{Type::bf16, f, f.bias}, BATCH_ONE};
          check(s);
          s.common.T = Type::f32;
          check(s);
        }
        QuantShape s = linear(m, 1024, 4096);
        s.common = {{Type::f16, f, f.bias}, BATCH_ONE};
        s.transpose = false;
        check(s);
        s.transpose = true;
        s.aligned = s.sides_aligned = false;
        check(s);
        s.x_aligned = false;
        check(s);
        s = experts(64 * m, 768, 2048, 128);
        s.common = {{Type::bf16, f, f.bias}, BATCH_GATHER};
        check(s);
        s.transpose = false;
        check(s);
      }
    });
    CHECK(right == all);
    CHECK(all > 4000);
  }
}

// Changes only where a choice does.
TEST_CASE("quantized: choices") {
  using Choice = std::pair<QuantShape, std::string>;
  const std::pair<const char*, std::vector<Choice>> choices[] = {
      // clang-format off
      {"NVIDIA H200", {
        {linear(1, 4096, 4096), "qmv 1x16 digits TURNS=2"},
        {linear(2, 4096, 4096), "qmv 2x16 matrices TURNS=2"},
        {linear(5, 4096, 4096), "qmv 8x16 matrices TURNS=2"},
        {linear(8, 4096, 4096), "qmv 8x16 matrices TURNS=2"},
        {linear(9, 4096, 4096), "qmm_fragments 16x32"},
        {linear(17, 4096, 4096), "qmm_fragments 32x32"},
        {linear(33, 4096, 4096), "qmm_fragments 32x64"},
        {linear(64, 4096, 4096), "qmm_fragments 32x64"},
        {linear(65, 4096, 4096), "qmm_tall 96x128 in 8"},
        {linear(97, 4096, 4096), "qmm_tall 128x128 in 8"},
        {linear(200, 4096, 4096), "qmm_tall 128x128 in 4"},
        {linear(512, 4096, 4096), "qmm_tall 128x256 in 2"},
        {linear(2048, 4096, 4096), "qmm_tall 128x256"},
        {linear(1, 12288, 4096), "qmv 1x16 digits TURNS=2"},
        {linear(1, 1024, 3072), "qmv 1x8 digits TURNS=1"},
        {linear(1, 4096, 12288), "qmv 1x2 OUTS=2 CHUNK=32 TURNS=2"},
        {linear(2, 12288, 4096), "qmm_fragments 16x32"},
        {linear(4, 12288, 4096), "qmm_fragments 16x32"},
        {linear(8, 12288, 4096), "qmm_fragments 16x32"},
        {linear(33, 151936, 4096), "qmm_tall 64x128"},
        {linear(2048, 3072, 3072), "qmm_tall 96x256"},
        {linear(2048, 2560, 9728), "qmm_tall 96x256"},
        {linear(1024, 1024, 1024), "qmm_tall 64x128"},
        {linear(512, 4096, 12288), "qmm_tall 128x256 in 2"},
        {linear(512, 12288, 4096), "qmm_tall 128x256"},
        {linear(2048, 3072, 1024), "qmm_tall 128x256"},
        {linear(1, 4096, 4096, 8), "qmv 1x2 OUTS=2 CHUNK=32 TURNS=2"},
        {linear(8, 4096, 4096, 8), "rows_skinny 16x32"},
        {linear(16, 4096, 4096, 8), "rows_skinny 16x32"},
        {linear(33, 4096, 4096, 8), "qmm_tall 64x128 in 8"},
        {linear(256, 4096, 4096, 8), "qmm_tall 96x128 in 2"},
        {linear(257, 4096, 4096, 8), "dequantized"},
        {linear(1, 4096, 4096, 3), "qmv 1x2 OUTS=2 CHUNK=32 TURNS=2"},
        {linear(16, 4096, 4096, 3), "rows_skinny 16x32"},
        {linear(64, 4096, 4096, 3), "rows_skinny 32x128"},
        {linear(65, 4096, 4096, 3), "rows_coopmat 64x64"},
        {linear(127, 4096, 4096, 3), "rows_coopmat 64x64"},
        {linear(128, 4096, 4096, 3), "dequantized"},
        {linear(16, 4096, 4096, 8, 32), "rows_skinny 16x32"},
        {linear(17, 4096, 4096, 8, 32), "rows_coopmat 32x64"},
        {linear(16, 4096, 512), "rows_skinny 16x32"},
        {linear(16, 4096, 4128), "rows_skinny 16x32"},
        {linear(16, 4096, 4096, 4, 64, Type::f32), "qmm 32x64"},
        {plain(linear(1, 4096, 4096)), "qvm 1x128"},
        {plain(linear(4, 4096, 4096)), "qvm 4x128"},
        {plain(linear(5, 4096, 4096)), "rows_coopmat 32x64"},
        {plain(linear(64, 4096, 4096)), "rows_coopmat 64x64"},
        {plain(linear(128, 4096, 4096)), "dequantized"},
        {experts(63, 768, 2048, 128), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=2"},
        {experts(64, 768, 2048, 128), "qmm_fragments 16x128"},
        {experts(16 * 128, 768, 2048, 128), "qmm_fragments 16x128"},
        {experts(17 * 128, 768, 2048, 128), "qmm_tall 32x128"},
        {experts(33 * 128, 768, 2048, 128), "qmm_tall 64x128"},
        {experts(97 * 128, 768, 2048, 128), "qmm_tall 128x128"},
        {experts(300 * 128, 768, 2048, 128), "qmm_tall 128x128"},
      }},
      {"AMD Radeon Graphics (RADV NAVI31)", {
        {bf16(1, 4096, 4096), "qmv 1x2 OUTS=2 CHUNK=32 TURNS=1"},
        {bf16(4, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {bf16(5, 4096, 4096), "rows_coopmat 16x64 halves in 4"},
        {bf16(16, 4096, 4096), "rows_coopmat 16x64 halves in 4"},
        {bf16(64, 4096, 4096), "rows_coopmat 32x64 halves in 2"},
        {bf16(128, 4096, 4096), "rows_coopmat 32x64 halves"},
        {bf16(2048, 4096, 4096), "rows_coopmat 64x128 halves"},
        {linear(16, 4096, 4096), "rows_skinny 16x32"},
        {linear(2048, 4096, 4096), "dequantized"},
      }},
      {"AMD Radeon Graphics (RADV STRIX_HALO)", {
        {bf16(16, 4096, 4096), "rows_coopmat 16x64 halves"},
        {bf16(128, 12288, 4096), "rows_coopmat 64x128 halves"},
        {bf16(128, 1024, 4096), "rows_coopmat 32x64 halves"},
        {bf16(2048, 4096, 4096), "rows_coopmat 64x128 halves"},
        {experts(4096, 768, 2048, 128), "rows_coopmat 32x128 codes"},
        {experts(16384, 768, 2048, 128), "rows_coopmat 64x128 codes"},
      }},
      {"AMD Radeon Graphics (RADV GFX1201)", {
        {bf16(1, 4096, 4096), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=1"},
        {bf16(4, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {bf16(8, 4096, 4096), "rows_skinny 16x32"},
        {bf16(16, 4096, 4096), "rows_skinny 16x32"},
        {bf16(64, 4096, 4096), "rows_coopmat 32x64 codes"},
        {bf16(128, 4096, 4096), "rows_coopmat 32x128 codes"},
        {bf16(2048, 4096, 4096), "dequantized"},
      }},
      {"AMD Radeon RX 6800", {
        {linear(1, 4096, 4096), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=1"},
        {linear(4, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {linear(8, 4096, 4096), "qmv 8x4 OUTS=1 CHUNK=32 TURNS=1"},
        {linear(16, 4096, 4096), "qmm 32x64"},
        {linear(512, 4096, 4096), "qmm 64x64"},
        {linear(2048, 12288, 4096), "qmm 64x64"},
      }},
      {"Intel(R) Arc(tm) A770M", {
        {linear(1, 4096, 4096), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=1"},
        {linear(8, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {linear(512, 4096, 4096), "qmm 64x128"},
      }},
      {"DG2 with", {
        {linear(8, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {linear(16, 4096, 4096), "rows_coopmat 32x64"},
        {linear(64, 4096, 4096), "rows_coopmat 64x64"},
        {linear(512, 4096, 4096), "rows_coopmat 64x128"},
        {linear(768, 4096, 4096), "dequantized"},
        {experts(4096, 768, 2048, 128), "rows_coopmat 32x128 codes"},
      }},
      {"Intel(R) Graphics (BMG G21)", {
        {linear(16, 4096, 4096), "rows_coopmat 32x64"},
        {linear(512, 4096, 4096), "rows_coopmat 64x128"},
        {experts(4096, 768, 2048, 128), "rows_coopmat 32x128 codes"},
      }},
      {"Apple M1", {
        {linear(1, 4096, 4096), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=1"},
        {linear(8, 4096, 4096), "qmv 4x8 OUTS=2 CHUNK=32 TURNS=1"},
        {linear(512, 4096, 4096), "qmm 64x128"},
      }},
      {"Turnip Adreno", {
        {linear(1, 4096, 4096), "qmv 1x16 OUTS=4 CHUNK=32 TURNS=1"},
        {linear(512, 4096, 4096), "qmm 64x128"},
      }},
      {"llvmpipe", {
        {linear(1, 512, 512), "qmv 1x128 OUTS=16 CHUNK=32 TURNS=1"},
        {linear(1, 64, 64), "qmv 1x64 OUTS=4 CHUNK=8 TURNS=1"},
        {linear(100, 512, 512), "qmm 64x128"},
        {linear(100, 64, 64), "qmm 32x64"},
      }},
      // clang-format on
  };
  for (auto& [device, kernels] : choices) {
    CAPTURE(device);
    for (auto& [shape, expected] : kernels) {
      CHECK(kernel(caps_of(device), shape) == expected);
    }
  }
}

TEST_CASE("quantized: less shared memory, and operands that lie otherwise") {
  // Fewer parts of k where shared memory is small.
  Caps small = big_gpu;
  auto parts = [&](uint32_t m, uint32_t n) {
    return variant<QmmSkinnyVariant>(small, linear(m, n, 4096)).WK;
  };
  uint32_t before = parts(16, 4096);
  small.shared_memory = 32768;
  CHECK(parts(16, 4096) < before);
  small.shared_memory = 16384;
  CHECK_FALSE(variant<QmmCoopmatVariant>(small, linear(16, 4096, 4096)).CODES);
  QuantShape s = linear(16, 4096, 4096);
  s.sides_aligned = false;
  CHECK(takes<QmmSkinnyVariant>(caps_of("NVIDIA H200"), s));
  s.aligned = false;
  CHECK(takes<QmmCoopmatVariant>(big_gpu, s));
  s.x_aligned = false;
  CHECK(takes<QmmVariant>(big_gpu, s));
  s = experts(32768, 768, 2048, 128);
  s.aligned = false;
  CHECK(variant<QmmCoopmatVariant>(big_gpu, s).BM == 128);
}

TEST_CASE("quantized: as users and tests ask") {
  auto taken = [&](int rows) {
    Target target = asked(big_gpu, {.skinny_rows = rows});
    return takes<QmmSkinnyVariant>(target, linear(16, 4096, 4096));
  };
  CHECK_FALSE(taken(0));
  CHECK(taken(16));
  CHECK_FALSE(taken(17));
  // Matrices that are emulated.
  auto emulated = [&](int rows) {
    Target target = asked(caps_of("llvmpipe"), {.skinny_rows = rows});
    auto plan = plan_quant(target, linear(16, 4096, 256));
    auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel);
    return v && v->EMULATED && !v->COOPMAT;
  };
  CHECK(emulated(5));
  CHECK_FALSE(emulated(-1));
  CHECK_FALSE(emulated(0));
  QuantShape s = linear(512, 4096, 4096);
  s.may_split = false;
  CHECK(plan_quant(caps_of("NVIDIA H200"), s).splits == 1);
}

TEST_CASE("quantized: a row by integer dot products where it was timed") {
  Caps caps = big_gpu;
  caps.integer_dot_product = caps.fast_dot_signed = true;
  auto by_dots = [&](auto change) {
    QuantShape s = linear(1, 4096, 2048);
    change(s);
    auto plan = plan_quant(caps, s);
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    return v && v->INT_DOT;
  };
  auto same = [](QuantShape&) {};
  CHECK(by_dots(same));
  CHECK_FALSE(by_dots([](QuantShape& s) { s.common.BITS = 8; }));
  CHECK_FALSE(by_dots([](QuantShape& s) { s.common.BATCH = BATCH_GATHER; }));
  CHECK_FALSE(by_dots([](QuantShape& s) { s.aligned = false; }));
  CHECK_FALSE(by_dots([](QuantShape& s) { s.m = 2; }));
  CHECK_FALSE(by_dots([](QuantShape& s) { s.k = 12288; }));
  caps.driver_id = VK_DRIVER_ID_MESA_NVK;
  CHECK_FALSE(by_dots(same));
  caps.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  caps.fast_dot_signed = false;
  CHECK_FALSE(by_dots(same));
}

TEST_CASE("quantized: workgroups are of the subgroups that run") {
  auto& arc = caps_of("Intel(R) Arc(tm) A770M");
  CHECK(policy_of(arc).lanes == 16);
  auto v = variant<QmvVariant>(arc, linear(1, 12288, 4096));
  CHECK(v.BLOCK == v.WG / 16 * v.OUTS);
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

TEST_CASE("quantized: x is rounded to bytes where the user asks for it") {
  Caps fast = gpu(60, false);
  fast.integer_dot_product = fast.fast_dot_signed = true;
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
  // A packed row is whole pieces of 16 bytes: 32 items are 32 bytes and two
  // floats.
  CHECK(packed_row_words(32) == 12);
  CHECK(packed_row_words(64) == 20);
  CHECK(packed_row_words(4096) == 1280);
}

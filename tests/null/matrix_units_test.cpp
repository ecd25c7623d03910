#include <doctest/doctest.h>

#include <vector>

#include "null/devices.h"
#include "ops/attention/plan.h"
#include "ops/conv/plan.h"
#include "ops/gemm/plan.h"
#include "ops/quant/plan.h"

using namespace mlx::core::vulkan;

namespace {

std::string chosen(const std::vector<MatrixShape>& listed) {
  auto choice = choose_matrix(listed);
  CHECK(choice.shape.has_value() == choice.why.empty());
  return choice.shape ? choice.shape->text() : choice.why;
}

// Of devices with whatever shape, as plans make them of each tile.
template <typename Variant>
void check_tile(const Variant& v, uint32_t bk) {
  const MatrixShape& s = v.units.shape;
  uint32_t invocations = v.WM * v.WN * v.units.lanes;
  std::string name = log_name(v.file, v.defines());
  CAPTURE(name);
  CHECK(v.BM % (v.WM * s.m) == 0);
  CHECK(v.BN % (v.WN * s.n) == 0);
  CHECK(bk % s.k == 0);
  // Loads of eight items are as many for all.
  CHECK(v.BM * bk / 8 % invocations == 0);
  // 512 only where narrow subgroups have as few sums in larger tiles.
  CHECK(invocations <= (v.units.lanes < 32 && v.BM * v.BN > 8192 ? 512 : 256));
  // Sums of a lane, where it has as few registers as on Intel.
  if (v.units.lanes < 32) {
    CHECK(v.BM * v.BN / invocations <= 32);
  }
}

GemmProblem linear(uint32_t m, uint32_t n, uint32_t k) {
  GemmProblem p;
  p.type = Type::f16;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {k, 1};
  p.b = {1, k};
  p.a_aligned = p.b_aligned = true;
  return p;
}

QuantShape quantized(uint32_t m, uint32_t n, uint32_t k) {
  auto format = quant_modes[0].format(4, 64);
  return {
      .common = {{Type::f16, format, true}, BATCH_ONE}, .m = m, .n = n, .k = k};
}

// A device that lists this shape alone, by the user's word or not.
Caps with_shape(const char* device, MatrixShape shape, bool asked = true) {
  Caps c = caps_of(device);
  c.cooperative_matrix = true;
  c.listed_f16 = c.listed_bf16 = {shape};
  choose_matrices(c, asked ? std::optional(shape) : std::nullopt);
  return c;
}

} // namespace

TEST_CASE("matrices: 16x16x16 where it is listed, else the largest that fits") {
  MatrixShape usual{};
  MatrixShape turing{16, 8, 8}, ampere{16, 8, 16};
  MatrixShape alchemist{8, 8, 16}, battlemage{8, 16, 16};
  CHECK(chosen({ampere, usual, turing}) == "16x16x16");
  CHECK(chosen({turing, ampere}) == "16x8x16");
  CHECK(chosen({turing}) == "16x8x8");
  CHECK(chosen({alchemist}) == "8x8x16");
  CHECK(chosen({alchemist, battlemage}) == "8x16x16");
  // As many products: the longer K, then N.
  CHECK(chosen({{16, 16, 8}, ampere, battlemage}) == "8x16x16");
  CHECK(chosen({{8, 8, 8}, {64, 64, 16}, {16, 16, 32}}) == "8x8x8");
}

TEST_CASE("matrices: why there are none is a sentence") {
  CHECK(chosen({}) == "the device lists none with float32 sums for a subgroup");
  CHECK(
      chosen({{32, 32, 16}, {4, 4, 4}}) ==
      "of 32x32x16, 4x4x4 none has sides of 8 or 16");
}

TEST_CASE("matrices: shapes are parsed whole or not at all") {
  CHECK(parse_matrix_shape("8x16x16") == MatrixShape{8, 16, 16});
  for (auto* text :
       {"",
        "8",
        "8x16",
        "8x16x",
        "8x16x16x",
        "ax8x8",
        "8x-8x8",
        "0x8x8",
        "8 x 8 x 8",
        "99999999999x8x8"}) {
    CHECK_FALSE(parse_matrix_shape(text));
  }
}

TEST_CASE("matrices: subgroups are as wide as the shape is used in") {
  CHECK(caps_of("NVIDIA H200").matrices(Type::bf16).lanes == 32);
  CHECK(caps_of("DG2 with").matrices(Type::f16).lanes == 8);
  CHECK(caps_of("Intel(R) Graphics (BMG").matrices(Type::bf16).lanes == 16);
  CHECK(with_shape("NVIDIA H200", {16, 8, 8}).matrices(Type::f16).lanes == 32);
  Caps c = caps_of("DG2 with");
  CHECK_FALSE(c.usual_matrices(Type::f16));
  c.required_subgroup_size = false;
  CHECK_FALSE(c.coopmat(Type::f16));
}

TEST_CASE("matrices: those of Alchemist are taken where they are asked for") {
  const char* arc = "Intel(R) Arc(tm) A770M";
  CHECK(with_shape(arc, {8, 8, 16}).matrices(Type::bf16).lanes == 8);
  Caps c = with_shape(arc, {8, 8, 16}, false);
  CHECK_FALSE(c.coopmat_f16);
  CHECK_FALSE(c.coopmat_bf16);
  c = with_shape("Intel(R) Graphics (BMG", {8, 16, 16}, false);
  CHECK(c.coopmat_bf16);
}

TEST_CASE("matrices: one shape alone can be asked for") {
  Caps c = caps_of("NVIDIA H200");
  c.listed_f16 = {{16, 16, 16}, {16, 8, 16}};
  c.listed_bf16 = {{16, 16, 16}};
  choose_matrices(c);
  CHECK(c.known_fragments);
  choose_matrices(c, MatrixShape{16, 8, 16});
  CHECK(c.shape_f16 == MatrixShape{16, 8, 16});
  CHECK(c.coopmat(Type::f16));
  CHECK_FALSE(c.coopmat(Type::bf16));
  // No kernel takes a layout for granted that nobody has looked at.
  CHECK_FALSE(c.known_fragments);
}

TEST_CASE("matrices: every shape divides the tiles of every plan") {
  std::vector<Caps> devices;
  for (auto* name :
       {"DG2 with",
        "Intel(R) Graphics (BMG",
        "Intel(R) Graphics (LNL",
        "AMD Radeon Graphics (RADV NAVI31",
        "NVK"}) {
    devices.push_back(caps_of(name));
    devices.back().known_fragments = false; // whose kernels have one shape
  }
  for (MatrixShape s :
       {MatrixShape{16, 8, 16}, {16, 8, 8}, {8, 8, 8}, {8, 8, 16}}) {
    devices.push_back(with_shape("NVIDIA H200", s));
    devices.push_back(with_shape("DG2 with", s));
  }
  for (auto& caps : devices) {
    CAPTURE(caps.name);
    if (!caps.coopmat(Type::f16)) {
      continue;
    }
    for (uint32_t m : {20, 70, 512, 4096}) {
      auto dense = plan_gemm(caps, linear(m, 4096, 4100));
      check_tile(std::get<CoopmatVariant>(dense.variant), 32);
      auto plan = plan_quant(caps, quantized(m, 4096, 4112));
      check_tile(std::get<QmmCoopmatVariant>(plan.kernel), 32);
      // Not of whole steps, which known fragments take.
      ConvProblem conv{.type = Type::f16, .rows = m * 16, .channels = 72};
      conv.group_outputs = m;
      conv.x_items = conv.w_items = conv.y_items = 8;
      auto v = std::get<ConvMatrixVariant>(plan_conv(caps, conv)->variant);
      check_tile(v, v.BK);
      CHECK(v.shared_memory() <= caps.shared_memory);
      auto experts = linear(8 * m, 2048, 2048);
      experts.batch = BATCH_SORTED;
      auto of_experts = plan_sorted_gemm(caps, experts, 8);
      check_tile(std::get<CoopmatVariant>(of_experts->variant), 32);
      QuantShape s = quantized(1, 2048, 2048);
      s.common.BATCH = BATCH_GATHER;
      s.sorted = true;
      s.batch = 8 * m;
      s.matrices = 8;
      auto sorted = plan_quant(caps, s);
      auto& q = std::get<QmmCoopmatVariant>(sorted.kernel);
      check_tile(q, q.BK);
      CHECK(q.shared_memory() <= caps.shared_memory);
    }
  }
}

TEST_CASE("matrices: attention takes them in subgroups of 16 and 32") {
  AttentionProblem p{.type = Type::f16, .heads = 8, .kv_heads = 8};
  p.queries = p.keys = 512;
  p.dim = p.value_dim = 64;
  p.alignment = 16;
  auto& wide = caps_of("AMD Radeon Graphics (RADV NAVI31");
  auto plan = plan_prefill(wide, p);
  CHECK(
      std::get<PrefillCoopmatVariant>(plan.kernel).units ==
      wide.matrices(Type::f16));
  auto& narrow = caps_of("Intel(R) Graphics (BMG");
  plan = plan_prefill(narrow, p);
  CHECK(
      std::get<PrefillNarrowVariant>(plan.kernel).units ==
      narrow.matrices(Type::f16));
  p.dim = 48;
  CHECK(std::holds_alternative<PrefillCoopmatVariant>(
      plan_prefill(narrow, p).kernel));
  auto alchemist = plan_prefill(caps_of("Intel(R) Arc"), p);
  CHECK_FALSE(alchemist.coopmat());
  CHECK(std::string_view(alchemist.why).find("16 or 32") != std::string::npos);
  p.dim = p.value_dim = 128;
  CHECK(plan_prefill(caps_of("AMD Radeon Graphics (RADV NAVI31"), p).coopmat());
  auto battlemage = plan_prefill(caps_of("Intel(R) Graphics (BMG"), p);
  CHECK(std::holds_alternative<PrefillNarrowVariant>(battlemage.kernel));
  p.dim = p.value_dim = 80;
  battlemage = plan_prefill(caps_of("Intel(R) Graphics (BMG"), p);
  CHECK_FALSE(battlemage.coopmat());
  CHECK(std::string_view(battlemage.why).find("64 items") != std::string::npos);
}

TEST_CASE("matrices: of f16 for bf16 where both operands lie along k") {
  Caps c = caps_of("AMD Radeon Graphics (RADV NAVI31");
  REQUIRE_FALSE(c.coopmat(Type::bf16));
  GemmProblem p = linear(512, 4096, 4096);
  p.type = Type::bf16;
  auto units = std::get<CoopmatVariant>(plan_gemm(c, p).variant).units;
  CHECK(units.halves);
  CHECK(units.lanes == 32);
  QuantShape q = quantized(512, 4096, 4096);
  q.common = {{Type::bf16, quant_modes[1].format(4, 32), false}, BATCH_ONE};
  CHECK(dequantizes_first(c, q));
  q.m = 100;
  CHECK_FALSE(dequantizes_first(c, q));

  auto scalar = [](const Caps& caps, const GemmProblem& problem) {
    return std::holds_alternative<TileVariant>(
        plan_gemm(caps, problem).variant);
  };
  GemmProblem rows = p;
  rows.b = {4096, 1};
  CHECK(scalar(c, rows));
  GemmProblem columns = p;
  columns.a = {1, 512};
  CHECK(scalar(c, columns));
  GemmProblem single = p;
  single.type = Type::f32;
  CHECK(scalar(c, single));
  // Switched off, or found not to keep subnormal items.
  c.half_items = false;
  CHECK(scalar(c, p));
  CHECK_FALSE(dequantizes_first(
      asked(c, {.dequantize_rows = 0}), quantized(512, 4096, 4096)));

  Caps both = caps_of("NVIDIA H200");
  both.known_fragments = false; // else gemm_fragments takes it, of bf16 alone
  units = std::get<CoopmatVariant>(plan_gemm(both, p).variant).units;
  CHECK_FALSE(units.halves);
  CHECK_FALSE(both.half_matrices(Type::bf16).lanes);
}

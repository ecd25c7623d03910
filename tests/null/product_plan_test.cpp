#include <array>

#include <doctest/doctest.h>

#include "null/devices.h"
#include "ops/attention/plan.h"
#include "ops/gemm/plan.h"

using namespace mlx::core::vulkan;

namespace {

Caps big_gpu() {
  Caps c;
  c.vendor_id = 0x10de;
  c.core_count = 132;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 32;
  c.cooperative_matrix = c.coopmat_f16 = c.coopmat_bf16 = true;
  return c;
}

template <typename Variant>
bool takes(const GemmPlan& plan) {
  return std::holds_alternative<Variant>(plan.variant);
}

// Row-major a and b.
GemmProblem product(uint32_t m, uint32_t n, uint32_t k, Type t = Type::f32) {
  GemmProblem p;
  p.type = t;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {k, 1};
  p.b = {n, 1};
  p.a_aligned = p.b_aligned = true;
  return p;
}

// b as the transpose of a row-major matrix, as in a linear layer.
GemmProblem linear(uint32_t m, uint32_t n, uint32_t k, Type t = Type::bf16) {
  GemmProblem p = product(m, n, k, t);
  p.b = {1, k};
  return p;
}

} // namespace

TEST_CASE("thin products take the matvec that fits the unit stride") {
  GemmPlan plan = plan_gemm(big_gpu(), linear(1, 4096, 4096));
  auto dot = std::get<DotVariant>(plan.variant);
  CHECK(plan.transposed);
  CHECK(plan.problem.m == 4096);
  CHECK(plan.problem.n == 1);
  CHECK(dot.VA);
  CHECK(dot.VB);
  CHECK(plan.splits == 1);

  GemmPlan axpy = plan_gemm(big_gpu(), product(1, 4096, 4096));
  CHECK(takes<AxpyVariant>(axpy));
  CHECK(axpy.splits > 1); // 64 workgroups of rows for 132 cores

  GemmPlan column = plan_gemm(big_gpu(), product(4096, 3, 4096));
  CHECK(takes<DotVariant>(column));
  CHECK(!column.transposed);
  dot = std::get<DotVariant>(column.variant);
  CHECK(dot.NV == 4);
  CHECK(!dot.VB); // the vectors are columns

  CHECK(takes<TileVariant>(plan_gemm(big_gpu(), product(9, 9, 64))));
  CHECK(
      takes<TileVariant>(plan_gemm(big_gpu(), product(1, 64, 64, Type::c64))));
}

TEST_CASE("vector loads need alignment and whole rows") {
  auto vectors = [](const GemmProblem& p) {
    return std::get<DotVariant>(plan_gemm(big_gpu(), p).variant).VA;
  };
  GemmProblem p = linear(1, 100, 4096);
  p.b_aligned = false;
  CHECK_FALSE(vectors(p));
  CHECK_FALSE(vectors(linear(1, 100, 4097)));
  GemmPlan plan = plan_gemm(big_gpu(), product(200, 202, 63));
  auto tile = std::get<TileVariant>(plan.variant);
  CHECK_FALSE(tile.VA);
  CHECK_FALSE(tile.VB);
}

TEST_CASE("tiles: matrix units where they work, small tiles for small work") {
  auto matrix_units = [](const GemmProblem& p) {
    return std::get<CoopmatVariant>(plan_gemm(big_gpu(), p).variant);
  };
  auto large = matrix_units(linear(4096, 4096, 4096));
  CHECK(large.BM == 128);
  CHECK(large.B_T);
  CHECK(large.VA);
  CHECK(matrix_units(product(16, 4096, 4096, Type::bf16)).BM == 32);
  // Large tiles by parts of k, two workgroups per core, where k is long enough.
  auto split = [&](uint32_t m, uint32_t n, uint32_t k) {
    GemmPlan plan = plan_gemm(big_gpu(), linear(m, n, k));
    auto& v = std::get<CoopmatVariant>(plan.variant);
    CHECK(v.SPLIT == (plan.splits > 1));
    CHECK(uint64_t(plan.splits) * plan.k_split >= k);
    return v.BM == 128 ? plan.splits : 0;
  };
  CHECK(split(512, 4096, 4096) == 2);
  CHECK(split(256, 4096, 12288) == 4);
  CHECK(split(70, 4096, 4096) == 8);
  CHECK(split(512, 1024, 3072) == 8);
  CHECK(split(512, 12288, 4096) == 1);
  CHECK(split(512, 1024, 1024) == 0);
  CHECK(split(64, 4096, 4100) == 0);
  GemmProblem whole = linear(512, 4096, 4096);
  whole.may_split = false;
  CHECK(plan_gemm(big_gpu(), whole).splits == 1);

  Caps plain = big_gpu();
  plain.coopmat_bf16 = false;
  CHECK(takes<TileVariant>(plan_gemm(plain, linear(512, 512, 512))));
}

TEST_CASE("tiles that were not timed have the least rounds") {
  Caps gpu = caps_of("AMD Radeon Graphics (RADV GFX1201)"); // 64 cores
  auto plan = [&](uint32_t m, uint32_t n, uint32_t k, bool split = true) {
    GemmProblem p = linear(m, n, k);
    p.may_split = split;
    GemmPlan plan = plan_gemm(gpu, p);
    auto& v = std::get<CoopmatVariant>(plan.variant);
    CHECK(v.SPLIT == (plan.splits > 1));
    CHECK(uint64_t(plan.splits) * plan.k_split >= k);
    CHECK((plan.splits == 1 || plan.k_split >= 384));
    return std::pair(v.BM, plan.splits);
  };
  CHECK(plan(2048, 4096, 4096) == std::pair(128u, 1u));
  // 96 large tiles on 64 cores leave half of the second round.
  CHECK(plan(128, 12288, 4096) == std::pair(128u, 2u));
  CHECK(plan(384, 4096, 4096) == std::pair(128u, 2u));
  CHECK(plan(192, 1024, 4096) == std::pair(64u, 4u));
  CHECK(plan(192, 1024, 4096, false).second == 1);
  CHECK(plan(512, 512, 16).second == 1);
}

TEST_CASE("products on f16 matrices are expected to be computed twice") {
  auto flops = [](const char* device, Type t) {
    return plan_gemm(caps_of(device), linear(512, 4096, 4096, t)).flops();
  };
  double products = 2.0 * 512 * 4096 * 4096;
  const char* navi = "AMD Radeon Graphics (RADV NAVI31)";
  CHECK(flops(navi, Type::f16) == products);
  CHECK(flops(navi, Type::bf16) == 20 * products);
  CHECK(flops("AMD Radeon RX 6800", Type::bf16) == products);
  CHECK(flops("NVIDIA H200", Type::bf16) == products);
}

TEST_CASE("tiles without matrix units: whole loads, 16 KiB of shared memory") {
  Caps gpu = big_gpu();
  gpu.cooperative_matrix = gpu.coopmat_f16 = gpu.coopmat_bf16 = false;
  gpu.shared_memory = 49152;
  for (uint32_t registers : {128, 255}) {
    for (Type t : {Type::f32, Type::f16, Type::bf16, Type::c64, Type::f64}) {
      for (uint32_t side : {16, 64, 512, 1000, 1024, 2048, 4096}) {
        CAPTURE(side);
        Target target(gpu);
        target.policy.registers = registers;
        GemmPlan plan = plan_gemm(target, product(side, side, side, t));
        auto v = std::get<TileVariant>(plan.variant);
        bool few = registers == 128;
        CHECK((v.TM == 16) == (v.BM == 128 && !few && size_of(t) != 8));
        CHECK((v.BM == 128) == (side >= 2048 && (size_of(t) != 8 || !few)));
        CHECK((v.shared_memory() <= 16384 || size_of(t) == 8));
        CHECK(v.VA);
        Caps least = gpu;
        least.shared_memory = 16384;
        Target little(least, target.policy);
        plan = plan_gemm(little, product(side, side, side, t));
        CHECK(std::get<TileVariant>(plan.variant).shared_memory() <= 16384);
        // The kernel deals out pieces of 16 bytes, at constant steps.
        uint32_t piece = size_of(t) == 8 ? 2 : 4;
        uint32_t pieces = v.BM / v.TM * (v.BN / v.TN) * piece;
        CHECK(v.BM * v.BK % pieces == 0);
        CHECK(v.BN * v.BK % pieces == 0);
        CHECK(pieces % v.BM == 0);
        CHECK(pieces % v.BN == 0);
        CHECK(pieces % v.BK == 0);
        CHECK(plan.k_split % v.BK == 0);
      }
    }
  }
}

TEST_CASE("large tiles are loaded by lanes where fragments are known") {
  Caps gpu = big_gpu();
  gpu.known_fragments = true;
  gpu.shared_memory = 49152;
  auto fragments = [&](const GemmProblem& p) {
    return takes<FragmentsVariant>(plan_gemm(gpu, p));
  };
  for (auto [m, n, k] :
       {std::array{4096, 4096, 4096}, {512, 4096, 12288}, {200, 4096, 4096}}) {
    GemmPlan plan = plan_gemm(gpu, linear(m, n, k));
    auto& v = std::get<FragmentsVariant>(plan.variant);
    CHECK(v.BF16_EXT);
    CHECK_FALSE(v.EMULATED);
    CHECK(v.SPLIT == (plan.splits > 1));
    CHECK(plan.k_split % v.depth == 0);
    CHECK(uint64_t(plan.tiles_m) * v.BM >= plan.problem.m);
    CHECK(uint64_t(plan.tiles_n) * v.BN >= plan.problem.n);
    CHECK(v.shared_memory() <= gpu.shared_memory);
    CHECK((v.BN == 128 || v.BN == 256));
    CHECK(v.WN == 4);
  }
  // Columns of a; rows of both, as the transpose of y; not rows of b alone.
  GemmProblem other = linear(4096, 512, 4096);
  other.a = {1, 4096};
  auto plan = plan_gemm(gpu, other);
  CHECK(std::get<FragmentsVariant>(plan.variant).A_T);
  CHECK_FALSE(std::get<FragmentsVariant>(plan.variant).Y_T);
  CHECK_FALSE(plan.transposed);
  other.b = {512, 1};
  CHECK_FALSE(fragments(other));
  plan = plan_gemm(gpu, product(1001, 4096, 4096, Type::bf16));
  CHECK(std::get<FragmentsVariant>(plan.variant).A_T);
  CHECK(std::get<FragmentsVariant>(plan.variant).Y_T);
  CHECK(plan.transposed);
  CHECK(plan.problem.m == 4096);
  CHECK(plan.problem.n == 1001);
  // Whole tiles, steps and pieces.
  CHECK_FALSE(fragments(linear(4096, 100, 12288)));
  CHECK_FALSE(fragments(linear(4096, 4100, 4096)));
  CHECK_FALSE(fragments(linear(4096, 4096, 4112)));
  CHECK_FALSE(fragments(product(4096, 4100, 4096, Type::bf16)));
  CHECK_FALSE(fragments(linear(4096, 4096, 4096, Type::f32)));
  GemmProblem p = linear(4096, 4096, 4096);
  p.a_aligned = false;
  CHECK_FALSE(fragments(p));
  gpu.shared_memory = 8192;
  CHECK_FALSE(fragments(linear(4096, 4096, 4096)));
  gpu.shared_memory = 49152;
  gpu.known_fragments = false;
  CHECK_FALSE(fragments(linear(4096, 4096, 4096)));

  // A test's request on software devices.
  p = linear(64, 64, 64);
  CHECK(takes<TileVariant>(plan_gemm(caps_of("llvmpipe"), p)));
  plan = plan_gemm(asked(caps_of("llvmpipe"), {.skinny_rows = 5}), p);
  CHECK(std::get<FragmentsVariant>(plan.variant).EMULATED);
}

// The fastest forms on an H200 (docs/lab/2026-11-27-rounds.md).
TEST_CASE("tiles loaded by lanes leave few cores without work") {
  auto form = [](uint32_t m, uint32_t n, uint32_t k) {
    GemmPlan plan = plan_gemm(caps_of("NVIDIA H200"), linear(m, n, k));
    auto& v = std::get<FragmentsVariant>(plan.variant);
    return std::pair(v.BN, plan.splits);
  };
  CHECK(form(4096, 4096, 4096) == std::pair(256u, 1u));
  CHECK(form(1024, 1024, 1024) == std::pair(128u, 1u));
  CHECK(form(1024, 3072, 3072) == std::pair(128u, 1u));
  CHECK(form(512, 4096, 4096).second == 2);
  // A second product of the same rows is expected to fill the last round.
  CHECK(form(512, 3072, 1024) == std::pair(128u, 1u));
  CHECK(form(512, 12288, 4096) == std::pair(256u, 1u));
}

TEST_CASE("up to 64 rows of a linear layer read its weights once") {
  Caps gpu = big_gpu();
  gpu.shared_memory = 49152;
  gpu.max_workgroup_size = 1024;
  for (uint32_t m : {9, 16, 17, 32, 33, 64}) {
    for (uint32_t n : {1, 128, 4096, 151936}) {
      CAPTURE(m);
      CAPTURE(n);
      GemmPlan plan = plan_gemm(gpu, linear(m, n, 4096));
      if (n == 1) { // a column times a matrix
        CHECK(takes<DotVariant>(plan));
        continue;
      }
      auto v = std::get<SkinnyVariant>(plan.variant);
      CHECK(plan.tiles_m == 1);
      CHECK(uint64_t(plan.tiles_n) * v.outputs() >= n);
      CHECK(v.shared_memory() <= gpu.shared_memory);
      CHECK((plan.splits > 1) == (2 * plan.tiles_n <= gpu.core_count));
      // The kernel deals out whole loads.
      CHECK(v.FM * 128 % (2 * v.WN * v.SG) == 0);
      CHECK(v.FN * 128 % (2 * v.SG) == 0);
    }
  }
  CHECK(takes<CoopmatVariant>(plan_gemm(gpu, linear(65, 4096, 4096))));
  CHECK(takes<CoopmatVariant>(plan_gemm(gpu, linear(16, 4096, 4100))));
  CHECK(takes<TileVariant>(plan_gemm(gpu, linear(16, 4096, 4096, Type::f32))));
  GemmProblem p = linear(16, 4096, 4096);
  p.b_aligned = false;
  CHECK(takes<CoopmatVariant>(plan_gemm(gpu, p)));
  p = linear(16, 4096, 4096);
  CHECK(takes<CoopmatVariant>(plan_gemm(asked(gpu, {.skinny_rows = 0}), p)));
}

TEST_CASE("llvmpipe: no invocation loops 65,535 times") {
  Caps software;
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  GemmPlan tile = plan_gemm(software, product(64, 64, 100000));
  CHECK(tile.splits == 13);
  CHECK(tile.splits * tile.k_split >= 100000);
  CHECK(plan_gemm(software, product(64, 64, 8192)).splits == 1);

  Caps attention = caps_of("llvmpipe");
  AttentionProblem p;
  p.queries = 512;
  p.keys = 36864;
  p.alignment = 16;
  CHECK_FALSE(uses_decode(attention, p));
  p.dim = p.value_dim = 512;
  CHECK(uses_decode(attention, p));
  p.keys = 1 << 20;
  DecodePlan plan = plan_decode(attention, p);
  CHECK(plan.splits * uint64_t(plan.split_keys) >= p.keys);
  CHECK(plan.split_keys * plan.kernel.TPK / plan.kernel.WG < 60000);
  CHECK_FALSE(uses_decode(caps_of("NVIDIA H200"), p));
}

TEST_CASE("attention's backward pass holds a bounded number of scores") {
  AttentionProblem p;
  p.batches = 3;
  p.heads = 8;
  p.kv_heads = 4;
  p.queries = 100;
  p.keys = 201;
  for (uint64_t most : {100, 3000, 50000, 100000, 200000, 1000000}) {
    VjpPlan plan = plan_vjp(p, most);
    CHECK(plan.queries >= 1);
    CHECK(plan.keys >= 1);
    CHECK((plan.batches == 1 || plan.kv_heads == p.kv_heads));
    if (most >= 3000) {
      CHECK(vjp_room(p, plan) <= most);
    }
    CHECK(plan.blocked == (most < 2 * 100 * 208));
  }
  CHECK(plan_vjp(p, 1000000).batches == 3);
  CHECK(plan_vjp(p, 200000).kv_heads == 4);
}

TEST_CASE("a long k is split only where workgroups are few") {
  GemmProblem p = product(64, 64, 100000);
  GemmPlan plan = plan_gemm(big_gpu(), p);
  CHECK(plan.splits > 1);
  CHECK(uint64_t(plan.splits) * plan.k_split >= p.k);
  CHECK(uint64_t(plan.splits - 1) * plan.k_split < p.k);
  CHECK(plan_gemm(big_gpu(), product(8192, 8192, 8192)).splits == 1);
}

TEST_CASE("64-bit offsets where a matrix reaches past 2^31 items") {
  CHECK_FALSE(plan_gemm(big_gpu(), product(1 << 15, 64, 1 << 15)).large);
  CHECK(plan_gemm(big_gpu(), product(1 << 16, 64, 1 << 16)).large);
}

TEST_CASE("empty sums and single items have a plan") {
  for (GemmProblem p : {product(5, 4, 0), product(1, 1, 1), product(1, 1, 0)}) {
    GemmPlan plan = plan_gemm(big_gpu(), p);
    CHECK(plan.groups() >= 1);
    CHECK(plan.k_split >= 1);
  }
}

AttentionProblem decode_problem(uint32_t keys, uint32_t dim = 128) {
  AttentionProblem p;
  p.type = Type::bf16;
  p.alignment = 16;
  p.heads = 32;
  p.kv_heads = 8;
  p.dim = p.value_dim = dim;
  p.keys = keys;
  return p;
}

TEST_CASE("decode attention splits long keys until the device is busy") {
  Caps gpu = caps_of("NVIDIA H200");
  for (uint32_t keys : {257, 512, 4096, 4097, 131072}) {
    CAPTURE(keys);
    AttentionProblem p = decode_problem(keys);
    DecodePlan plan = plan_decode(gpu, p);
    CHECK(plan.kernel.PARTS);
    CHECK(plan.splits > 1);
    CHECK(uint64_t(plan.splits) * plan.split_keys >= keys);
    CHECK(uint64_t(plan.splits - 1) * plan.split_keys < keys);
    CHECK(!plan_decode(gpu, p, false).kernel.PARTS);
  }
  AttentionProblem p = decode_problem(4096);
  p.batches = 64;
  CHECK(plan_decode(gpu, p).splits == 1);
  p.batches = 1;
  p.heads = p.kv_heads = 96;
  CHECK(plan_decode(gpu, p).splits > 1);
  Caps narrow = caps_of("llvmpipe");
  narrow.min_subgroup_size = 4;
  CHECK(plan_decode(narrow, p).kernel.TPK == 4);
}

TEST_CASE("few keys of few heads have a workgroup per row") {
  Caps gpu = caps_of("NVIDIA H200");
  AttentionProblem p = decode_problem(100);
  DecodePlan plan = plan_decode(gpu, p);
  CHECK(plan.splits == 1);
  CHECK(plan.kernel.ROWS == 1);
  CHECK(plan.groups(p) == 32);
  p.batches = 64;
  CHECK(plan_decode(gpu, p).kernel.ROWS == 4);
}

TEST_CASE("decode attention holds what registers hold") {
  struct {
    const char* device;
    uint32_t dim, rows, unroll, lanes;
  } cases[] = {
      {"AMD Radeon RX 6800", 64, 4, 4, 8},
      {"AMD Radeon RX 6800", 128, 4, 4, 16},
      {"AMD Radeon RX 6800", 256, 4, 4, 32},
      {"AMD Radeon RX 6800", 512, 2, 2, 32},
      {"NVIDIA H200", 64, 4, 4, 8},
      {"NVIDIA H200", 128, 4, 4, 16},
      {"NVIDIA H200", 256, 4, 4, 32},
      {"NVIDIA H200", 512, 4, 4, 32},
      {"Apple M1", 64, 2, 4, 8},
      {"Apple M1", 128, 2, 4, 16},
      {"Intel(R) Arc(tm) A770M", 128, 2, 1, 8},
      {"Intel(R) Arc(tm) A770M", 256, 1, 1, 8},
      {"Turnip Adreno (TM) 740", 128, 4, 2, 16}};
  for (auto& x : cases) {
    CAPTURE(x.device);
    AttentionProblem p = decode_problem(32768, x.dim);
    p.kv_heads = 4;
    CAPTURE(x.dim);
    DecodeVariant kernel = plan_decode(caps_of(x.device), p).kernel;
    CHECK(kernel.ROWS == x.rows);
    CHECK(kernel.KU == x.unroll);
    CHECK(kernel.TPK == x.lanes);
    CHECK(kernel.ROWS <= kernel.TPK);
    CHECK_FALSE(kernel.PIECES);
  }
  // Single items of wide rows in subgroups of 8: k and v are not held whole.
  AttentionProblem p = decode_problem(4096);
  p.alignment = 2;
  p.dim = 256;
  p.value_dim = 512;
  auto wide = [&](const char* device) {
    return plan_decode(caps_of(device), p).kernel;
  };
  CHECK(wide("Intel(R) Arc(tm) A770M").PIECES);
  CHECK(wide("Intel(R) Arc(tm) A770M").TPK == 8);
  CHECK(wide("Intel(R) Arc(tm) A770M").ROWS == 1);
  CHECK_FALSE(wide("NVIDIA H200").PIECES);
  CHECK(wide("llvmpipe").PIECES);
}

TEST_CASE("sums of decode attention fit shared memory") {
  for (auto& caps : device_table()) {
    for (uint32_t dim : {64u, 128u, 256u, 512u}) {
      for (uint32_t keys : {64u, 4096u}) {
        CAPTURE(caps.name);
        CAPTURE(dim);
        auto k = plan_decode(caps, decode_problem(keys, dim)).kernel;
        uint32_t sums = k.SLOTS * k.ROWS * k.DV * 9 / 2;
        uint32_t rest = 8 * k.ROWS * k.WG / k.TPK + 4;
        uint32_t queries = k.SHARED_Q ? 4 * k.ROWS * k.D : 0;
        CHECK(sums + rest + queries <= caps.shared_memory);
      }
    }
  }
}

TEST_CASE("prefill attention takes matrix units for aligned half types") {
  Caps gpu = caps_of("AMD Radeon Graphics (RADV NAVI31)");
  AttentionProblem p;
  p.type = Type::f16;
  p.queries = p.keys = 512;
  p.dim = p.value_dim = 128;
  p.alignment = 16;
  CHECK(plan_prefill(gpu, p).coopmat());
  p.value_dim = 256;
  CHECK_FALSE(plan_prefill(gpu, p).coopmat());
  p.value_dim = 512;
  CHECK(plan_prefill(gpu, p).bq == 16);
}

TEST_CASE("prefill attention keeps scores in registers where it knows them") {
  Caps gpu = caps_of("NVIDIA H200");
  CHECK(gpu.known_fragments);
  AttentionProblem p;
  p.queries = p.keys = 512;
  p.alignment = 16;
  for (Type type : {Type::f16, Type::bf16}) {
    for (uint32_t dim = 16; dim <= 512; dim += 16) {
      p.type = type;
      p.dim = p.value_dim = dim;
      auto plan = plan_prefill(gpu, p);
      auto* v = std::get_if<PrefillFragmentsVariant>(&plan.kernel);
      CHECK(bool(v) == (dim <= 128));
      if (v) {
        CHECK(plan.bq == v->queries());
        CHECK(v->shared_memory() <= gpu.shared_memory);
      }
    }
  }
  p.dim = p.value_dim = 128;
  p.alignment = 8;
  CHECK_FALSE(plan_prefill(gpu, p).coopmat());
  p.alignment = 16;
  p.dim = 72;
  CHECK_FALSE(plan_prefill(gpu, p).coopmat());
  p.dim = 128;
  p.type = Type::f32;
  CHECK_FALSE(plan_prefill(gpu, p).coopmat());
  // A layout that the probe does not find: by way of shared memory.
  p.type = Type::bf16;
  gpu.known_fragments = false;
  CHECK(std::holds_alternative<PrefillCoopmatVariant>(
      plan_prefill(gpu, p).kernel));
}

TEST_CASE(
    "attention's backward pass keeps scores in registers as prefill does") {
  Caps gpu = caps_of("NVIDIA H200");
  AttentionProblem p;
  p.queries = p.keys = 512;
  p.alignment = 16;
  for (Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (uint32_t dim = 16; dim <= 256; dim += 16) {
      p.type = type;
      p.dim = p.value_dim = dim;
      for (uint32_t shared : {32u << 10, 48u << 10}) {
        gpu.shared_memory = shared;
        auto plan = plan_gradients(gpu, p);
        CHECK(bool(plan) == (dim <= 128 && type != Type::f32));
        CHECK(bool(plan) == !*no_gradients(gpu, p));
        if (plan) {
          auto& k = plan->keys;
          auto& q = plan->queries;
          CHECK(k.shared_memory() <= shared);
          CHECK(q.shared_memory() <= shared);
          // Whole matrices, pairs of subgroups, and lanes for a step's lse and
          // delta.
          CHECK(k.BQ % 16 == 0);
          CHECK(q.BK % 16 == 0);
          CHECK(k.SUBGROUPS % 2 == 0);
          CHECK(2 * k.BQ <= 32 * k.SUBGROUPS);
        }
      }
    }
  }
  p.type = Type::bf16;
  p.dim = 128;
  p.value_dim = 64;
  CHECK_FALSE(plan_gradients(gpu, p));
  p.value_dim = 128;
  p.alignment = 8;
  CHECK_FALSE(plan_gradients(gpu, p));
  p.alignment = 16;
  gpu.known_fragments = false;
  CHECK_FALSE(plan_gradients(gpu, p));

  Caps software = caps_of("llvmpipe");
  p.dim = p.value_dim = 32;
  CHECK_FALSE(plan_gradients(software, p));
  auto plan = plan_gradients(asked(software, {.emulate = true}), p);
  REQUIRE(plan);
  CHECK(plan->keys.EMULATED);
}

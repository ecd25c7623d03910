#include "kernels/gemm/block_mm.h"
#include "kernels/gemm/splitk_sum.h"
#include "ops/gemm/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

struct Shape {
  uint32_t m, n, k;
};

// Row-major a and b.
GemmProblem product(Type t, const Shape& s) {
  GemmProblem p;
  p.type = t;
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a = {s.k, 1};
  p.b = {s.n, 1};
  p.c = {s.n, 1};
  p.a_aligned = p.b_aligned = true;
  return p;
}

// b as the transpose of a row-major matrix, as in a linear layer.
GemmProblem linear(Type t, const Shape& s) {
  GemmProblem p = product(t, s);
  p.b = {1, s.k};
  return p;
}

// Rows of a prompt or a batch times the layers of models: hidden size to
// attention, to the feed-forward part, and back.
constexpr Shape layers[] = {
    {1, 2048, 1024},
    {1, 1024, 3072},
    {1, 4096, 4096},
    {1, 151936, 1024},
    {4, 12288, 4096},
    {16, 4096, 12288},
    {64, 1024, 1024},
    {512, 1024, 4096},
    {4096, 4096, 4096}};

constexpr Shape samples[] = {{8, 64, 512}, {70, 7, 512}, {40, 36, 260}};

void add(VariantSet& set, const Caps& caps, const GemmProblem& p) {
  std::visit([&](const auto& v) { set.add(v); }, plan_gemm(caps, p).variant);
}

// Layouts, batches and operands that layers of models do not have.
void add_other_products(VariantSet& set, const Caps& caps, GemmProblem p) {
  add(set, caps, p);
  p.batch = BATCH_GATHER;
  add(set, caps, p);
  p.batch = BATCH_NEST;
  p.axpby = true;
  add(set, caps, p);
  p.batch = BATCH_EVEN;
  p.c = {int64_t(1) << 32, 1};
  p.a_aligned = p.b_aligned = false;
  add(set, caps, p);
  p.c = {p.n, 1};
  p.a = {1, p.m};
  add(set, caps, p);
}

void add_block_products(VariantSet& set) {
  for (uint32_t tile : {32, 64}) {
    for (uint32_t masks : {0, 1, 2}) {
      for (uint32_t out : {1, 2}) {
        set.add(BlockMmVariant{
            .T = Type::f32,
            .TILE = tile,
            .OPERAND_MASKS = masks,
            .OUT_MASK = out});
      }
    }
  }
  for (Type t : float_types) {
    set.add(BlockMmVariant{.T = t, .TILE = 32, .OPERAND_MASKS = 1});
    set.add(BlockMmVariant{.T = t, .TILE = 64, .SEGMENTED = true});
  }
  set.add(BlockMmVariant{
      .T = Type::f32,
      .TILE = 32,
      .OPERAND_MASKS = 1,
      .OUT_MASK = 1,
      .LARGE = true});
}

// Where lanes load fragments themselves: batches, a sum, long strides, and as
// tests have it on software devices.
void add_fragments(VariantSet& set, const Caps& caps) {
  bool software = caps.software();
  Target target = asked(caps, {.skinny_rows = software ? 5 : -1});
  auto add_it = [&](const GemmProblem& p) {
    GemmPlan plan = plan_gemm(target, p);
    if (auto* v = std::get_if<FragmentsVariant>(&plan.variant)) {
      set.add(*v);
    }
  };
  GemmProblem p = linear(
      Type::bf16, software ? Shape{64, 128, 160} : Shape{4096, 4096, 4096});
  add_it(p);
  p.axpby = true;
  add_it(p);
  if (!software) {
    p.batch = BATCH_NEST;
    p.c = {int64_t(1) << 32, 1};
    add_it(p);
    p.axpby = false;
    p.batch = BATCH_GATHER;
    add_it(p);
    p.batch = BATCH_EVEN;
  }
  // Columns of a; rows of both, through the transpose.
  p.axpby = true;
  p.c = {p.n, 1};
  for (bool rows : {false, true}) {
    p.a = rows ? MatrixStrides{p.k, 1} : MatrixStrides{1, p.m};
    p.b = rows ? MatrixStrides{p.n, 1} : MatrixStrides{1, p.k};
    add_it(p);
    p.axpby = false;
    add_it(p);
  }
}

// Experts, 8 of 128 for each token of a prompt.
void add_sorted_products(VariantSet& set, const Caps& caps) {
  for (uint32_t tokens : {128, 512, 4096}) {
    set.add(plan_sorted_tiles(caps, 8 * tokens));
    for (Type t : {Type::f16, Type::bf16}) {
      Shape s{8 * tokens, 768, 2048};
      auto p = t == Type::bf16 ? linear(t, s) : product(t, s);
      p.batch = BATCH_SORTED;
      if (auto plan = plan_sorted_gemm(caps, p, 128)) {
        set.add(std::get<CoopmatVariant>(plan->variant));
      }
    }
  }
}

} // namespace

void add_gemm_variants(VariantSet& set, const Caps& caps) {
  for (Type t : float_types) {
    for (auto& s : layers) {
      add(set, caps, linear(t, s));
    }
    add(set, caps, product(t, {1, 4096, 4096}));
  }
  for (auto& s : samples) {
    add_other_products(set, caps, linear(Type::f32, s));
    add_other_products(set, caps, product(Type::bf16, s));
  }
  add_other_products(set, caps, product(Type::c64, samples[2]));
  add_other_products(set, caps, product(Type::f64, samples[2]));
  for (Type t : float_types) {
    add(set, caps, product(t, {1, 4096, 4096}));
  }
  for (Type t : {Type::f32, Type::f64, Type::f16, Type::bf16, Type::c64}) {
    set.add(SplitSumVariant{.T = t, .AXPBY = true, .BATCH = BATCH_EVEN});
    set.add(SplitSumVariant{.T = t, .AXPBY = false, .BATCH = BATCH_EVEN});
  }
  set.add(SplitSumVariant{.T = Type::f32, .AXPBY = true, .BATCH = BATCH_NEST});
  add_fragments(set, caps);
  add_block_products(set);
  add_sorted_products(set, caps);
}

} // namespace mlx::core::vulkan

// The patterns of groups of quantized products: siblings, norm, residual, gate.
#include "kernels/rows.h"
#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

namespace {

// Each workgroup norms the row again. Up to this many bytes that cost less than
// a dispatch and its level: 8 MiB from an H200's cache take about 2 us, and
// several products usually share a norm.
constexpr uint64_t most_norming_bytes = 4 << 20;

// As sums_alike() of rewrite_variants.h: the number of outputs of a subgroup or
// workgroup does not matter.
bool sums_alike(const QmmFragmentsVariant& a, QmmFragmentsVariant b) {
  b.FM = a.FM;
  b.WN = a.WN;
  return a == b;
}

// A kernel of several products, or of one product and a sum.
JoinedKernel fused_product(const RowsVariant& v, bool several) {
  if (auto* q = std::get_if<QmvVariant>(&v)) {
    return fused_matvec(*q, several);
  }
  return fused_fragments(std::get<QmmFragmentsVariant>(v), several);
}

// Another product beside those of a group, with the tile of the larger one;
// none if its order of summation differs.
std::optional<JoinedKernel>
beside(const JoinedKernel& group, const RowsVariant& v, bool larger) {
  if (auto* g = std::get_if<FusedQmvVariant>(&group)) {
    auto* q = std::get_if<QmvVariant>(&v);
    if (!q || !sums_alike(*g, *q)) {
      return {};
    }
    return normed_matvec(
        fused_matvec(larger ? *q : *g, true), g->NORM, g->NORM_LANES);
  }
  auto& g = std::get<FusedFragmentsVariant>(group);
  auto* f = std::get_if<QmmFragmentsVariant>(&v);
  if (!f || !sums_alike(g, *f)) {
    return {};
  }
  return fused_fragments(larger ? *f : g, true);
}

std::optional<JoinedKernel> gated_product(
    const JoinedKernel& group,
    uint32_t gate) {
  if (auto* g = std::get_if<FusedQmvVariant>(&group)) {
    return normed_matvec(gated_matvec(*g, gate), g->NORM, g->NORM_LANES);
  }
  return gated_fragments(std::get<FusedFragmentsVariant>(group), gate);
}

// Outputs of each set that a workgroup makes.
uint32_t set_outputs(const JoinedKernel& group) {
  if (auto* g = std::get_if<FusedQmvVariant>(&group)) {
    return g->GATE == GATE_NONE ? g->BLOCK : g->BLOCK / 2;
  }
  return std::get<FusedFragmentsVariant>(group).set_outputs();
}

Type type_of(const Group& g) {
  return std::visit([](auto& v) { return v.T; }, g.variant);
}

uint32_t workgroups(const ProductArgs& q, const QmvVariant& v) {
  return (q.N + v.BLOCK - 1) / v.BLOCK * q.m_tiles;
}

void begin(Match& m, const RowsVariant& v) {
  m.changed.variant = fused_product(v, false);
  m.changed.parts = Products{.sets = {{m.nodes[0]}}};
}

} // namespace

Verdict Products::first(Match& m) {
  begin(m, m.record<ProductRecord>().variant);
  return Verdict::Yes;
}

Verdict Products::sibling(Match& m) {
  auto& g = m.parts<Products>();
  auto first = m.p.args<ProductRecord>(g.sets[0].product);
  auto q = m.p.args<ProductRecord>(m.nodes[0]);
  if (first.M != q.M || first.K != q.K ||
      (q.M != 1 && first.x_row != q.x_row)) {
    return Verdict::No;
  }
  auto& variant = m.record<ProductRecord>().variant;
  auto several = beside(m.changed.variant, variant, q.N > first.N);
  if (g.gate != none || g.set_count == MAX_SETS || !several) {
    return Verdict::Form;
  }
  m.changed.variant = *several;
  g.sets[g.set_count++] = {m.nodes[0]};
  return Verdict::Yes;
}

Verdict Products::residual(Match& m) {
  auto operands = m.p.of(m.nodes[0]);
  auto& g = m.parts<Products>();
  auto* set = std::find_if(g.sets, g.sets + g.set_count, [&](auto& s) {
    return s.product == m.nodes[1];
  });
  if (same_range(operands[0], operands[1])) {
    return Verdict::No;
  }
  if (g.gate != none || set->adder != none ||
      type_of(m.changed) != m.record<AddRecord>().type) {
    return Verdict::Form;
  }
  set->adder = m.nodes[0];
  set->summand = m.operands[0];
  return Verdict::Yes;
}

Verdict Products::gated(Match& m) {
  auto& gate = m.record<GateRecord>();
  auto& g = m.parts<Products>();
  auto variant = gated_product(m.changed.variant, gate.gate);
  if (g.set_count != 2 || g.gate != none || g.sets[0].adder != none ||
      g.sets[1].adder != none || type_of(m.changed) != gate.type || !variant) {
    return Verdict::Form;
  }
  g.gate = m.nodes[0];
  g.gate_set = g.sets[0].product == m.nodes[1 + gate.operand] ? 0 : 1;
  m.changed.variant = *variant;
  return Verdict::Yes;
}

// Joins a norm and the product of its output.
Verdict Products::normed(Match& m) {
  uint32_t n = m.nodes[1];
  auto& found = m.p.record<NormRecord>(n);
  auto* v = std::get_if<QmvVariant>(&m.record<ProductRecord>().variant);
  if (!v) { // a product of many rows
    return Verdict::Form;
  }
  auto q = m.p.args<ProductRecord>(m.nodes[0]);
  auto args = m.p.args<NormRecord>(n);
  uint64_t bytes = uint64_t(q.K) * size_of(v->T);
  if (found.type != v->T || !found.vec || !v->VEC || q.M != 1 || v->ROWS != 1 ||
      args.rows.count != 1 || args.rows.n != q.K || bytes > most_normed_bytes ||
      workgroups(q, *v) * 2 * bytes > most_norming_bytes) {
    return Verdict::Form;
  }
  if (overlap(m.p.of(n)[0], m.p.of(m.nodes[0])[0])) { // it norms in place
    return Verdict::Overlap;
  }
  begin(m, *v);
  m.changed.variant = normed_matvec(fused_matvec(*v, false), q.K, found.lanes);
  m.parts<Products>().norm = n;
  return Verdict::Yes;
}

void Products::build(const Program& p, const Group& g, UseBlock use) const {
  FusedMatvecArgs<MAX_SETS> args{};
  uint32_t outputs = set_outputs(g.variant);
  uint32_t tiles = 0;
  for (uint32_t s = 0; s < set_count; ++s) {
    auto& set = sets[gate == none ? s : s ^ gate_set];
    uint32_t i = set.product;
    auto q = p.args<ProductRecord>(i);
    if (s == 0) {
      args.x = p.address(i, ProductRecord::X);
      args.x_row = q.x_row;
      args.M = q.M;
      args.K = q.K;
      args.m_tiles = q.m_tiles;
    }
    MatvecSet& m = args.sets[s];
    using R = ProductRecord;
    bool has_side = p.record<R>(i).has_side();
    m = {
        p.address(i, R::W),
        p.address(i, R::Scales),
        has_side ? p.address(i, R::Side) : 0,
        p.output_address(i)};
    m.N = q.N;
    m.tiles = ceil_div(m.N, outputs);
    tiles += gate == none || s == 0 ? m.tiles : 0;
    if (set.adder != none) {
      m.addend = p.address(set.adder, 1 - set.summand);
      m.sum = p.output_address(set.adder);
    }
  }
  if (norm != none) {
    using R = NormRecord;
    auto rows = p.args<R>(norm);
    args.x = p.address(norm, R::X);
    args.norm_weight =
        p.record<R>(norm).weight ? p.address(norm, R::Weight) : 0;
    args.normed = p.output_address(norm);
    args.eps = rows.eps;
    args.inverse_n = rows.inverse_n;
  }
  if (gate != none) {
    args.gated = p.output_address(gate);
  }
  args.groups = tiles * args.m_tiles;
  args.set_count = set_count;
  bool several = set_count > 1;
  use(&args,
      offsetof(FusedMatvecArgs<MAX_SETS>, sets) +
          (several ? MAX_SETS : 1) * sizeof(MatvecSet),
      args.groups);
}

} // namespace mlx::core::vulkan

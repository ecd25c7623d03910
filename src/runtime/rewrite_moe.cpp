// The patterns of layers of experts: a router's softmax, order, choice and
// weights; gate and up of the chosen experts and their gated product; and the
// experts' outputs weighted, summed and added to the residual.
#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

namespace {

constexpr int most_axes = 2; // of indices

// The operands of a product by index; its indices have one axis or two.
ExpertSet set_of(const Program& p, uint32_t record, const ProductStack& s) {
  using R = GatheredRecord;
  auto& r = p.record<R>(record);
  ExpertSet set{
      p.address(record, R::W),
      p.address(record, R::Scales),
      r.has_side() ? p.address(record, R::Side) : 0,
      p.address(record, r.lhs()),
      p.address(record, r.rhs())};
  set.y = p.output_address(record);
  set.inner = 1;
  set.w_matrices = s.w_matrices;
  for (int d = 0; d < s.ndim; ++d) {
    int to = 2 - s.ndim + d;
    set.lhs_strides[to] = s.strides[0][d];
    set.rhs_strides[to] = s.strides[1][d];
    set.inner = s.shape[d];
  }
  return set;
}

// The place in the sorted order at which a choice begins.
uint64_t first_of(const Program& p, const Router& r, uint32_t take) {
  return (p.address(take, TakeRecord::Index) - p.output_address(r.sort)) / 4;
}

} // namespace

// Joins the router's softmax and the sort of its output.
Verdict Router::order(Match& m) {
  auto& sort = m.record<ArgSortRecord>();
  auto& [v, rows, n] = m.p.record<SoftmaxRecord>(m.nodes[1]);
  if (sort.type != v.T || sort.rows != rows || sort.n != n) {
    return Verdict::No;
  }
  if (n > ROUTER_MOST || v.CHUNKS == 0 || rows == 0) {
    return Verdict::Form;
  }
  m.changed.variant = RouterVariant{v.T, v.LANES, v.CHUNKS, v.VEC};
  m.changed.parts = Router{m.nodes[1], m.nodes[0]};
  return Verdict::Yes;
}

Verdict Router::choice(Match& m) {
  auto& t = m.record<TakeRecord>();
  auto& r = m.parts<Router>();
  auto& [v, rows, n] = m.p.record<SoftmaxRecord>(r.softmax);
  uint64_t first = first_of(m.p, r, m.nodes[0]);
  if (r.take != none || first >= n || t.k > n - first ||
      t.item != size_of(v.T) || t.rows != rows || t.n != n ||
      (rows != 1 && t.pitch != n)) {
    return Verdict::No;
  }
  r.take = m.nodes[0];
  return Verdict::Yes;
}

Verdict Router::total(Match& m) {
  auto& s = m.record<SumRecord>();
  auto& r = m.parts<Router>();
  auto& [v, rows, n] = m.p.record<SoftmaxRecord>(r.softmax);
  if (r.sum != none || s.type != v.T || s.rows != rows ||
      s.extent != m.p.record<TakeRecord>(r.take).k || s.inner != 1) {
    return Verdict::No;
  }
  r.sum = m.nodes[0];
  return Verdict::Yes;
}

Verdict Router::weights(Match& m) {
  auto& d = m.record<PerRowRecord>();
  auto& r = m.parts<Router>();
  auto& [v, rows, n] = m.p.record<SoftmaxRecord>(r.softmax);
  if (r.divide != none || !d.divides || d.type != v.T || d.rows != rows ||
      d.n != m.p.record<TakeRecord>(r.take).k ||
      m.p.address(m.nodes[0], PerRowRecord::B) != m.p.output_address(r.sum)) {
    return Verdict::No;
  }
  r.divide = m.nodes[0];
  return Verdict::Yes;
}

Verdict Experts::gated(Match& m) {
  auto& g = m.record<GateRecord>();
  uint32_t gate = m.nodes[1 + g.operand], up = m.nodes[2 - g.operand];
  auto& v = m.p.record<GatheredRecord>(std::min(gate, up)).variant;
  auto& w = m.p.record<GatheredRecord>(std::max(gate, up)).variant;
  if (g.type != v.T) {
    return Verdict::No;
  }
  auto a = m.p.args<GatheredRecord>(gate), b = m.p.args<GatheredRecord>(up);
  auto &s = a.stack, &t = b.stack;
  if (!sums_alike(v, w) ||
      m.p.address(gate, GatheredRecord::X) !=
          m.p.address(up, GatheredRecord::X) ||
      a.K != b.K || a.N != b.N || s.batch != t.batch ||
      s.x_matrix != t.x_matrix || s.x_matrices != t.x_matrices ||
      s.w_matrix != t.w_matrix || s.scale_matrix != t.scale_matrix ||
      s.side_matrix != t.side_matrix || std::max(s.ndim, t.ndim) > most_axes) {
    return Verdict::Form;
  }
  m.changed.variant = gated_experts(v, g.gate);
  m.changed.parts = Experts{.product = gate, .up = up, .gate = m.nodes[0]};
  return Verdict::Yes;
}

// Joins products, their weights (node 1) and their sum (node 0).
Verdict Experts::combined(Match& m) {
  auto& s = m.record<SumRecord>();
  uint32_t scale = m.nodes[1], product = m.nodes[2];
  auto& weighted = m.p.record<PerRowRecord>(scale);
  auto& v = m.p.record<GatheredRecord>(product).variant;
  auto q = m.p.args<GatheredRecord>(product);
  uint32_t products = q.stack.batch;
  if (weighted.divides || weighted.type != v.T || weighted.rows != products ||
      weighted.n != q.N || s.type != v.T || s.inner != q.N ||
      uint64_t(s.rows) * s.extent != products) {
    return Verdict::No;
  }
  if (q.stack.ndim > most_axes || s.extent < 2 ||
      s.extent > most_mixed_experts) {
    return Verdict::Form;
  }
  m.changed.variant = mixed_experts(v, s.extent);
  m.changed.parts =
      Experts{.product = product, .scale = scale, .sum = m.nodes[0]};
  return Verdict::Yes;
}

Verdict Experts::residual(Match& m) {
  auto operands = m.p.of(m.nodes[0]);
  auto& e = m.parts<Experts>();
  auto& v = std::get<ExpertVariant>(m.changed.variant);
  if (e.adder != none || m.record<AddRecord>().type != v.T ||
      same_range(operands[0], operands[1])) {
    return Verdict::No;
  }
  e.adder = m.nodes[0];
  e.addend = 1 - m.operands[0];
  return Verdict::Yes;
}

void Router::build(const Program& p, const Group& g, UseBlock use) const {
  auto& s = p.record<SoftmaxRecord>(softmax);
  // The kernel's block: addresses, then RouterArgs.
  struct {
    uint64_t x, gates, order, chosen = 0, total = 0, weights = 0;
    RouterArgs args;
  } block{
      .x = p.address(softmax, SoftmaxRecord::X),
      .gates = p.output_address(softmax),
      .order = p.output_address(sort),
      .args = {s.rows, s.n}};
  if (take != none) {
    block.chosen = p.output_address(take);
    block.args.first = static_cast<uint32_t>(first_of(p, *this, take));
    block.args.k = p.record<TakeRecord>(take).k;
  }
  if (sum != none) {
    block.total = p.output_address(sum);
  }
  if (divide != none) {
    block.weights = p.output_address(divide);
  }
  use(&block, offsetof(decltype(block), args) + sizeof(RouterArgs), s.rows);
}

void Experts::build(const Program& p, const Group& g, UseBlock use) const {
  auto q = p.args<GatheredRecord>(product);
  ExpertArgs a{};
  a.x = p.address(product, GatheredRecord::X);
  a.x_matrix = q.stack.x_matrix;
  a.w_matrix = q.stack.w_matrix;
  a.scale_matrix = q.stack.scale_matrix;
  a.side_matrix = q.stack.side_matrix;
  a.x_matrices = q.stack.x_matrices;
  a.K = q.K;
  a.N = q.N;
  a.sets[0] = set_of(p, product, q.stack);
  uint32_t units = q.stack.batch;
  if (gate != none) {
    a.sets[1] = set_of(p, up, p.args<GatheredRecord>(up).stack);
    a.gated = p.output_address(gate);
  } else {
    units = p.record<SumRecord>(sum).rows;
    a.weights = p.address(scale, PerRowRecord::B);
    a.weighted = p.output_address(scale);
    a.mixed = p.output_address(sum);
  }
  if (adder != none) {
    a.addend = p.address(adder, addend);
    a.sum = p.output_address(adder);
  }
  uint32_t part = std::get<ExpertVariant>(g.variant).part();
  a.n_tiles = ceil_div(a.N, part);
  a.groups = a.n_tiles * units;
  use(&a, sizeof a, a.groups);
}

} // namespace mlx::core::vulkan

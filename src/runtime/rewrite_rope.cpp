// The patterns of heads: the rotation of q and k, the norm before it, and the
// copy of k and v into a cache become parts of one dispatch.
#include <algorithm>

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

namespace {

using Chain = HeadChains::Chain;

RopeStrides strides(const Heads& h, Heads::Side side) {
  return {h.axes[0].*side, h.axes[1].*side, h.axes[2].*side};
}

// Whether a record accesses its heads four items at a time, or could.
bool by_fours(const Records& p, uint32_t record, Type t) {
  auto& descriptor = p.records[record].descriptor;
  const Heads& h = *p.heads(record);
  uint64_t at = p.heads_at(record, Heads::in) | p.heads_at(record, Heads::out);
  uint32_t items = h.D;
  for (auto& axis : h.axes) {
    items |= axis.in | axis.out;
  }
  if (auto* norm = std::get_if<NormRecord>(&descriptor); norm && norm->weight) {
    at |= p.address(record, NormRecord::Weight);
  } else if (std::holds_alternative<RopeRecord>(descriptor)) {
    items |= p.args<RopeRecord>(record).half_dims;
  }
  return at % (4 * size_of(t)) == 0 && items % 4 == 0;
}

// Adds a chain on the heads of node 0 to the group, or begins one.
Verdict add(Match& m, Type t, const Chain& c) {
  auto& g = m.parts<HeadChains>();
  auto& v = std::get<RopeCacheVariant>(m.changed.variant);
  uint32_t D = m.p.heads(m.nodes[0])->D;
  uint32_t lanes = c.norm == none ? 0 : m.p.record<NormRecord>(c.norm).lanes;
  bool first = g.chain_count == 0;
  bool alike = first ||
      (v.T == t && g.D == D && (!lanes || !g.lanes || lanes == g.lanes));
  if (!alike || g.chain_count == MAX_ROPE_PARTS) {
    return Verdict::Form;
  }
  bool vec = first || v.VEC;
  for (uint32_t record : {c.norm, c.rope, c.copy}) {
    vec = vec && (record == none || by_fours(m.p, record, t));
  }
  g.chains[g.chain_count++] = c;
  g.D = D;
  g.lanes = std::max(g.lanes, lanes);
  m.changed.variant = rope_cache(t, D, g.lanes, vec);
  return Verdict::Yes;
}

// Whether the rotation (node 0) turns just the heads of the norm (node 1).
bool norms_heads(const Match& m, const RopeRecord& rope) {
  auto& norm = m.p.record<NormRecord>(m.nodes[1]);
  Heads h = norm.heads;
  return norm.type == rope.type && h.align(Heads::out, rope.heads, Heads::in) &&
      holds_head(h.D, norm.lanes) &&
      (!norm.weight || m.p.args<NormRecord>(m.nodes[1]).w_stride == 1);
}

RopePart part_of(const Program& p, const Chain& c) {
  RopePart q{};
  uint32_t record = c.rope != none ? c.rope : c.copy;
  Heads h = *p.heads(record);
  if (c.rope == none) { // workgroups divide the middle axis among them
    std::swap(
        h.axes[1], *std::max_element(h.axes, h.axes + 3, [](auto& a, auto& b) {
          return a.extent < b.extent;
        }));
  }
  q.x = p.heads_at(record, Heads::in);
  q.x_strides = strides(h, Heads::in);
  q.N = h.axes[1].extent;
  q.L = h.axes[2].extent;
  q.D = h.D;
  q.groups = h.axes[0].extent * q.L; // times `blocks`
  if (c.norm != none) {
    Heads normed = *p.heads(c.norm);
    normed.align(Heads::out, h, Heads::in);
    auto& norm = p.record<NormRecord>(c.norm);
    auto args = p.args<NormRecord>(c.norm);
    q.normed = q.x;
    q.normed_strides = q.x_strides;
    q.x = p.heads_at(c.norm, Heads::in);
    q.x_strides = strides(normed, Heads::in);
    q.weight = norm.weight ? p.address(c.norm, NormRecord::Weight) : 0;
    q.flags |= ROPE_NORMED;
    q.eps = args.eps;
    q.inverse_n = args.inverse_n;
  }
  if (c.rope != none) {
    auto& rope = p.record<RopeRecord>(c.rope);
    auto args = p.args<RopeRecord>(c.rope);
    q.y = p.heads_at(c.rope, Heads::out);
    q.y_strides = strides(h, Heads::out);
    q.offset = p.address(c.rope, RopeRecord::Offset);
    q.freqs = rope.freqs ? p.address(c.rope, RopeRecord::Freqs) : 0;
    q.offset_stride = static_cast<int>(args.offset_stride);
    q.freqs_stride = static_cast<int>(args.freqs_stride);
    q.half_dims = args.half_dims;
    q.flags |= rope.traditional ? ROPE_TRADITIONAL : 0;
    q.scale = args.scale;
    q.log2_base = args.log2_base;
    q.log2_base_low = args.log2_base_low;
  }
  bool in_place =
      std::all_of(h.axes, h.axes + 3, [](auto& a) { return a.in == a.out; });
  if (q.normed == q.y && in_place) {
    q.normed = 0; // is rotated where it is
  }
  if (c.copy != none) {
    Heads copied = h;
    if (c.rope != none) {
      copied = *p.heads(c.copy);
      copied.align(Heads::in, h, Heads::out);
    }
    q.cache = p.heads_at(c.copy, Heads::out);
    q.cache_strides = strides(copied, Heads::out);
  }
  return q;
}

} // namespace

// Node 1 is the norm, if the pattern has one.
Verdict HeadChains::rotated(Match& m) {
  auto& rope = m.record<RopeRecord>();
  auto& h = rope.heads;
  bool fits = h.D > 0 && h.D <= most_head_dims &&
      m.p.args<RopeRecord>(m.nodes[0]).half_dims > 0 &&
      m.p.kernels.fits_heads(h.count());
  if (!fits || (m.nodes[1] != none && !norms_heads(m, rope))) {
    return Verdict::Form;
  }
  return add(m, rope.type, {m.nodes[1], m.nodes[0]});
}

// Joins a copy (node 0) with the chain of the rotation that made its input.
Verdict HeadChains::cached(Match& m) {
  auto& g = m.parts<HeadChains>();
  auto& v = std::get<RopeCacheVariant>(m.changed.variant);
  auto& copy = m.record<CopyRecord>();
  auto* chain = std::find_if(g.chains, g.chains + g.chain_count, [&](auto& c) {
    return c.rope == m.nodes[1];
  });
  Heads h = copy.heads;
  if (chain->copy != none || copy.item != size_of(v.T) ||
      !h.align(Heads::in, *m.p.heads(chain->rope), Heads::out)) {
    return Verdict::Form;
  }
  chain->copy = m.nodes[0];
  v.VEC = v.VEC && by_fours(m.p, chain->copy, v.T);
  return Verdict::Yes;
}

// Copies of heads without a norm and a rotation, beside others: v.
Verdict HeadChains::copied(Match& m) {
  auto& g = m.parts<HeadChains>();
  auto& copy = m.record<CopyRecord>();
  if (g.chain_count == 0 || copy.heads.D != g.D) {
    return Verdict::No;
  }
  auto& first = g.chains[0];
  uint64_t heads =
      m.p.heads(first.rope != none ? first.rope : first.copy)->count();
  Type t = std::get<RopeCacheVariant>(m.changed.variant).T;
  bool fine = copy.item == size_of(t) && copy.heads.count() <= 4 * heads &&
      add(m, t, {none, none, m.nodes[0]}) == Verdict::Yes;
  return fine ? Verdict::Yes : Verdict::No;
}

void HeadChains::build(const Program& p, const Group& g, UseBlock use) const {
  RopeCacheArgs args{};
  auto team = std::get<RopeCacheVariant>(g.variant).LANES;
  uint32_t teams = rope_cache_group / team, most = 0;
  for (uint32_t i = 0; i < chain_count; ++i) {
    RopePart& q = args.parts[i] = part_of(p, chains[i]);
    q.blocks = ceil_div(q.N, teams);
    q.groups *= q.blocks;
    most = std::max(most, q.groups);
  }
  use(&args, sizeof args, uint64_t(most) * MAX_ROPE_PARTS);
}

} // namespace mlx::core::vulkan

// The rule of heads: the rotation of q and k, the norm before it, and the copy
// of k and v into a cache become parts of one dispatch.
#include <initializer_list>

#include "runtime/rewrite_heads.h"

namespace mlx::core::vulkan {

namespace {

using Chain = HeadChain;

bool in_chain(const Chain& c, uint32_t record) {
  return c.norm == record || c.rope == record || c.copy == record;
}

// Whether memory that a record and the members share, and one writes, holds the
// same items of the same heads of a chain.
bool shares(const Group& g, const Program& p, uint32_t record) {
  auto& heads = std::get<HeadChains>(g.parts);
  auto* end = heads.chains + heads.chain_count;
  for (uint32_t other : g.records()) {
    if (!p.conflict(other, record)) {
      continue;
    }
    auto* both = std::find_if(heads.chains, end, [&](uint32_t c) {
      return in_chain(p.chains[c], other) && in_chain(p.chains[c], record);
    });
    if (both == end) {
      return false;
    }
    const Chain& chain = p.chains[*both];
    auto a = p.of(other), b = p.of(record);
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t j = 0; j < b.size(); ++j) {
        if ((!a[i].write && !b[j].write) || !overlap(a[i], b[j])) {
          continue;
        }
        // A weight, an offset, frequencies.
        bool shared = (i > 0 && !a[i].write) || (j > 0 && !b[j].write);
        Heads x = heads_of(chain, other, a[i].write),
              y = heads_of(chain, record, b[j].write);
        if (shared || x.address != y.address || !(x.strides == y.strides)) {
          return false;
        }
      }
    }
  }
  return true;
}

void build_heads(const Program& p, const Group& g, UseBlock use) {
  auto& heads = std::get<HeadChains>(g.parts);
  RopeCacheArgs args{};
  auto lanes = std::get<RopeCacheVariant>(g.variant).LANES;
  uint32_t teams = rope_cache_group / lanes, most = 0;
  for (uint32_t i = 0; i < heads.chain_count; ++i) {
    const Chain& c = p.chains[heads.chains[i]];
    RopePart& q = args.parts[i];
    q = c.part;
    q.blocks = (q.N + teams - 1) / teams;
    q.groups = q.blocks * q.L * c.B;
    most = std::max(most, q.groups);
    if (q.normed == q.y && q.normed_strides == q.y_strides) {
      q.normed = 0; // is rotated in place
    }
  }
  use(&args, sizeof args, uint64_t(most) * MAX_ROPE_PARTS);
}

struct Attempt {
  Program& p;
  uint32_t record;

  bool miss(Miss why) const {
    return p.miss(record, Rule::Rope, why);
  }

  // Sets chain `at` of `changed`, which is or becomes p.groups[number].
  // `added`: the chain's new records; `record` is the last.
  bool join(
      uint32_t number,
      Group& changed,
      uint32_t at,
      const Chain& chain,
      std::initializer_list<uint32_t> added) const {
    auto& heads = std::get<HeadChains>(changed.parts);
    heads.chains[at] = static_cast<uint32_t>(p.chains.size());
    p.chains.push_back(chain);
    p.chains.back().vec = by_fours(chain, heads.type);
    bool vec = true;
    for (uint32_t i = 0; i < heads.chain_count; ++i) {
      vec = vec && p.chains[heads.chains[i]].vec;
    }
    changed.variant = rope_cache(heads.type, chain.part.D, heads.lanes, vec);
    auto fine = [&](auto& g, uint32_t i) { return shares(g, p, i); };
    return p.join(number, changed, added, Rule::Rope, fine);
  }

  uint32_t norm_of(const RopePart& q) const {
    uint32_t found = none;
    p.any_recent(kind_of<NormRecord>(), record, [&](uint32_t n) {
      bool is = p.group_of(n) == none && p.output_address(n) == q.x;
      found = is ? n : found;
      return is;
    });
    return found;
  }

  // Joins the group with the chain, or begins one.
  bool add_to(uint32_t number, const Chain& chain, Type t, bool counted) const {
    Group changed;
    if (number < p.groups.size()) {
      changed = p.groups[number];
    } else {
      changed.parts = HeadChains{.type = t};
      changed.build = build_heads;
    }
    auto& heads = std::get<HeadChains>(changed.parts);
    uint32_t lanes =
        chain.norm == none ? 0 : p.what<NormRecord>(chain.norm).lanes;
    bool alike = heads.chain_count == 0 ||
        (heads.type == t && p.chains[heads.chains[0]].part.D == chain.part.D &&
         (!lanes || !heads.lanes || lanes == heads.lanes));
    if (!alike || heads.chain_count == MAX_ROPE_PARTS) {
      return counted && miss(Miss::Form);
    }
    heads.lanes = std::max(heads.lanes, lanes);
    uint32_t at = heads.chain_count++;
    return chain.norm == none
        ? join(number, changed, at, chain, {record})
        : join(number, changed, at, chain, {chain.norm, record});
  }
};

void turns_heads(Attempt t) {
  Chain plain;
  auto& what = t.p.what<RopeRecord>(t.record);
  if (!rope_of(t.p, t.record, plain) ||
      !t.p.kernels.fits_heads(
          uint64_t(plain.B) * plain.part.N * plain.part.L)) {
    t.miss(Miss::Form);
    return;
  }
  Chain normed = plain;
  uint32_t n = t.norm_of(plain.part);
  bool has_norm = n != none && add_norm(t.p, n, what.type, normed) &&
      holds_head(plain.part.D, t.p.what<NormRecord>(n).lanes);
  if (n != none && !has_norm) {
    t.miss(Miss::Form);
  }
  auto add = [&](uint32_t number) {
    return (has_norm && t.add_to(number, normed, what.type, true)) ||
        t.add_to(number, plain, what.type, !has_norm);
  };
  if (!t.p.any_recent_heads(t.record, add)) {
    add(static_cast<uint32_t>(t.p.groups.size()));
  }
}

// Joins a copy with the chain that made its input. True if there is such a
// chain, whether or not the copy joined.
bool copies_result(Attempt t) {
  bool known = false;
  t.p.any_recent_heads(t.record, [&](uint32_t number) {
    const Group& g = t.p.groups[number];
    auto& heads = std::get<HeadChains>(g.parts);
    Walk w;
    if (!copy_of(t.p, t.record, heads.type, w)) {
      return false;
    }
    for (uint32_t i = 0; i < heads.chain_count; ++i) {
      Chain c = t.p.chains[heads.chains[i]];
      if (c.rope != none && c.part.y == w.src) {
        known = true;
        Group changed = g;
        return c.copy == none && add_copy(t.record, w, heads.type, c)
            ? t.join(number, changed, i, c, {t.record})
            : t.miss(Miss::Form);
      }
    }
    return false;
  });
  return known;
}

// Matches copies of heads without a norm and a rotation: v.
void copies_heads(Attempt t) {
  t.p.any_recent_heads(t.record, [&](uint32_t number) {
    auto& heads = std::get<HeadChains>(t.p.groups[number].parts);
    const Chain& first = t.p.chains[heads.chains[0]];
    const RopePart& q = first.part;
    int64_t most = 4 * int64_t(first.B) * q.N * q.L * q.D;
    Walk w;
    Chain c;
    return copy_of(t.p, t.record, heads.type, w) &&
        copied_heads(t.record, w, heads.type, q.D, most, c) &&
        t.add_to(number, c, heads.type, false);
  });
}

} // namespace

void match_rope(Program& p, uint32_t record) {
  turns_heads({p, record});
}

void match_copy(Program& p, uint32_t record) {
  if (!copies_result({p, record})) {
    copies_heads({p, record});
  }
}

} // namespace mlx::core::vulkan

// The rule of heads: what turns q and k, what norms them before, and what
// copies k and v into a cache, as parts of one dispatch.
#include <algorithm>
#include <utility>

#include "pipeline/pipeline.h"
#include "runtime/rewrite_heads.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

namespace {

using Chain = HeadChain;

// How many groups a record may join (Program::can_pass() knows), and how many
// records after their last.
constexpr size_t recent = 2;
constexpr uint32_t near_by = 10;

struct Attempt {
  Program& p;
  const FusedKernels& kernels;
  uint32_t record;

  bool miss(Miss why) const {
    return p.miss(record, Rule::Rope, why);
  }

  // Whether what two members both touch, and one writes, are the same items of
  // the same heads.
  static bool same_items(
      const Chain& c,
      uint32_t i,
      bool writes_i,
      uint32_t j,
      bool writes_j) {
    Heads a = heads_of(c, i, writes_i), b = heads_of(c, j, writes_j);
    return a.address == b.address && a.strides == b.strides;
  }

  bool only_shares(const HeadGroup& g, uint32_t member) const {
    for (uint32_t other : g.records()) {
      if (other == member || !p.conflict(other, member)) {
        continue;
      }
      auto chain =
          std::find_if(g.chains, g.chains + g.chain_count, [&](const Chain& c) {
            return (c.norm == other || c.rope == other || c.copy == other) &&
                (c.norm == member || c.rope == member || c.copy == member);
          });
      if (chain == g.chains + g.chain_count) {
        return false;
      }
      auto a = p.of(other), b = p.of(member);
      for (size_t i = 0; i < a.size(); ++i) {
        for (size_t j = 0; j < b.size(); ++j) {
          if ((!a[i].write && !b[j].write) || !overlap(a[i], b[j])) {
            continue;
          }
          // A weight, an offset, frequencies.
          bool shared = (i > 0 && !a[i].write) || (j > 0 && !b[j].write);
          if (shared ||
              !same_items(*chain, other, a[i].write, member, b[j].write)) {
            return false;
          }
        }
      }
    }
    return true;
  }

  // Whether what is after `from` and no member can do without `member`, which
  // moves behind it.
  bool can_sink(const HeadGroup& g, uint32_t member, uint32_t from) const {
    auto is_member = [&](uint32_t k) {
      auto all = g.records();
      return std::find(all.begin(), all.end(), k) != all.end();
    };
    for (uint32_t k = from + 1; k < record; ++k) {
      if (!is_member(k) && p.conflict(member, k)) {
        return false;
      }
    }
    return true;
  }

  // Makes the chain `at` of `changed`, which is or becomes p.heads[number], of
  // these new members, the record being the last.
  bool join(
      size_t number,
      HeadGroup& changed,
      Chain& chain,
      std::initializer_list<uint32_t> added) {
    chain.vec = by_fours(chain, changed.type);
    bool vec = true;
    for (uint32_t i = 0; i < changed.chain_count; ++i) {
      vec = vec && changed.chains[i].vec;
    }
    changed.variant =
        rope_cache(changed.type, changed.chains[0].part.D, changed.lanes, vec);
    uint32_t before = changed.size;
    for (uint32_t member : added) {
      changed.members[changed.size++] = member;
    }
    for (uint32_t i = 0; i < changed.size; ++i) {
      uint32_t member = changed.members[i];
      if (i >= before && !only_shares(changed, member)) {
        return miss(Miss::Overlap);
      }
      if (!can_sink(changed, member, i < before ? changed.place : member)) {
        return miss(Miss::Order);
      }
    }
    if (changed.size > 1 && kernels.refused(changed.variant)) {
      return miss(Miss::Kernel);
    }
    changed.place = record;
    if (number == p.heads.size()) {
      p.heads.push_back(changed);
    } else {
      p.heads[number] = changed;
    }
    for (uint32_t member : added) {
      p.group_of[member] = static_cast<uint32_t>(number) | Program::of_heads;
      p.last_norm = p.last_norm == member ? none : p.last_norm;
    }
    if (changed.size > 1) {
      p.fire(changed.records().subspan(std::max(before, 1u)), Rule::Rope);
    }
    return true;
  }

  // Groups that still are near enough, the newest first, until f is true.
  template <typename F>
  bool any_recent(F f) {
    size_t n = p.heads.size();
    for (size_t i = 0; i < std::min(n, recent); ++i) {
      if (p.heads[n - 1 - i].place + near_by >= record && f(n - 1 - i)) {
        return true;
      }
    }
    return false;
  }

  uint32_t norm_of(const RopePart& q) const {
    for (uint32_t n : p.norms) {
      if (n != none && p.group_of[n] == none &&
          p.address(n, std::get<NormRecord>(p.records[n].what).weight + 1) ==
              q.x) {
        return n;
      }
    }
    return none;
  }

  // Joins the group with the chain, or begins one.
  bool add_to(size_t number, const Chain& chain, Type t, bool counted) {
    bool begins = number == p.heads.size();
    HeadGroup changed;
    begins ? void(changed.type = t) : void(changed = p.heads[number]);
    uint32_t lanes = chain.norm == none
        ? 0
        : std::get<NormRecord>(p.records[chain.norm].what).lanes;
    bool alike = begins ||
        (changed.type == t && changed.chains[0].part.D == chain.part.D &&
         (!lanes || !changed.lanes || lanes == changed.lanes));
    if (!alike || changed.chain_count == MAX_ROPE_PARTS) {
      return counted && miss(Miss::Form);
    }
    changed.lanes = std::max(changed.lanes, lanes);
    Chain& to = changed.chains[changed.chain_count++] = chain;
    if (chain.norm == none) {
      return join(number, changed, to, {record});
    }
    return join(number, changed, to, {chain.norm, record});
  }
};

void match_rope(Attempt t, const RopeRecord& what) {
  Chain plain;
  if (!rope_of(t.p, t.record, plain) ||
      !t.kernels.fits_heads(uint64_t(plain.B) * plain.part.N * plain.part.L)) {
    t.miss(Miss::Form);
    return;
  }
  Chain normed = plain;
  uint32_t n = t.norm_of(plain.part);
  bool has_norm = false;
  if (n != none) {
    has_norm = add_norm(t.p, n, what.type, normed) &&
        holds_head(plain.part.D,
                   std::get<NormRecord>(t.p.records[n].what).lanes);
    has_norm = has_norm || t.miss(Miss::Form);
  }
  auto add = [&](size_t number) {
    return (has_norm && t.add_to(number, normed, what.type, true)) ||
        t.add_to(number, plain, what.type, !has_norm);
  };
  if (!t.any_recent(add)) {
    add(t.p.heads.size());
  }
}

// What the copy is of, if a chain has made it: then it joins that one or none.
bool copies_result(Attempt t) {
  bool known = false;
  t.any_recent([&](size_t number) {
    const HeadGroup& g = t.p.heads[number];
    Walk w;
    if (!copy_of(t.p, t.record, g.type, w)) {
      return false;
    }
    for (uint32_t i = 0; i < g.chain_count; ++i) {
      if (g.chains[i].rope != none && g.chains[i].part.y == w.src) {
        known = true;
        HeadGroup changed = g;
        Chain& c = changed.chains[i];
        return c.copy == none && add_copy(t.record, w, g.type, c)
            ? t.join(number, changed, c, {t.record})
            : t.miss(Miss::Form);
      }
    }
    return false;
  });
  return known;
}

// Heads as they are: v.
void copies_heads(Attempt t) {
  t.any_recent([&](size_t number) {
    const HeadGroup& g = t.p.heads[number];
    const RopePart& q = g.chains[0].part;
    int64_t most = 4 * int64_t(g.chains[0].B) * q.N * q.L * q.D;
    Walk w;
    Chain c;
    return copy_of(t.p, t.record, g.type, w) &&
        copied_heads(t.record, w, g.type, q.D, most, c) &&
        t.add_to(number, c, g.type, false);
  });
}

} // namespace

void match_heads(Program& p, uint32_t record, const FusedKernels& kernels) {
  auto& what = p.records[record].what;
  if (std::holds_alternative<NormRecord>(what)) {
    std::shift_right(p.norms.begin(), p.norms.end(), 1);
    p.norms[0] = record;
  } else if (auto* rope = std::get_if<RopeRecord>(&what)) {
    match_rope({p, kernels, record}, *rope);
  } else if (std::holds_alternative<CopyRecord>(what)) {
    Attempt t{p, kernels, record};
    if (!copies_result(t)) {
      copies_heads(t);
    }
  }
}

Record
build(const Program&, const HeadGroup& g, std::vector<std::byte>& arguments) {
  RopeCacheArgs args{};
  uint32_t teams = rope_cache_group / g.variant.LANES, most = 0;
  for (uint32_t i = 0; i < g.chain_count; ++i) {
    const Chain& c = g.chains[i];
    RopePart& q = args.parts[i];
    q = c.part;
    q.blocks = (q.N + teams - 1) / teams;
    q.groups = q.blocks * q.L * c.B;
    most = std::max(most, q.groups);
    if (q.normed == q.y && q.normed_strides == q.y_strides) {
      q.normed = 0; // is turned where it is
    }
  }
  Record r;
  r.kernel = g.kernel;
  r.grid = linear(uint64_t(most) * MAX_ROPE_PARTS);
  r.args_size = sizeof args;
  r.args_in_memory = r.kernel->args_in_memory(r.args_size);
  std::memcpy(room_for_args(arguments, r), &args, sizeof args);
  return r;
}

} // namespace mlx::core::vulkan

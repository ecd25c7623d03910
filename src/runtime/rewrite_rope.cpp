// The rule of heads: the rotation of q and k, the norm before it, and the copy
// of k and v into a cache become parts of one dispatch. Functions that read
// chains of heads from records return false where a record has another form;
// the chain is then invalid.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

namespace {

using Chain = HeadChain;

bool operator==(const RopeStrides& a, const RopeStrides& b) {
  return a.b == b.b && a.n == b.n && a.t == b.t;
}

// The place of the heads that a record reads as its first input, or writes as
// its output.
struct Heads {
  uint64_t address = 0;
  RopeStrides strides{};
};
// A copy in items: addresses, and axes of which the last is contiguous.
struct Walk {
  struct Axis {
    int64_t extent, in, out;
  };
  uint64_t src, dst;
  Axis axes[4];
  int ndim;
};

Heads heads_of(const Chain& c, uint32_t record, bool output) {
  const RopePart& q = c.part;
  Heads x{q.x, q.x_strides}, y{q.y, q.y_strides};
  Heads normed{q.normed, q.normed_strides};
  if (record == c.norm) {
    return output ? normed : x;
  }
  if (record == c.rope) {
    return output ? y : c.norm == none ? x : normed;
  }
  return output ? Heads{q.cache, q.cache_strides} : c.rope == none ? x : y;
}

// Strides of extents E that stay within 31 bits of bytes.
bool set_strides(
    RopeStrides& to,
    const Chain& c,
    Type t,
    int64_t b,
    int64_t n,
    int64_t l) {
  const int64_t extents[]{c.B, c.part.N, c.part.L};
  int64_t strides[]{b, n, l}, far = c.part.D;
  for (int i = 0; i < 3; ++i) {
    strides[i] = extents[i] > 1 ? strides[i] : 0;
    far += std::abs(strides[i]) * (extents[i] - 1);
  }
  if (far * size_of(t) > std::numeric_limits<int32_t>::max()) {
    return false;
  }
  to = {int(strides[0]), int(strides[1]), int(strides[2])};
  return true;
}

// Begins the chain with a RopeRecord.
bool rope_of(const Records& p, uint32_t record, Chain& c) {
  auto& what = p.what<RopeRecord>(record);
  auto args = p.args<RopeRecord>(record);
  RopePart& q = c.part;
  c.rope = record;
  c.B = args.B;
  q.x = p.address(record, 0);
  q.offset = p.address(record, 1);
  q.freqs = what.freqs ? p.address(record, 2) : 0;
  q.y = p.output_address(record);
  q.offset_stride = static_cast<int>(args.offset_stride);
  q.freqs_stride = static_cast<int>(args.freqs_stride);
  q.N = args.N;
  q.L = args.L;
  q.D = args.D;
  q.half_dims = args.half_dims;
  q.flags = what.traditional ? ROPE_TRADITIONAL : 0;
  q.scale = args.scale;
  q.log2_base = args.log2_base;
  q.log2_base_low = args.log2_base_low;
  int64_t row = args.D, head = row * args.L;
  return args.d_stride == 1 && q.half_dims > 0 && q.D <= most_head_dims &&
      set_strides(
             q.x_strides,
             c,
             what.type,
             args.b_stride,
             args.n_stride,
             args.t_stride) &&
      set_strides(q.y_strides, c, what.type, head * args.N, head, row);
}

// Puts a NormRecord, whose output the chain rotates, at the chain's start: each
// head is a row of it.
bool add_norm(const Records& p, uint32_t record, Type t, Chain& c) {
  auto& what = p.what<NormRecord>(record);
  auto args = p.args<NormRecord>(record);
  RopePart& q = c.part;
  uint64_t count = uint64_t(c.B) * q.N * q.L;
  if (what.type != t || args.rows.n != q.D || args.rows.count != count ||
      (what.weight && args.w_stride != 1 && q.D > 1)) {
    return false;
  }
  // The axes, as digits of a row's number: from the last to the first.
  struct Axis {
    int64_t extent, stride;
    int64_t norm_stride = 0;
  };
  Axis axes[]{{c.B, q.x_strides.b}, {q.N, q.x_strides.n}, {q.L, q.x_strides.t}};
  Axis* sorted[]{&axes[0], &axes[1], &axes[2]};
  std::sort(std::begin(sorted), std::end(sorted), [](auto* a, auto* b) {
    return a->stride < b->stride;
  });
  int64_t rows = 1, inner = args.rows.inner;
  for (Axis* a : sorted) {
    if (a->extent == 1) {
      continue;
    }
    if (a->stride != rows * q.D) {
      return false;
    }
    if (rows % inner == 0) {
      a->norm_stride = rows / inner * args.rows.outer_stride;
    } else if (rows * a->extent <= inner) {
      a->norm_stride = rows * args.rows.inner_stride;
    } else {
      return false;
    }
    rows *= a->extent;
  }
  RopeStrides normed = q.x_strides;
  if (!set_strides(
          q.x_strides,
          c,
          t,
          axes[0].norm_stride,
          axes[1].norm_stride,
          axes[2].norm_stride)) {
    return false;
  }
  c.norm = record;
  q.normed_strides = normed;
  q.normed = q.x;
  q.x = p.address(record, 0);
  q.weight = what.weight ? p.address(record, 1) : 0;
  q.flags |= ROPE_NORMED;
  q.eps = args.eps;
  q.inverse_n = args.inverse_n;
  return true;
}

template <int NDIM>
bool read_copy(const Records& p, uint32_t record, Walk& w, int word, Type t) {
  auto args = p.parameters<CopyRecord::Args<NDIM>>(record);
  int items = word / static_cast<int>(size_of(t));
  if (items * static_cast<int>(size_of(t)) != word) {
    return false;
  }
  w.src = p.address(record, 0) + int64_t(args.in_offset) * word;
  w.dst = p.address(record, 1) + int64_t(args.out_offset) * word;
  w.ndim = NDIM;
  for (int d = 0; d < NDIM; ++d) {
    bool last = d == NDIM - 1;
    int64_t step = last ? 1 : items;
    w.axes[d] = {
        int64_t(args.shape[d]) * (last ? items : 1),
        args.in_strides[d] * step,
        args.out_strides[d] * step};
  }
  auto& row = w.axes[NDIM - 1];
  return row.in == 1 && row.out == 1;
}

bool copy_of(const Records& p, uint32_t record, Type t, Walk& w) {
  auto [word, ndim] = p.what<CopyRecord>(record);
  return (ndim == 1 && read_copy<1>(p, record, w, word, t)) ||
      (ndim == 2 && read_copy<2>(p, record, w, word, t)) ||
      (ndim == 3 && read_copy<3>(p, record, w, word, t)) ||
      (ndim == 4 && read_copy<4>(p, record, w, word, t));
}

// Puts a copy at the chain's end. It copies all of the chain's rotated heads,
// in any order.
bool add_copy(uint32_t record, Walk w, Type t, Chain& c) {
  std::sort(
      w.axes, w.axes + w.ndim, [](auto& a, auto& b) { return a.in > b.in; });
  int64_t items = 1;
  for (int d = w.ndim; d-- > 0;) {
    if (w.axes[d].extent > 1 && w.axes[d].in != items) {
      return false;
    }
    items *= w.axes[d].extent;
  }
  const RopePart& q = c.part;
  if (items != int64_t(c.B) * q.N * q.L * q.D) {
    return false;
  }
  // The distance in the cache of `by` items of y, if one axis has all of them.
  auto step = [&](int64_t by, int64_t extent) -> int64_t {
    for (int d = w.ndim; d-- > 0;) {
      auto& a = w.axes[d];
      if (by < a.in * a.extent) {
        bool within = by % a.in == 0 && by * extent <= a.in * a.extent;
        return within ? by / a.in * a.out : -1;
      }
    }
    return extent == 1 ? 0 : -1;
  };
  int64_t head = int64_t(q.L) * q.D;
  int64_t d = step(1, q.D), b = step(head * q.N, c.B), n = step(head, q.N),
          l = step(q.D, q.L);
  bool whole = (d == 1 || q.D == 1) && (b >= 0 || c.B == 1) &&
      (n >= 0 || q.N == 1) && (l >= 0 || q.L == 1);
  if (!whole || !set_strides(c.part.cache_strides, c, t, b, n, l)) {
    return false;
  }
  c.copy = record;
  c.part.cache = w.dst;
  return true;
}

// Begins the chain with a copy of `most` items at most, in rows of D items.
bool copied_heads(
    uint32_t record,
    const Walk& w,
    Type t,
    uint32_t D,
    int64_t most,
    Chain& c) {
  auto& row = w.axes[w.ndim - 1];
  Walk::Axis outer[3] = {{1, 0, 0}, {1, 0, 0}, {row.extent / D, D, D}};
  if (row.extent % D != 0 || (w.ndim == 4 && row.extent != D)) {
    return false;
  }
  for (int d = 0; d + 1 < w.ndim; ++d) {
    outer[d] = w.axes[d];
  }
  // The longest axis is divided among workgroups.
  auto longest = std::max_element(
      std::begin(outer), std::end(outer), [](auto& a, auto& b) {
        return a.extent < b.extent;
      });
  std::swap(outer[1], *longest);
  auto &b = outer[0], &n = outer[1], &l = outer[2];
  if (b.extent * n.extent * l.extent * D > most) {
    return false;
  }
  c.copy = record;
  c.B = static_cast<uint32_t>(b.extent);
  c.part.N = static_cast<uint32_t>(n.extent);
  c.part.L = static_cast<uint32_t>(l.extent);
  c.part.D = D;
  c.part.x = w.src;
  c.part.cache = w.dst;
  return set_strides(c.part.x_strides, c, t, b.in, n.in, l.in) &&
      set_strides(c.part.cache_strides, c, t, b.out, n.out, l.out);
}

// Whether all of the chain can be accessed four items at a time, as the records
// themselves do.
bool by_fours(const Chain& c, Type t) {
  const RopePart& q = c.part;
  uint64_t bytes = 4 * size_of(t), any = 0;
  for (uint64_t address : {q.x, q.weight, q.normed, q.y, q.cache}) {
    any |= address % bytes;
  }
  for (auto& s :
       {q.x_strides, q.normed_strides, q.y_strides, q.cache_strides}) {
    any |= (s.b | s.n | s.t) % 4;
  }
  return any == 0 && q.D % 4 == 0 && q.half_dims % 4 == 0;
}

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

struct Attempt {
  Program& p;
  uint32_t record;

  bool miss(Miss why) const {
    return p.miss(record, rule_of("rope"), why);
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
    return p.join(number, changed, added, rule_of("rope"), fine);
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

void HeadChains::build(const Program& p, const Group& g, UseBlock use) const {
  RopeCacheArgs args{};
  auto lanes = std::get<RopeCacheVariant>(g.variant).LANES;
  uint32_t teams = rope_cache_group / lanes, most = 0;
  for (uint32_t i = 0; i < chain_count; ++i) {
    const Chain& c = p.chains[chains[i]];
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

void HeadChains::match_rope(Program& p, uint32_t record) {
  Attempt t{p, record};
  Chain plain;
  auto& what = p.what<RopeRecord>(record);
  if (!rope_of(p, record, plain) ||
      !p.kernels.fits_heads(uint64_t(plain.B) * plain.part.N * plain.part.L)) {
    t.miss(Miss::Form);
    return;
  }
  Chain normed = plain;
  uint32_t n = t.norm_of(plain.part);
  bool has_norm = n != none && add_norm(p, n, what.type, normed) &&
      holds_head(plain.part.D, p.what<NormRecord>(n).lanes);
  if (n != none && !has_norm) {
    t.miss(Miss::Form);
  }
  auto add = [&](uint32_t number) {
    return (has_norm && t.add_to(number, normed, what.type, true)) ||
        t.add_to(number, plain, what.type, !has_norm);
  };
  if (!p.any_recent_heads(record, add)) {
    add(static_cast<uint32_t>(p.groups.size()));
  }
}

void HeadChains::match_copy(Program& p, uint32_t record) {
  if (!copies_result({p, record})) {
    copies_heads({p, record});
  }
}

} // namespace mlx::core::vulkan

// The rule of heads: what turns q and k, what norms them before, and what
// copies k and v into a cache, as parts of one dispatch.
#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/copy.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "pipeline/pipeline.h"
#include "runtime/rewrite_group.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

namespace {

using Chain = HeadGroup::Chain;

// How many groups a record may join (Program::can_pass() knows), and how many
// records after their last.
constexpr size_t recent = 2;
constexpr uint32_t near_by = 10;

bool operator==(const HeadStrides& a, const HeadStrides& b) {
  return a.b == b.b && a.n == b.n && a.t == b.t;
}

// Where the operands of a record lie that are heads.
struct Heads {
  uint64_t address = 0; // 0: something else, which is only read
  HeadStrides strides{};
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
    HeadStrides& to,
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

bool rope_of(const Program& p, uint32_t record, Chain& c) {
  auto& what = std::get<RopeRecord>(p.records[record].what);
  uint32_t n = 3 + what.freqs;
  RopeArgs args;
  std::memcpy(&args, p.args_of(record) + 8 * n, sizeof args);
  RopePart& q = c.part;
  c.rope = record;
  c.B = args.B;
  q.x = p.address(record, 0);
  q.offset = p.address(record, 1);
  q.freqs = what.freqs ? p.address(record, 2) : 0;
  q.y = p.address(record, n - 1);
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
  return p.of(record).size() == n && args.d_stride == 1 && q.half_dims > 0 &&
      q.D <= most_head_dims &&
      set_strides(
             q.x_strides,
             c,
             what.type,
             args.b_stride,
             args.n_stride,
             args.t_stride) &&
      set_strides(q.y_strides, c, what.type, head * args.N, head, row);
}

// Makes the norm, which wrote what the chain turns, its first record: each head
// is a row of it.
bool add_norm(const Program& p, uint32_t record, Type t, Chain& c) {
  auto& what = std::get<NormRecord>(p.records[record].what);
  uint32_t n = what.weight ? 3 : 2;
  NormArgs args;
  std::memcpy(&args, p.args_of(record) + 8 * n, sizeof args);
  RopePart& q = c.part;
  uint64_t count = uint64_t(c.B) * q.N * q.L;
  if (what.type != t || args.rows.n != q.D || args.rows.count != count ||
      p.of(record).size() != n ||
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
  HeadStrides normed = q.x_strides;
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

// A copy in items: addresses, and axes of which the last is contiguous if a
// word has several items.
struct Walk {
  struct Axis {
    int64_t extent, in, out;
  };
  uint64_t src, dst;
  Axis axes[4];
  int ndim;
};

template <int NDIM>
bool read_copy(const Program& p, uint32_t record, Walk& w, int word, Type t) {
  CopyArgs<NDIM, int32_t> args;
  std::memcpy(&args, p.args_of(record) + 16, sizeof args);
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
  return p.of(record).size() == 2 && row.in == 1 && row.out == 1;
}

bool copy_of(const Program& p, uint32_t record, Type t, Walk& w) {
  auto [word, ndim] = std::get<CopyRecord>(p.records[record].what);
  switch (ndim) {
    case 1:
      return read_copy<1>(p, record, w, word, t);
    case 2:
      return read_copy<2>(p, record, w, word, t);
    case 3:
      return read_copy<3>(p, record, w, word, t);
    case 4:
      return read_copy<4>(p, record, w, word, t);
    default:
      return false;
  }
}

// Makes the copy, which begins where the chain wrote what it has turned, its
// last record: of all of that, in whatever order.
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
  // Where so many steps of y lead in the cache, if all are on one axis.
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

// A chain of a copy of `most` items at most, in rows of D items.
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
  // Workgroups share out the longest.
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

struct Attempt {
  Program& p;
  const FusedKernels& kernels;
  uint32_t record;

  bool miss(Miss why) {
    auto& row = rewrite_counters().rules[size_t(Rule::Rope)];
    row.missed[size_t(why)].fetch_add(1, std::memory_order_relaxed);
    return false;
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
      rewrite_counters().rules[size_t(Rule::Rope)].fired.fetch_add(
          before == 0 ? changed.size - 1 : added.size(),
          std::memory_order_relaxed);
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
  if (!rope_of(t.p, t.record, plain)) {
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

#include "runtime/rewrite_moe.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "pipeline/pipeline.h"
#include "runtime/rewrite_group.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

namespace {

// How far behind its first record another of a layer may stand.
constexpr uint32_t window = 64;

// The blocks of the two kernels, addresses first.
struct RouterBlock {
  uint64_t x, gates, order, chosen, total, weights;
  RouterArgs args;
};
static_assert(sizeof(RouterBlock) == 6 * 8 + sizeof(RouterArgs) + 4);
constexpr uint32_t router_args_size = 6 * 8 + sizeof(RouterArgs);

// Records that become one, in the place of the first.
struct Chain {
  static constexpr uint32_t most = 5;
  uint32_t members[most];
  uint32_t size = 0;
  const Kernel* kernel = nullptr;
  uint32_t groups = 0; // workgroups
  std::variant<RouterBlock, ExpertArgs> args;

  std::span<const uint32_t> records() const {
    return {members, size};
  }
};

// A record of a gathered product: addresses, then StackedProductArgs.
struct Gathered {
  uint64_t x, w, scales, side = 0, lhs, rhs, y;
  StackedProductArgs args;

  uint32_t products() const {
    return args.stack.batch;
  }
};

class Pass {
 public:
  Pass(const Program& p, FusedKernels& kernels)
      : p_(p), kernels_(kernels), chain_of_(p.records.size(), none) {}

  // False: there is nothing to do.
  bool find() {
    for (uint32_t i = 0; i < p_.records.size(); ++i) {
      if (chain_of_[i] == none) {
        if (what<SoftmaxRecord>(i)) {
          router(i);
        } else if (what<GatheredRecord>(i) && !gate(i)) {
          combine(i);
        }
      }
    }
    return !chains_.empty();
  }

  void replace(
      std::vector<Record>& records,
      std::vector<Access>& accesses,
      std::vector<std::byte>& arguments) const {
    std::vector<Access> joined; // accesses move while they are appended to
    for (auto& c : chains_) {
      joined.clear();
      p_.append_accesses(c.records(), joined);
      Record made = record_of(c, arguments);
      made.first_access = static_cast<uint32_t>(accesses.size());
      made.access_count = static_cast<uint32_t>(joined.size());
      accesses.insert(accesses.end(), joined.begin(), joined.end());
      records[c.members[0]] = made;
      if (p_.log) {
        p_.log->run(c.records(), c.members[0]);
      }
    }
    p_.keep(records, [&](uint32_t i) {
      return chain_of_[i] == none || chains_[chain_of_[i]].members[0] == i;
    });
  }

 private:
  template <typename T>
  const T* what(uint32_t i) const {
    return std::get_if<T>(&p_.records[i].what);
  }
  const Access& read(uint32_t i, uint32_t operand) const {
    return p_.of(i)[operand];
  }
  const Access& output(uint32_t i) const {
    return p_.of(i).back();
  }
  uint64_t output_address(uint32_t i) const {
    return p_.address(i, p_.records[i].access_count - 1);
  }

  // The first record of a kind after `first` for which f is true.
  template <typename T, typename F>
  uint32_t find_after(uint32_t first, F f) const {
    auto end = std::min<size_t>(p_.records.size(), first + window);
    for (uint32_t i = first + 1; i < end; ++i) {
      auto* t = what<T>(i);
      if (t && chain_of_[i] == none && p_.records[i].access_count >= 2 &&
          f(*t, i)) {
        return i;
      }
    }
    return none;
  }

  // Makes it a member that moves up to the first one's place.
  bool join(Chain& c, uint32_t record, Rule rule) {
    // Earlier chains begin before this one, and so do all their members.
    for (uint32_t k = record; k-- > c.members[0];) {
      bool member = std::count(c.members, c.members + c.size, k);
      if (!member && chain_of_[k] == none && p_.conflict(k, record)) {
        return p_.miss(record, rule, Miss::Order);
      }
    }
    c.members[c.size++] = record;
    return true;
  }

  void commit(const Chain& c, Rule rule) {
    for (uint32_t member : c.records()) {
      chain_of_[member] = static_cast<uint32_t>(chains_.size());
    }
    chains_.push_back(c);
    p_.fire(c.records().subspan(1), rule);
  }

  // Whether what is written touches nothing that another invocation of the
  // joined kernel reads or writes: equal ranges where `same` allows it.
  struct Pair {
    const Access *a, *b;
  };
  static bool apart(
      std::span<const Access* const> written,
      std::span<const Access* const> read,
      std::span<const Pair> same) {
    auto fine = [&](const Access* a, const Access* b) {
      return !overlap(*a, *b) ||
          (same_range(*a, *b) &&
           std::any_of(same.begin(), same.end(), [&](auto& p) {
             return (p.a == a && p.b == b) || (p.a == b && p.b == a);
           }));
    };
    for (size_t i = 0; i < written.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!fine(written[i], written[j])) {
          return false;
        }
      }
      for (auto* r : read) {
        if (!fine(written[i], r)) {
          return false;
        }
      }
    }
    return true;
  }

  void router(uint32_t first);
  bool gate(uint32_t first);
  void combine(uint32_t first);
  bool finish(
      Chain& c,
      const ExpertVariant& v,
      ExpertArgs args,
      uint32_t units,
      Rule rule);

  Gathered gathered(uint32_t record) const;
  Record record_of(const Chain& c, std::vector<std::byte>& arguments) const;

  const Program& p_;
  FusedKernels& kernels_;
  std::vector<Chain> chains_;
  std::vector<uint32_t> chain_of_; // by record
};

void Pass::router(uint32_t first) {
  auto& softmax = *what<SoftmaxRecord>(first);
  auto& v = softmax.variant;
  uint32_t rows = softmax.rows, n = softmax.n;
  uint64_t gates = output_address(first);
  Chain c;
  c.members[c.size++] = first;
  auto sort = find_after<ArgSortRecord>(first, [&](auto& s, uint32_t i) {
    return p_.address(i, 0) == gates && s.type == v.T && s.rows == rows &&
        s.n == n;
  });
  if (sort == none) {
    return;
  }
  if (n > ROUTER_MOST || v.CHUNKS == 0 || rows == 0) {
    p_.miss(first, Rule::Router, Miss::Form);
    return;
  }
  if (!join(c, sort, Rule::Router)) {
    return;
  }
  uint64_t order = output_address(sort);
  RouterBlock block{p_.address(first, 0), gates, order, 0, 0, 0, {rows, n}};
  RouterArgs& args = block.args;

  auto take = find_after<TakeRecord>(first, [&](auto& t, uint32_t i) {
    args.first = static_cast<uint32_t>((p_.address(i, 1) - order) / 4);
    return p_.address(i, 0) == gates && p_.address(i, 1) >= order &&
        args.first < n && t.k <= n - args.first && t.item == size_of(v.T) &&
        t.rows == rows && t.n == n && (rows == 1 || t.pitch == n);
  });
  uint32_t sum = none;
  if (take != none && join(c, take, Rule::Router)) {
    args.k = what<TakeRecord>(take)->k;
    block.chosen = output_address(take);
    sum = find_after<SumRecord>(take, [&](auto& s, uint32_t i) {
      return p_.address(i, 0) == block.chosen && s.type == v.T &&
          s.rows == rows && s.extent == args.k && s.inner == 1;
    });
  }
  if (sum != none && join(c, sum, Rule::Router)) {
    args.fours = what<SumRecord>(sum)->fours;
    block.total = output_address(sum);
    auto divide = find_after<PerRowRecord>(sum, [&](auto& d, uint32_t i) {
      return d.divides && p_.address(i, 0) == block.chosen &&
          p_.address(i, 1) == block.total && d.type == v.T && d.rows == rows &&
          d.n == args.k;
    });
    if (divide != none && join(c, divide, Rule::Router)) {
      block.weights = output_address(divide);
    }
  }

  // Each row's workgroup reads x before it writes, and nothing else again.
  const Access* written[Chain::most];
  for (uint32_t i = 0; i < c.size; ++i) {
    written[i] = &output(c.members[i]);
  }
  const Access* x = &read(first, 0);
  Pair same[] = {{written[0], x}, {written[2], written[4]}};
  if (!apart({written, c.size}, {&x, 1}, {same, c.size == 5 ? 2u : 1u})) {
    p_.miss(first, Rule::Router, Miss::Overlap);
    return;
  }
  c.kernel = kernels_.find(RouterVariant{v.T, v.LANES, v.CHUNKS, v.VEC});
  if (!c.kernel) {
    p_.miss(first, Rule::Router, Miss::Kernel);
    return;
  }
  c.args = block;
  c.groups = rows;
  commit(c, Rule::Router);
}

Gathered Pass::gathered(uint32_t record) const {
  uint32_t n = what<GatheredRecord>(record)->variant.SIDE == SIDE_NONE ? 6 : 7;
  auto at = [&](uint32_t i) { return p_.address(record, i); };
  Gathered q{
      at(0),
      at(1),
      at(2),
      n == 7 ? at(3) : 0,
      at(n - 3),
      at(n - 2),
      at(n - 1),
      {}};
  std::memcpy(&q.args, p_.args_of(record) + 8 * n, sizeof q.args);
  return q;
}

// How its indices are walked, if by one or two axes.
std::optional<ExpertSet> set_of(const Gathered& q) {
  auto& s = q.args.stack;
  if (s.ndim > 2) {
    return {};
  }
  ExpertSet set{
      q.w,
      q.scales,
      q.side,
      q.lhs,
      q.rhs,
      q.y,
      {0, 0},
      {0, 0},
      1,
      s.w_matrices};
  for (int d = 0; d < s.ndim; ++d) {
    int to = 2 - s.ndim + d;
    set.lhs_strides[to] = s.strides[0][d];
    set.rhs_strides[to] = s.strides[1][d];
    set.inner = s.shape[d];
  }
  return set;
}

ExpertArgs args_of(const Gathered& q) {
  ExpertArgs a{};
  a.x = q.x;
  a.x_matrix = q.args.stack.x_matrix;
  a.w_matrix = q.args.stack.w_matrix;
  a.scale_matrix = q.args.stack.scale_matrix;
  a.side_matrix = q.args.stack.side_matrix;
  a.x_matrices = q.args.stack.x_matrices;
  a.K = q.args.K;
  a.N = q.args.N;
  return a;
}

// `units`: of what each has workgroups along N.
bool Pass::finish(
    Chain& c,
    const ExpertVariant& v,
    ExpertArgs args,
    uint32_t units,
    Rule rule) {
  if (!kernels_.fits(v)) {
    return p_.miss(c.members[0], rule, Miss::Registers);
  }
  c.kernel = kernels_.find(v);
  if (!c.kernel) {
    return p_.miss(c.members[0], rule, Miss::Kernel);
  }
  args.n_tiles = (args.N + v.part() - 1) / v.part();
  args.groups = c.groups = args.n_tiles * units;
  c.args = args;
  commit(c, rule);
  return true;
}

bool Pass::gate(uint32_t first) {
  auto& v = what<GatheredRecord>(first)->variant;
  Gathered a = gathered(first);
  const Access& y = output(first);
  uint32_t up = none;
  auto gate = find_after<GateRecord>(first, [&](auto& g, uint32_t i) {
    auto operands = p_.of(i);
    if (operands.size() != 3) {
      return false;
    }
    uint32_t mine = same_range(operands[0], y) ? 0 : 1;
    if (!same_range(operands[mine], y)) {
      return false;
    }
    up = find_after<GatheredRecord>(first, [&](auto&, uint32_t j) {
      return j < i && same_range(output(j), operands[1 - mine]);
    });
    return up != none && g.type == v.T;
  });
  if (gate == none) {
    return false;
  }
  auto& g = *what<GateRecord>(gate);
  Gathered b = gathered(up);
  auto &s = a.args.stack, &t = b.args.stack;
  auto set = set_of(a), other = set_of(b);
  if (!sums_alike(v, what<GatheredRecord>(up)->variant) || a.x != b.x ||
      a.args.K != b.args.K || a.args.N != b.args.N || s.batch != t.batch ||
      s.x_matrix != t.x_matrix || s.x_matrices != t.x_matrices ||
      s.w_matrix != t.w_matrix || s.scale_matrix != t.scale_matrix ||
      s.side_matrix != t.side_matrix || !set || !other) {
    return p_.miss(first, Rule::Experts, Miss::Form);
  }
  Chain c;
  c.members[c.size++] = first;
  if (!join(c, up, Rule::Experts) || !join(c, gate, Rule::Experts)) {
    return false;
  }
  const Access* written[3];
  std::vector<const Access*> reads;
  for (uint32_t i = 0; i < 3; ++i) {
    written[i] = &output(c.members[i]);
    for (auto& access : p_.of(c.members[i])) {
      if (i < 2 && !access.write) {
        reads.push_back(&access);
      }
    }
  }
  Pair same[] = {{written[0], written[2]}, {written[1], written[2]}};
  if (!apart(written, reads, same)) {
    return p_.miss(first, Rule::Experts, Miss::Overlap);
  }
  ExpertArgs args = args_of(a);
  bool gate_first = same_range(read(gate, g.operand), y);
  args.sets[0] = gate_first ? *set : *other;
  args.sets[1] = gate_first ? *other : *set;
  args.gated = output_address(gate);
  return finish(c, gated_experts(v, g.gate), args, a.products(), Rule::Experts);
}

void Pass::combine(uint32_t first) {
  auto& v = what<GatheredRecord>(first)->variant;
  Gathered q = gathered(first);
  uint32_t n = q.args.N;
  auto scale = find_after<PerRowRecord>(first, [&](auto& s, uint32_t i) {
    return !s.divides && p_.address(i, 0) == q.y && s.type == v.T &&
        s.rows == q.products() && s.n == n;
  });
  if (scale == none) {
    return;
  }
  uint64_t weighted = output_address(scale);
  auto sum = find_after<SumRecord>(scale, [&](auto& s, uint32_t i) {
    return p_.address(i, 0) == weighted && s.type == v.T && s.inner == n &&
        uint64_t(s.rows) * s.extent == q.products();
  });
  if (sum == none) {
    return;
  }
  auto& s = *what<SumRecord>(sum);
  auto set = set_of(q);
  if (!set || s.extent < 2 || s.extent > most_mixed_experts) {
    p_.miss(first, Rule::Combine, Miss::Form);
    return;
  }
  Chain c;
  c.members[c.size++] = first;
  if (!join(c, scale, Rule::Combine) || !join(c, sum, Rule::Combine)) {
    return;
  }
  const Access& mixed = output(sum);
  uint32_t own = 0;
  auto add = find_after<AddRecord>(sum, [&](auto& a, uint32_t i) {
    auto operands = p_.of(i);
    own = operands.size() == 3 && same_range(operands[0], mixed) ? 0 : 1;
    return operands.size() == 3 && same_range(operands[own], mixed) &&
        !same_range(operands[1 - own], mixed) && a.type == v.T;
  });
  if (add != none && !join(c, add, Rule::Combine)) {
    add = none;
  }
  std::vector<const Access*> written, reads;
  for (uint32_t member : c.records()) {
    written.push_back(&output(member));
  }
  for (auto& access : p_.of(first)) {
    if (!access.write) {
      reads.push_back(&access);
    }
  }
  reads.push_back(&read(scale, 1));
  std::vector<Pair> same{{written[0], written[1]}};
  if (add != none) {
    reads.push_back(&read(add, 1 - own));
    same.push_back({written[3], reads.back()});
    same.push_back({written[3], written[2]});
  }
  if (!apart(written, reads, same)) {
    p_.miss(first, Rule::Combine, Miss::Overlap);
    return;
  }
  ExpertArgs args = args_of(q);
  args.sets[0] = *set;
  args.weights = p_.address(scale, 1);
  args.weighted = weighted;
  args.mixed = output_address(sum);
  if (add != none) {
    args.addend = p_.address(add, 1 - own);
    args.sum = output_address(add);
  }
  args.fours = s.fours;
  finish(c, mixed_experts(v, s.extent), args, s.rows, Rule::Combine);
}

Record Pass::record_of(const Chain& c, std::vector<std::byte>& arguments)
    const {
  Record r;
  r.kernel = c.kernel;
  r.grid = linear(c.groups);
  auto* router = std::get_if<RouterBlock>(&c.args);
  r.args_size = router ? router_args_size : sizeof(ExpertArgs);
  r.args_in_memory = r.kernel->args_in_memory(r.args_size);
  const void* block =
      router ? static_cast<const void*>(router) : &std::get<ExpertArgs>(c.args);
  std::memcpy(room_for_args(arguments, r), block, r.args_size);
  for (uint32_t member : c.records()) {
    r.bytes += p_.records[member].bytes;
    r.seconds += p_.records[member].seconds;
  }
  return r;
}

} // namespace

void rewrite_experts(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log) {
  bool any = std::any_of(records.begin(), records.end(), [](auto& r) {
    return std::holds_alternative<GatheredRecord>(r.what) ||
        std::holds_alternative<ArgSortRecord>(r.what);
  });
  if (!any) {
    return;
  }
  Program p(records, accesses, arguments, log);
  Pass pass(p, kernels);
  if (pass.find()) {
    pass.replace(records, accesses, arguments);
  }
}

} // namespace mlx::core::vulkan

// The rules of groups of quantized products: siblings, residual, gate, norm.
#include <algorithm>
#include <utility>

#include "kernels/rows.h"
#include "pipeline/pipeline.h"
#include "runtime/rewrite_group.h"
#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

namespace {

constexpr size_t recent = 6; // groups that a record may join

// Each workgroup norms the row again: so many bytes read a product are less
// than a dispatch and its level (8 MiB of an H200's cache take about 2 us, and
// a product rarely comes alone).
constexpr uint64_t most_norming_bytes = 4 << 20;

// A record of a product: addresses, then ProductArgs.
struct Product {
  uint64_t x, w, scales, side = 0, y;
  ProductArgs args;
};

const ProductVariant& format_of(const Program& p, uint32_t record) {
  return std::visit(
      [](auto& v) -> const ProductVariant& { return v; },
      std::get<ProductRecord>(p.records[record].what).variant);
}
Type type_of(const Group& g) {
  return std::visit([](auto& v) { return v.T; }, g.variant);
}

Product product_of(const Program& p, uint32_t record) {
  uint32_t n = format_of(p, record).SIDE == SIDE_NONE ? 4 : 5;
  Product q{
      p.address(record, 0),
      p.address(record, 1),
      p.address(record, 2),
      n == 5 ? p.address(record, 3) : 0,
      p.address(record, n - 1),
      {}};
  std::memcpy(&q.args, p.args_of(record) + 8 * n, sizeof q.args);
  return q;
}

NormArgs norm_of(const Program& p, uint32_t record) {
  NormArgs args;
  uint32_t n = std::get<NormRecord>(p.records[record].what).weight ? 3 : 2;
  std::memcpy(&args, p.args_of(record) + 8 * n, sizeof args);
  return args;
}

// Its output is its last access.
const Access& output_of(const Program& p, uint32_t record) {
  return p.of(record).back();
}

uint32_t workgroups(const Product& q, const QmvVariant& v) {
  return (q.args.N + v.BLOCK - 1) / v.BLOCK * q.args.m_tiles;
}

// Whether a norm's operands allow loads of 16 bytes.
bool norms_in_packs(const Program& p, uint32_t norm) {
  uint64_t addresses = 0;
  for (uint32_t i = 0; i < p.of(norm).size(); ++i) {
    addresses |= p.address(norm, i);
  }
  return addresses % 16 == 0;
}

struct Attempt {
  Program& p;
  const FusedKernels& kernels;
  uint32_t record;
  Rule rule;

  bool miss(Miss why) const {
    return p.miss(record, rule, why);
  }

  // What workgroups share must not change meanwhile: of what record and group
  // both touch and one writes, only ranges that are `own` to an invocation may
  // be the same.
  bool only_shares(const Group& g, std::span<const Access> own) const {
    for (uint32_t member : g.records()) {
      for (const auto& a : p.of(member)) {
        for (const auto& b : p.of(record)) {
          if ((a.write || b.write) && overlap(a, b)) {
            bool fine = std::any_of(own.begin(), own.end(), [&](auto& o) {
              return same_range(o, a) && same_range(o, b) && a.write;
            });
            if (!fine) {
              return false;
            }
          }
        }
      }
    }
    return true;
  }

  // What the group's norm made: every workgroup has its own.
  std::span<const Access> normed(const Group& g) const {
    return g.norm == none ? std::span<const Access>{}
                          : std::span(&output_of(p, g.norm), 1);
  }

  // Makes the record a member of groups[g], which becomes `changed`.
  bool join(size_t g, Group& changed, std::span<const Access> own) {
    if (changed.size == Group::most) {
      return miss(Miss::Form);
    }
    if (!only_shares(changed, own)) {
      return miss(Miss::Overlap);
    }
    auto number = static_cast<uint32_t>(g);
    if (!p.can_pass(record, number, changed.first())) {
      return miss(Miss::Order);
    }
    auto fits = [&](auto& v) { return kernels.fits(v); };
    if (!std::visit(fits, changed.variant)) {
      return miss(Miss::Registers);
    }
    auto refused = [&](auto& v) { return kernels.refused(v); };
    if (std::visit(refused, changed.variant)) {
      return miss(Miss::Kernel);
    }
    changed.add(record);
    p.group_of[record] = number;
    p.groups[g] = changed;
    p.fire({&record, 1}, rule);
    return true;
  }
};

// The last groups, newest first, until f is true.
template <typename F>
bool any_recent(const Program& p, F f) {
  size_t n = p.groups.size();
  for (size_t i = 0; i < std::min(n, recent); ++i) {
    if (f(n - 1 - i)) {
      return true;
    }
  }
  return false;
}

bool siblings(Attempt t, const ProductRecord& what) {
  Product q = product_of(t.p, t.record);
  return any_recent(t.p, [&](size_t i) {
    const Group& g = t.p.groups[i];
    Product first = product_of(t.p, g.sets[0].product);
    bool same = first.x == q.x && first.args.M == q.args.M &&
        first.args.K == q.args.K &&
        (q.args.M == 1 || first.args.x_row == q.args.x_row);
    if (!same) {
      return false;
    }
    auto several = beside(g.variant, what.variant, q.args.N > first.args.N);
    if (g.gate != none || g.set_count == MAX_SETS || !several) {
      return t.miss(Miss::Form);
    }
    Group changed = g;
    changed.variant = *several;
    changed.sets[changed.set_count++] = {t.record};
    return t.join(i, changed, t.normed(g));
  });
}

bool residual(Attempt t, const AddRecord& what) {
  auto operands = t.p.of(t.record);
  if (operands.size() != 3 || same_range(operands[0], operands[1])) {
    return false;
  }
  return any_recent(t.p, [&](size_t i) {
    const Group& g = t.p.groups[i];
    for (uint32_t s = 0; s < g.set_count; ++s) {
      const Access& y = output_of(t.p, g.sets[s].product);
      bool first = same_range(y, operands[0]);
      if (!first && !same_range(y, operands[1])) {
        continue;
      }
      if (g.gate != none || g.sets[s].adder != none ||
          type_of(g) != what.type) {
        return t.miss(Miss::Form);
      }
      Group changed = g;
      changed.sets[s].adder = t.record;
      changed.sets[s].adds_first = first;
      return t.join(i, changed, {&y, 1});
    }
    return false;
  });
}

bool gate(Attempt t, const GateRecord& what) {
  auto operands = t.p.of(t.record);
  if (operands.size() != 3 || same_range(operands[0], operands[1])) {
    return false;
  }
  return any_recent(t.p, [&](size_t i) {
    const Group& g = t.p.groups[i];
    if (g.set_count < 2) {
      return false;
    }
    Access own[2]{
        output_of(t.p, g.sets[0].product), output_of(t.p, g.sets[1].product)};
    const Access& gate = operands[what.operand];
    uint32_t set = same_range(own[0], gate) ? 0 : 1;
    if (!same_range(own[set], gate) ||
        !same_range(own[1 - set], operands[1 - what.operand])) {
      return false;
    }
    auto variant = gated_product(g.variant, what.gate);
    if (g.set_count != 2 || g.gate != none || g.sets[0].adder != none ||
        g.sets[1].adder != none || type_of(g) != what.type || !variant) {
      return t.miss(Miss::Form);
    }
    Group changed = g;
    changed.gate = t.record;
    changed.gate_set = set;
    changed.variant = *variant;
    return t.join(i, changed, own);
  });
}

// A group of the last norm and the product of what it made.
bool norm(Attempt t, const ProductRecord& what) {
  uint32_t n = t.p.last_norm;
  Access x = t.p.of(t.record)[0];
  if (n == none || !same_range(output_of(t.p, n), x)) {
    return false;
  }
  auto& found = std::get<NormRecord>(t.p.records[n].what);
  Product q = product_of(t.p, t.record);
  auto* matvec = std::get_if<QmvVariant>(&what.variant);
  if (!matvec) { // of many rows
    return t.miss(Miss::Form);
  }
  auto& v = *matvec;
  NormArgs args = norm_of(t.p, n);
  if (found.type != v.T || !found.vec || !v.VEC || q.args.M != 1 ||
      v.ROWS != 1 || args.rows.count != 1 || args.rows.n != q.args.K ||
      q.args.K * size_of(v.T) > most_normed_bytes ||
      (v.COOPMAT ? !norms_in_packs(t.p, n)
                 : workgroups(q, v) * uint64_t(2 * args.rows.n * size_of(v.T)) >
               most_norming_bytes)) {
    return t.miss(Miss::Form);
  }
  if (overlap(t.p.of(n)[0], x)) { // it norms in place
    return t.miss(Miss::Overlap);
  }
  size_t number = t.p.groups.size();
  Group g(v);
  g.add(n);
  g.norm = n;
  t.p.groups.push_back(g);
  t.p.group_of[n] = static_cast<uint32_t>(number);
  g.variant = normed_matvec(fused_matvec(v, false), q.args.K, found.lanes);
  g.sets[0].product = t.record;
  if (t.join(number, g, t.normed(g))) {
    t.p.last_norm = none;
    return true;
  }
  t.p.groups.pop_back();
  t.p.group_of[n] = none;
  return false;
}

} // namespace

void match(Program& p, uint32_t record, const FusedKernels& kernels) {
  auto& what = p.records[record].what;
  auto attempt = [&](Rule rule) { return Attempt{p, kernels, record, rule}; };
  if (auto* add = std::get_if<AddRecord>(&what)) {
    residual(attempt(Rule::Residual), *add);
  } else if (auto* g = std::get_if<GateRecord>(&what)) {
    gate(attempt(Rule::Gate), *g);
  } else if (std::holds_alternative<NormRecord>(what)) {
    p.last_norm = record;
  } else if (auto* product = std::get_if<ProductRecord>(&what)) {
    if (!siblings(attempt(Rule::Siblings), *product) &&
        !norm(attempt(Rule::Norm), *product)) {
      Group g(product->variant);
      g.add(record);
      g.sets[0].product = record;
      p.group_of[record] = static_cast<uint32_t>(p.groups.size());
      p.groups.push_back(g);
    }
  }
}

Record
build(const Program& p, const Group& g, std::vector<std::byte>& arguments) {
  FusedMatvecArgs<MAX_SETS> args{};
  uint32_t outputs = set_outputs(g.variant);
  uint32_t tiles = 0;
  for (uint32_t s = 0; s < g.set_count; ++s) {
    auto& set = g.sets[g.gate == none ? s : s ^ g.gate_set];
    Product q = product_of(p, set.product);
    if (s == 0) {
      args.x = q.x;
      args.x_row = q.args.x_row;
      args.M = q.args.M;
      args.K = q.args.K;
      args.m_tiles = q.args.m_tiles;
    }
    MatvecSet& m = args.sets[s];
    m = {q.w, q.scales, q.side, q.y, 0, 0, q.args.N, 0};
    m.tiles = (m.N + outputs - 1) / outputs;
    tiles += g.gate == none || s == 0 ? m.tiles : 0;
    if (set.adder != none) {
      m.addend = p.address(set.adder, set.adds_first ? 1 : 0);
      m.sum = p.address(set.adder, 2);
    }
  }
  if (g.norm != none) {
    bool weight = std::get<NormRecord>(p.records[g.norm].what).weight;
    NormArgs norm = norm_of(p, g.norm);
    args.x = p.address(g.norm, 0);
    args.norm_weight = weight ? p.address(g.norm, 1) : 0;
    args.normed = p.address(g.norm, weight ? 2 : 1);
    args.eps = norm.eps;
    args.inverse_n = norm.inverse_n;
  }
  if (g.gate != none) {
    args.gated = p.address(g.gate, 2);
  }
  args.groups = tiles * args.m_tiles;
  args.set_count = g.set_count;

  uint32_t room = std::visit([](auto& v) { return v.SETS; }, g.variant);
  Record r;
  r.kernel = g.kernel;
  r.grid = linear(args.groups);
  r.args_size = static_cast<uint32_t>(
      offsetof(FusedMatvecArgs<MAX_SETS>, sets) + room * sizeof(MatvecSet));
  r.args_in_memory = r.kernel->args_in_memory(r.args_size);
  std::memcpy(room_for_args(arguments, r), &args, r.args_size);
  return r;
}

} // namespace mlx::core::vulkan

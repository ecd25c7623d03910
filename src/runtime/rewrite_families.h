// The families of fusions. Each is one struct: the kernels of its groups, what
// a group holds, build() for the argument block, and patterns, which name the
// rules. `Families` lists them; kernels, rules and counters follow from the
// list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <variant>

#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

constexpr uint32_t none = ~0u;

// The number of a descriptor R among all.
template <typename R, size_t I = 0>
constexpr uint8_t kind_of() {
  if constexpr (std::is_same_v<R, std::variant_alternative_t<I, Descriptor>>) {
    return I;
  } else {
    return kind_of<R, I + 1>();
  }
}

class Program;
struct Group;
struct Match;
// build() calls use(block, its bytes, workgroups).
using UseBlock = const std::function<void(const void*, size_t, uint64_t)>&;

// An edge of a pattern: an operand of one record, and the record that wrote it.
struct Edge {
  static constexpr int8_t either = -1; // the first or the second operand
  // What the operand is: all of that record's output; a part of it, or heads
  // that begin where it does, which the condition compares; or not made, but
  // the first operand of that record too.
  enum Link : uint8_t { Output, Part, SameHeads, Input };

  int8_t operand = 0;
  uint8_t kind = 0; // of the record that made the operand
  uint8_t from =
      0; // whose operand: node 0, or node n + 1, to which edge n leads
  bool over = false; // `from` may write its own result there
  Link link = Output;
  bool optional = false;
};
// Edges to a record R, from the first or second operand if none is given.
template <typename R>
constexpr Edge reads(int8_t operand, uint8_t from = 0) {
  return {operand, kind_of<R>(), from};
}
template <typename R>
constexpr Edge reads_part(int8_t operand) {
  return {.operand = operand, .kind = kind_of<R>(), .link = Edge::Part};
}
template <typename R>
constexpr Edge overwrites(int8_t operand = Edge::either, uint8_t from = 0) {
  return {operand, kind_of<R>(), from, true};
}
template <typename R>
constexpr Edge takes_heads(bool over) {
  return {.kind = kind_of<R>(), .over = over, .link = Edge::SameHeads};
}

enum class Rule : uint8_t {};
enum class Verdict : uint8_t { No, Yes, Form, Overlap };
using Condition = Verdict (*)(Match&); // changes the group

// A rule: which record joins which group, what connects them and what must
// hold. What may overlap follows from the edges.
struct Pattern {
  // Begins: the nodes, which are in no group, become one. Joins: node 0 joins
  // the others' group. Extends: the nodes join one of the family's last groups,
  // which runs last, whatever they read; or they begin one.
  enum To : uint8_t { Begins, Joins, Extends };

  std::string_view name; // of its rule
  uint8_t kind; // of node 0, which comes last
  To to;
  Condition condition;
  Edge edges[2] = {}; // up to the first without a kind
  uint8_t family = 0; // numbers that the engine gives
  Rule rule{};

  constexpr uint32_t edge_count() const {
    return edges[0].kind == 0 ? 0 : edges[1].kind == 0 ? 1 : 2;
  }
};
// Patterns whose node 0 is a record R.
template <typename R>
constexpr Pattern
begins(std::string_view name, Condition c, Edge first = {}, Edge second = {}) {
  return {name, kind_of<R>(), Pattern::Begins, c, {first, second}};
}
template <typename R>
constexpr Pattern
joins(std::string_view name, Condition c, Edge first, Edge second = {}) {
  return {name, kind_of<R>(), Pattern::Joins, c, {first, second}};
}
template <typename R>
constexpr Pattern extends(std::string_view name, Condition c, Edge first = {}) {
  return {name, kind_of<R>(), Pattern::Extends, c, {first}};
}

// Products of the same rows, with what precedes and follows them
// (rewrite_matvec.cpp).
struct Products {
  using Kernels = std::variant<FusedQmvVariant, FusedFragmentsVariant>;

  struct Set {
    uint32_t product = none; // the record
    uint32_t adder = none;
    int8_t summand = 0; // which operand of the adder is y
  };
  Set sets[MAX_SETS];
  uint32_t set_count = 1;
  uint32_t norm = none, gate = none;
  uint32_t gate_set = 0; // which set is the gate, not what it gates

  static Verdict sibling(Match&), normed(Match&), first(Match&),
      residual(Match&), gated(Match&);
  void build(const Program&, const Group&, UseBlock) const;

  static constexpr Edge same_rows{
      .kind = kind_of<ProductRecord>(),
      .link = Edge::Input};
  // The output of the group's norm, which every workgroup computes itself.
  static constexpr Edge own_rows{
      .kind = kind_of<NormRecord>(),
      .optional = true};
  static constexpr Pattern patterns[]{
      joins<ProductRecord>("siblings", sibling, same_rows, own_rows),
      joins<AddRecord>("residual", residual, overwrites<ProductRecord>()),
      joins<GateRecord>(
          "gate",
          gated,
          overwrites<ProductRecord>(GateRecord::A),
          overwrites<ProductRecord>(GateRecord::B)),
      begins<ProductRecord>(
          "norm",
          normed,
          reads<NormRecord>(ProductRecord::X)),
      begins<ProductRecord>("siblings", first)};
};

// Heads of q, k and v on their way to attention (rewrite_rope.cpp). k and v may
// be computed between the members: a group runs in the place of its last one. A
// record that reads what an earlier member writes waits for that one anyway.
struct HeadChains {
  using Kernels = std::variant<RopeCacheVariant>;
  static constexpr bool runs_last = true;

  // Records on some heads, one after the other, or a copy of them alone.
  struct Chain {
    uint32_t norm = none, rope = none, copy = none;
  };
  Chain chains[MAX_ROPE_PARTS];
  uint32_t chain_count = 0;
  uint32_t D = 0;
  uint32_t lanes = 0; // of the norms

  static Verdict rotated(Match&), cached(Match&), copied(Match&);
  void build(const Program&, const Group&, UseBlock) const;

  static constexpr Pattern patterns[]{
      extends<RopeRecord>("rope", rotated, takes_heads<NormRecord>(true)),
      extends<RopeRecord>("rope", rotated),
      joins<CopyRecord>("rope", cached, takes_heads<RopeRecord>(false)),
      extends<CopyRecord>("rope", copied)};
};

// A layer's router of experts: the operations after its softmax
// (rewrite_moe.cpp, as the next).
struct Router {
  using Kernels = std::variant<RouterVariant>;

  uint32_t softmax, sort, take = none, sum = none, divide = none;

  static Verdict order(Match&), choice(Match&), total(Match&), weights(Match&);
  void build(const Program&, const Group&, UseBlock) const;

  static constexpr Pattern patterns[]{
      begins<ArgSortRecord>(
          "router",
          order,
          reads<SoftmaxRecord>(ArgSortRecord::X)),
      joins<TakeRecord>(
          "router",
          choice,
          reads<SoftmaxRecord>(TakeRecord::X),
          reads_part<ArgSortRecord>(TakeRecord::Index)),
      joins<SumRecord>("router", total, reads<TakeRecord>(SumRecord::X)),
      joins<PerRowRecord>(
          "router",
          weights,
          overwrites<TakeRecord>(PerRowRecord::A),
          reads_part<SumRecord>(PerRowRecord::B))};
};

// The chosen experts: gate, up and their gated product, or their outputs'
// weights, sum and residual.
struct Experts {
  using Kernels = std::variant<ExpertVariant>;

  uint32_t product; // of the gate, if there is one
  uint32_t up = none, gate = none;
  uint32_t scale = none, sum = none, adder = none;
  uint32_t addend = 0; // which operand of the adder

  static Verdict gated(Match&), combined(Match&), residual(Match&);
  void build(const Program&, const Group&, UseBlock) const;

  static constexpr Pattern patterns[]{
      begins<GateRecord>(
          "experts",
          gated,
          overwrites<GatheredRecord>(GateRecord::A),
          overwrites<GatheredRecord>(GateRecord::B)),
      begins<SumRecord>(
          "combine",
          combined,
          reads<PerRowRecord>(SumRecord::X),
          overwrites<GatheredRecord>(PerRowRecord::A, 1)),
      joins<AddRecord>("combine", residual, overwrites<SumRecord>())};
};

// Attention over a quantized cache: the records before the product that is
// being encoded (rewrite_attention.h). Node 0 is their softmax; scores, mask
// and softmax have one place.
struct QuantizedAttention {
  static constexpr std::string_view name = "attention";
  static constexpr Edge edges[]{
      reads<ScoresRecord>(SoftmaxRecord::X),
      reads<MaskRecord>(SoftmaxRecord::X),
      reads<PerRowRecord>(ScoresRecord::X, 1)};
};

// Whether a family's groups run in the place of their last record.
template <typename F>
constexpr bool runs_last = requires {
  F::runs_last;
};

template <typename... F>
struct FamilyList {
  using Parts = std::variant<F...>;
  using Kernel = decltype((... + std::declval<typename F::Kernels>()));
  static constexpr bool run_last[] = {runs_last<F>...};

  // Calls f(pattern) for all, each with its family's number, in the order in
  // which they are tried.
  static constexpr void each_pattern(auto f) {
    uint8_t family = 0;
    auto each = [&](auto& patterns) {
      for (Pattern p : patterns) {
        p.family = family;
        f(p);
      }
      ++family;
    };
    (each(F::patterns), ...);
  }
};
template <typename... V, typename... W>
std::variant<V..., W...> operator+(std::variant<V...>, std::variant<W...>);

// An empty group holds the first one, whose kernel has a default.
using Families = FamilyList<HeadChains, Products, Router, Experts>;
using JoinedKernel = Families::Kernel;

inline bool fit_registers(const Policy& policy, const JoinedKernel& kernel) {
  return std::visit([&](auto& v) { return fits_registers(policy, v); }, kernel);
}

// The names of the rules, by number.
struct RuleNames {
  std::string_view names[32];
  size_t count = 0;

  constexpr size_t find(std::string_view name) const {
    return std::find(names, names + count, name) - names;
  }
  constexpr void add(std::string_view name) {
    names[count] = name;
    count += find(name) == count;
  }
};
constexpr RuleNames rule_names = [] {
  RuleNames all;
  Families::each_pattern([&](auto& p) { all.add(p.name); });
  all.add(QuantizedAttention::name);
  return all;
}();
consteval Rule rule_of(std::string_view name) {
  size_t rule = rule_names.find(name);
  return rule < rule_names.count ? Rule(rule) : throw name;
}
inline const char* name_of(Rule rule) {
  return rule_names.names[size_t(rule)].data();
}

} // namespace mlx::core::vulkan

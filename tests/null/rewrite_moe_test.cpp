// Rewrites of layers of experts: lists in, lists out, near misses with their
// reasons, and random lists with donation, aliasing and what comes between.
#include <doctest/doctest.h>

#include <cstdlib>

#include "null/rewrite_experts.h"

using namespace rewriting;

namespace {

constexpr Cells x{1}, h{2}, gates{3}, ranks{4}, scores{5, 0, 2}, total{6, 0, 1},
    weights{7, 0, 2}, chosen{4, 2, 2}, none_given{8, 0, 2};
constexpr Cells w1{11, 0, 4}, w2{12, 0, 4}, w3{13, 0, 4};
constexpr Cells up{21, 0, 8}, gate{22, 0, 8}, gated{23, 0, 8}, down{24, 0, 8},
    weighted{25, 0, 8}, mixed{26}, z{31};

// Rewrites the list, which then has `records` records, and runs both forms.
struct Rewritten {
  Rewritten(ExpertList list, size_t records) : after(list) {
    after.rewrite(kernels);
    CHECK(after.records.size() == records);
    ExpertMachine plain(1), fused(2);
    plain.run(list, kernels);
    fused.run(after, kernels);
    CHECK(plain.memory() == fused.memory());
  }
  const ExpertVariant& variant(size_t i) const {
    auto* v = kernels.get<ExpertVariant>(after.records[i].kernel);
    REQUIRE(v);
    return *v;
  }
  ExpertArgs args(size_t i) const {
    ExpertArgs a;
    std::memcpy(&a, after.args_of(after.records[i]), sizeof a);
    return a;
  }
  Kernels kernels;
  ExpertList after;
};

ExpertList routed(Cells to = gates, Cells result = weights) {
  ExpertList l;
  l.softmax(x, to).sort(to, ranks).take(to, chosen, scores);
  l.sum_up(scores, total, 1, 1).per_row(scores, total, result, true);
  return l;
}

ExpertList gated_pair(Cells to = gated) {
  ExpertList l;
  l.product_of(x, w1, {none_given, 0, 0}, {chosen}, up);
  l.product_of(x, w2, {none_given, 0, 0}, {chosen}, gate);
  l.gate(gate, up, to);
  return l;
}

ExpertList mixing(Cells to = weighted) {
  ExpertList l;
  l.product_of(gated, w3, {none_given}, {chosen}, down);
  l.per_row(down, weights, to, false).sum_up(to, mixed, 1, 4);
  return l;
}

} // namespace

TEST_CASE("rewrite experts: a router") {
  {
    Rewritten r(routed(), 1);
    CHECK(r.after.records[0].grid.x == 1);
    CHECK(r.after.records[0].args_size == 64);
    CHECK(r.kernels.count<RouterVariant>() == 1);
  }
  // The logits' memory, and the scores', go on.
  Rewritten(routed(x), 1);
  Rewritten(routed(gates, scores), 1);
  // As far as it goes: the rest may be in another batch, or another model's.
  ExpertList l;
  l.softmax(x, gates).sort(gates, ranks);
  Rewritten(l, 1);
  Rewritten(l.take(gates, chosen, scores), 1);
  Rewritten(l.sum_up(scores, total, 1, 1), 1);
  // Others read what it makes, between and after.
  ExpertList others;
  others.softmax(x, gates).sort(gates, ranks).other({ranks}, z);
  others.take(gates, chosen, scores).other({gates}, h);
  Rewritten(others, 3);
}

TEST_CASE("rewrite experts: a router of several rows") {
  Cells x{1, 0, 8}, gates{3, 0, 8}, ranks{4, 0, 8}, chosen{4, 2, 6},
      scores{5, 0, 4}, total{6, 0, 2};
  ExpertList l;
  l.softmax(x, gates, 2).sort(gates, ranks, 2).take(gates, chosen, scores, 2);
  l.sum_up(scores, total, 2, 1).per_row(scores, total, scores, true);
  Rewritten r(l, 1);
  CHECK(r.after.records[0].grid.x == 2);
  // An index whose rows are not those of the order.
  ExpertList other;
  other.softmax(x, gates, 2).sort(gates, ranks, 2);
  other.take(gates, {4, 2, 4}, scores, 2, 2);
  Rewritten(other, 2);
}

TEST_CASE("rewrite experts: not every router") {
  auto orders = missed(rule_of("router"), Miss::Order),
       overlaps = missed(rule_of("router"), Miss::Overlap),
       forms = missed(rule_of("router"), Miss::Form);
  // Of something else; without a sort.
  ExpertList l;
  Rewritten(l.softmax(x, gates).sort(h, ranks), 2);
  // The gates change before they are sorted; so does the order before use.
  ExpertList changed;
  changed.softmax(x, gates).other({}, gates).sort(gates, ranks);
  Rewritten(changed, 3);
  CHECK(missed(rule_of("router"), Miss::Order) == orders + 1);
  ExpertList index;
  index.softmax(x, gates).sort(gates, ranks).other({}, ranks);
  Rewritten(index.take(gates, chosen, scores), 3);
  CHECK(missed(rule_of("router"), Miss::Order) == orders + 2);
  // The order takes the logits' memory, of which others are yet to be read.
  ExpertList over;
  Rewritten(over.softmax(x, gates).sort(gates, x), 2);
  CHECK(missed(rule_of("router"), Miss::Overlap) == overlaps + 1);
  // More items than wait in shared memory, or than a team keeps.
  Cells long_x{1, 0, 516}, long_gates{3, 0, 516}, long_order{4, 0, 516};
  ExpertList large;
  large.softmax(long_x, long_gates).sort(long_gates, long_order);
  Rewritten(large, 2);
  ExpertList twice;
  Rewritten(twice.softmax(x, gates, 1, 0).sort(gates, ranks), 2);
  CHECK(missed(rule_of("router"), Miss::Form) == forms + 2);
}

TEST_CASE("rewrite experts: gate and up") {
  for (Cells to : {gated, up, gate}) {
    Rewritten r(gated_pair(to), 1);
    CHECK(r.variant(0).GATE == GATE_SILU);
    auto a = r.args(0);
    CHECK(a.sets[0].w == w2.address());
    CHECK(a.sets[1].w == w1.address());
    CHECK(a.gated == to.address());
    // Two products, of which a workgroup has part() = 1 of 4 outputs.
    CHECK(r.variant(0).part() == 1);
    CHECK(a.groups == 8);
  }
  // Rows of x by index, of several rows: each set has indices of its own.
  Cells rows{1, 0, 8}, up{21, 0, 16}, gate{22, 0, 16}, gated{23, 0, 16};
  ExpertList l;
  l.product_of(rows, w1, {{8, 0, 2}, 1, 0}, {{4, 2, 6}, 4, 1}, up, 4);
  l.product_of(rows, w2, {{9, 0, 2}, 1, 0}, {{4, 2, 6}, 4, 1}, gate, 4);
  l.gate(gate, up, gated);
  Rewritten r(l, 1);
  CHECK(r.args(0).x_matrix == 4);
}

TEST_CASE("rewrite experts: not every gate and up") {
  auto orders = missed(rule_of("experts"), Miss::Order),
       overlaps = missed(rule_of("experts"), Miss::Overlap),
       forms = missed(rule_of("experts"), Miss::Form);
  // Of other rows, or in another order of summation.
  for (bool rows : {true, false}) {
    auto v = gathered_matvec();
    v.CHUNK = rows ? v.CHUNK : 16;
    ExpertList l;
    l.product_of(x, w1, {none_given, 0, 0}, {chosen}, up);
    l.product_of(rows ? h : x, w2, {none_given, 0, 0}, {chosen}, gate, 2, 2, v);
    l.gate(gate, up, gated);
    Rewritten(l, 3);
  }
  CHECK(missed(rule_of("experts"), Miss::Form) == forms + 2);
  // Over the rows that other workgroups read; x has as many items as the gate.
  Cells wide{1, 0, 8};
  ExpertList over;
  over.product_of(wide, w1, {none_given}, {chosen}, up);
  over.product_of(wide, w2, {none_given}, {chosen}, gate);
  over.gate(gate, up, wide);
  Rewritten(over, 3);
  CHECK(missed(rule_of("experts"), Miss::Overlap) == overlaps + 1);
  // The experts change between the two.
  ExpertList between;
  between.product_of(x, w1, {none_given, 0, 0}, {chosen}, up);
  between.other({}, ranks);
  between.product_of(x, w2, {none_given, 0, 0}, {chosen}, gate);
  between.gate(gate, up, gated);
  Rewritten(between, 4);
  CHECK(missed(rule_of("experts"), Miss::Order) == orders + 1);
}

TEST_CASE("rewrite experts: weighted and added up") {
  for (Cells to : {weighted, down}) {
    Rewritten r(mixing(to), 1);
    CHECK(r.variant(0).EXPERTS == 2);
    CHECK(r.args(0).groups == 4);
  }
  // The residual, first or second, in place or not.
  for (Cells to : {z, h, mixed}) {
    for (bool first : {true, false}) {
      ExpertList l = mixing();
      first ? l.sum(mixed, h, to) : l.sum(h, mixed, to);
      Rewritten r(l, 1);
      CHECK(r.args(0).addend == h.address());
      CHECK(r.args(0).sum == to.address());
    }
  }
  // Several rows.
  Cells gated{23, 0, 16}, down{24, 0, 16}, weights{7, 0, 4}, mixed{26, 0, 8};
  ExpertList rows;
  rows.product_of(gated, w3, {{8}, 2, 1}, {{4, 2, 6}, 4, 1}, down, 4);
  rows.per_row(down, weights, down, false).sum_up(down, mixed, 2, 4);
  Rewritten(rows, 1);
}

TEST_CASE("rewrite experts: not every weighted sum") {
  auto orders = missed(rule_of("combine"), Miss::Order),
       overlaps = missed(rule_of("combine"), Miss::Overlap),
       forms = missed(rule_of("combine"), Miss::Form);
  // Divided; over items; of one expert.
  ExpertList l;
  l.product_of(gated, w3, {none_given}, {chosen}, down);
  Rewritten(l.per_row(down, weights, weighted, true), 2);
  ExpertList items;
  items.product_of(gated, w3, {none_given}, {chosen}, down);
  items.per_row(down, weights, weighted, false);
  Rewritten(items.sum_up(weighted, {26, 0, 2}, 2, 1), 3);
  ExpertList one;
  one.product_of(gated, w3, {none_given}, {chosen}, down);
  one.per_row(down, weights, weighted, false);
  Rewritten(one.sum_up(weighted, {26, 0, 8}, 2, 4), 3);
  CHECK(missed(rule_of("combine"), Miss::Form) == forms + 1);
  // The weights come between.
  ExpertList late;
  late.product_of(gated, w3, {none_given}, {chosen}, down).other({}, weights);
  late.per_row(down, weights, weighted, false).sum_up(weighted, mixed, 1, 4);
  Rewritten(late, 4);
  CHECK(missed(rule_of("combine"), Miss::Order) == orders + 1);
  // Into the rows that all workgroups read.
  ExpertList over;
  over.product_of(gated, w3, {none_given}, {chosen}, down);
  over.per_row(down, weights, weighted, false);
  Rewritten(over.sum_up(weighted, {23, 0, 4}, 1, 4), 3);
  CHECK(missed(rule_of("combine"), Miss::Overlap) == overlaps + 1);
  // A residual that comes too late stays apart.
  ExpertList residual = mixing();
  residual.other({}, h).sum(mixed, h, z);
  Rewritten(residual, 3);
  CHECK(missed(rule_of("combine"), Miss::Order) == orders + 2);
}

TEST_CASE("rewrite experts: a layer, and its cuts") {
  // As mlx-lm's qwen3_moe records it: the weights are asked for last.
  ExpertList l;
  for (int layer = 0; layer < 2; ++layer) {
    l.norm(h, Cells{60}, z).product(z, Cells{61}, x);
    l.softmax(x, gates).sort(gates, ranks).take(gates, chosen, scores);
    l.product_of(z, w1, {none_given, 0, 0}, {chosen}, up);
    l.product_of(z, w2, {none_given, 0, 0}, {chosen}, gate);
    l.sum_up(scores, total, 1, 1).gate(gate, up, gate);
    l.per_row(scores, total, scores, true);
    l.product_of(gate, w3, {none_given}, {chosen}, down);
    l.per_row(down, scores, down, false).sum_up(down, mixed, 1, 4);
    l.sum(h, mixed, h);
  }
  CHECK(l.records.size() == 2 * 14);
  Rewritten(l, 2 * 4);
  Kernels cuts;
  start_of_cuts(l.records, l.accesses, l.arguments, cuts);
  auto routers = cuts.count<RouterVariant>(),
       experts = cuts.count<ExpertVariant>();
  CHECK(routers == 1);
  CHECK(experts == 2);
  for (size_t cut = 0; cut <= l.records.size(); ++cut) {
    CAPTURE(cut);
    ExpertList first = l, second = l;
    first.records.resize(cut);
    second.records.erase(second.records.begin(), second.records.begin() + cut);
    ExpertMachine plain(1), fused(2);
    for (auto* part : {&first, &second}) {
      plain.run(*part, cuts);
      part->rewrite(cuts);
      fused.run(*part, cuts);
    }
    CHECK(plain.memory() == fused.memory());
    CHECK(cuts.count<RouterVariant>() == routers);
    CHECK(cuts.count<ExpertVariant>() == experts);
  }
}

TEST_CASE("rewrite experts: without kernels everything stays as it is") {
  ExpertList l = gated_pair();
  auto missing = missed(rule_of("experts"), Miss::Kernel);
  Kernels none;
  none.refuses = 1000;
  l.rewrite(none);
  CHECK(l.records.size() == 3);
  CHECK(missed(rule_of("experts"), Miss::Kernel) == missing + 1);
  // Nor is there one that would spill.
  auto before = missed(rule_of("combine"), Miss::Registers);
  Kernels few;
  few.policy.registers = 128;
  few.policy.held_values = held_values(few.policy, gathered_matvec());
  few.policy.joined_values = 8;
  ExpertList m = mixing();
  m.rewrite(few);
  CHECK(m.records.size() == 3);
  CHECK(missed(rule_of("combine"), Miss::Registers) == before + 1);
}

TEST_CASE("rewrite experts: random lists") {
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  uint32_t n = rounds ? uint32_t(std::atoi(rounds)) : 1000;
  uint64_t before[] = {
      fired(rule_of("router")),
      fired(rule_of("experts")),
      fired(rule_of("combine"))};
  Kernels kernels;
  for (uint32_t seed = 1; seed <= n; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto pick = [&](size_t of) { return random() % of; };
    // Mostly the usual buffer, else one that is in use: but no record writes
    // what its other invocations read.
    auto some = [&](Cells usual, std::initializer_list<Cells> reads = {}) {
      static constexpr uint64_t buffers[] = {1, 3, 5, 21, 22, 23, 24, 25, 26};
      Cells c = pick(8) ? usual : Cells{buffers[pick(9)], 0, usual.count};
      for (auto& r : reads) {
        c = r.buffer == c.buffer ? Cells{100 + random(), 0, usual.count} : c;
      }
      return c;
    };
    ExpertList l;
    auto noise = [&] {
      if (pick(6) == 0) {
        l.other({some(z)}, some(Cells{40}), random());
      }
    };
    for (int layer = 0; layer < 2; ++layer) {
      Cells g = some(gates), s = some(scores, {g}), u = some(up, {x});
      Cells t = some(gate, {x}), m = some(gated);
      Cells r = pick(2) ? s : some(weights, {s});
      Cells d = some(down, {m, r}), e = pick(2) ? d : some(weighted, {d, r});
      Cells y = some(mixed, {e});
      l.softmax(x, g).sort(g, ranks);
      noise();
      l.take(g, chosen, s);
      noise();
      l.product_of(x, w1, {none_given, 0, 0}, {chosen}, u);
      l.product_of(x, w2, {none_given, 0, 0}, {chosen}, t);
      noise();
      l.sum_up(s, total, 1, 1).gate(t, u, m, pick(2));
      noise();
      l.per_row(s, total, r, true);
      l.product_of(m, w3, {none_given}, {chosen}, d);
      noise();
      l.per_row(d, r, e, false).sum_up(e, y, 1, 4);
      noise();
      l.sum(h, y, pick(2) ? h : some(z));
    }
    ExpertMachine plain(seed), fused(seed + 1), shuffled(seed + 2);
    plain.run(l, kernels);
    l.rewrite(kernels);
    fused.run(l, kernels);
    shuffled.run(l, kernels, seed);
    REQUIRE(plain.memory() == fused.memory());
    REQUIRE(plain.memory() == shuffled.memory());
  }
  CHECK(fired(rule_of("router")) - before[0] > n);
  CHECK(fired(rule_of("experts")) - before[1] > n);
  CHECK(fired(rule_of("combine")) - before[2] > n);
}

// Rewrites: lists in, lists out, a case a rule and a reason; and random graphs
// with donation, aliasing and cuts, joined against as they are.
#include <doctest/doctest.h>

#include <cstdlib>

#include "null/devices.h"
#include "null/rewrite_program.h"
#include "runtime/rewrite_variants.h"

using namespace rewriting;

namespace {

constexpr Cells x{1}, h{2}, w1{11, 0, 4}, w2{12, 0, 4}, w3{13, 0, 4},
    w4{14, 0, 4}, p1{21}, p2{22}, p3{23}, p4{24}, z{31};

// Rewrites the list, which then has `records` records, and runs both forms.
struct Rewritten {
  Rewritten(List list, size_t records) : after(list) {
    after.rewrite(kernels);
    CHECK(after.records.size() == records);
    Machine plain(1), fused(2);
    plain.run(list, kernels);
    fused.run(after, kernels);
    CHECK(plain.memory() == fused.memory());
  }
  const FusedQmvVariant& variant(size_t i) const {
    auto* v = kernels.get<FusedQmvVariant>(after.records[i].kernel);
    REQUIRE(v);
    return *v;
  }
  Kernels kernels;
  List after;
};

} // namespace

TEST_CASE("rewrite: what follows a product is added to it") {
  for (bool first : {false, true}) {
    List l;
    l.product(x, w1, p1);
    first ? l.sum(p1, h, z) : l.sum(h, p1, z);
    Rewritten r(l, 1);
    auto a = r.after.fused(0);
    CHECK(a.set_count == 1);
    CHECK(a.sets[0].addend == h.address());
    CHECK(a.sets[0].sum == z.address());
    CHECK(a.sets[0].y == p1.address());
    CHECK(r.variant(0).SETS == 1);
    CHECK_FALSE(r.after.records[0].args_in_memory);
    CHECK(r.after.records[0].grid.x == 2); // BLOCK outputs of 4 a workgroup
  }
  // The sum takes the product's memory, or the residual's.
  Rewritten(List().product(x, w1, p1).sum(p1, h, p1), 1);
  Rewritten(List().product(x, w1, p1).sum(p1, h, h), 1);
}

TEST_CASE("rewrite: a product keeps what it added, for others to read") {
  List l;
  l.product(x, w1, p1).sum(p1, h, z).other({p1}, p2);
  Rewritten r(l, 2);
}

TEST_CASE("rewrite: no sum where other workgroups still read") {
  auto before = missed(rule_of("residual"), Miss::Overlap);
  Rewritten(List().product(x, w1, p1).sum(p1, x, x), 2);
  CHECK(missed(rule_of("residual"), Miss::Overlap) == before + 1);
  // Half of the product's memory.
  Rewritten(List().product(x, w1, p1).sum(p1, h, {x.buffer, 2, 4}), 2);
  CHECK(missed(rule_of("residual"), Miss::Overlap) == before + 2);
}

TEST_CASE("rewrite: a sum stays behind what it depends on") {
  auto before = missed(rule_of("residual"), Miss::Order);
  // Its other operand comes after the product,
  Rewritten(List().product(x, w1, p1).other({}, h).sum(p1, h, z), 3);
  // another reads what it overwrites,
  Rewritten(List().product(x, w1, p1).other({z}, p2).sum(p1, h, z), 3);
  // and another overwrites the product.
  Rewritten(List().product(x, w1, p1).other({}, p1).sum(p1, h, z), 3);
  CHECK(missed(rule_of("residual"), Miss::Order) == before + 3);
  // What is between without a part in it does not matter.
  Rewritten(List().product(x, w1, p1).other({x}, p2).sum(p1, h, z), 2);
}

TEST_CASE("rewrite: not every sum") {
  // A product with itself, of another type, of a part.
  Rewritten(List().product(x, w1, p1).sum(p1, p1, z), 2);
  Rewritten(List().product(x, w1, p1).sum(p1, h, z, Type::f16), 2);
  Rewritten(
      List().product(x, w1, p1).sum({p1.buffer, 0, 2}, {2, 0, 2}, {31, 0, 2}),
      2);
  // A second one: the first is joined.
  Rewritten(List().product(x, w1, p1).sum(p1, h, z).sum(p1, h, p2), 2);
}

TEST_CASE("rewrite: products of the same rows") {
  List l;
  l.product(x, w1, p1).other({p1}, z).product(x, w2, p2).product(x, w3, p3);
  Rewritten r(l, 2);
  auto a = r.after.fused(0);
  CHECK(a.set_count == 3);
  CHECK(a.sets[1].w == w2.address());
  CHECK(a.sets[2].y == p3.address());
  CHECK(a.groups == 6);
  CHECK(r.after.records[0].args_in_memory);
  // A fourth begins another group.
  Rewritten(l.product(x, w4, p4), 3);
  // Of other rows, or of rows that changed meanwhile.
  Rewritten(List().product(x, w1, p1).product(h, w2, p2), 2);
  auto before = missed(rule_of("siblings"), Miss::Order);
  Rewritten(List().product(x, w1, p1).other({}, x).product(x, w2, p2), 3);
  CHECK(missed(rule_of("siblings"), Miss::Order) == before + 1);
  // Arguments in memory are found there.
  Rewritten(
      List()
          .product(x, w1, p1, usual_matvec(), true)
          .product(x, w2, p2, usual_matvec(), true),
      1);
}

TEST_CASE("rewrite: the larger product's tile, and sums in the same order") {
  auto wide = usual_matvec();
  wide.BLOCK = 8;
  wide.OUTS = 4;
  List l;
  l.product(x, w1, p1).product(x, {12, 0, 9}, {22, 0, 9}, wide);
  Rewritten r(l, 1);
  CHECK(r.variant(0).BLOCK == 8);
  CHECK(r.after.fused(0).groups == 3);
  auto before = missed(rule_of("siblings"), Miss::Form);
  auto other = usual_matvec();
  other.CHUNK = 16;
  Rewritten(List().product(x, w1, p1).product(x, w2, p2, other), 2);
  other = usual_matvec();
  other.WHOLE_WORKGROUP = true;
  Rewritten(List().product(x, w1, p1).product(x, w2, p2, other), 2);
  other = usual_matvec();
  other.OUTS = other.BLOCK = 16;
  Rewritten(List().product(x, w1, p1).product(x, w2, p2, other), 2);
  CHECK(missed(rule_of("siblings"), Miss::Form) == before + 3);
}

TEST_CASE("rewrite: biases are added to siblings") {
  List l;
  l.product(x, w1, p1).sum(p1, {41}, p1);
  l.product(x, w2, p2).sum(p2, {42}, p2);
  l.product(x, w3, p3).sum(p3, {43}, p3);
  Rewritten r(l, 1);
  auto a = r.after.fused(0);
  for (uint32_t s = 0; s < 3; ++s) {
    CHECK(a.sets[s].addend == Cells{41 + s}.address());
  }
}

TEST_CASE("rewrite: gate and up") {
  for (bool up_first : {false, true}) {
    for (Cells to : {z, p1, p2}) {
      List l;
      l.product(x, w1, p1).product(x, w2, p2).gate(p1, p2, to, up_first);
      Rewritten r(l, 1);
      CHECK(r.variant(0).GATE == GATE_SILU);
      CHECK(r.after.fused(0).sets[0].w == w1.address());
      CHECK(r.after.fused(0).gated == to.address());
    }
    List l;
    l.product(x, w1, p1).product(x, w2, p2).gate(p2, p1, z, up_first);
    Rewritten r(l, 1);
    CHECK(r.after.fused(0).sets[0].w == w2.address());
    // Each of two sets has half of a workgroup's BLOCK = 2 outputs.
    CHECK(r.after.fused(0).groups == 4);
  }
  auto before = missed(rule_of("gate"), Miss::Overlap);
  Rewritten(List().product(x, w1, p1).product(x, w2, p2).gate(p1, p2, x), 2);
  CHECK(missed(rule_of("gate"), Miss::Overlap) == before + 1);
  // Three products of the same rows: which two is not known in time.
  Rewritten(
      List().product(x, w1, p1).product(x, w2, p2).product(x, w3, p3).gate(
          p1, p2, z),
      2);
}

TEST_CASE("rewrite: each workgroup norms the row itself") {
  Cells w{5};
  for (Cells weight : {w, Cells{5, 0, 0}}) {
    List l;
    l.norm(h, weight, x).product(x, w1, p1).product(x, w2, p2).gate(p1, p2, z);
    Rewritten r(l, 1);
    CHECK(r.variant(0).NORM == 4);
    CHECK(r.variant(0).NORM_LANES == 32);
    CHECK(r.variant(0).GATE == GATE_SILU);
    auto a = r.after.fused(0);
    CHECK(a.x == h.address());
    CHECK(a.normed == x.address());
    CHECK(a.norm_weight == (weight.count ? weight.address() : 0));
  }
  // Others read what it made, and the sum its x.
  Rewritten(List().norm(h, w, x).product(x, w1, p1).other({x}, z), 2);
  Rewritten(List().norm(h, w, x).product(x, w1, p1).sum(p1, h, z), 1);
  auto overlaps = missed(rule_of("norm"), Miss::Overlap),
       orders = missed(rule_of("norm"), Miss::Order),
       forms = missed(rule_of("norm"), Miss::Form);
  // In place; a product or a sum over the row that all norm.
  Rewritten(List().norm(h, w, h).product(h, w1, p1), 2);
  Rewritten(List().norm(h, w, x).product(x, w1, h), 2);
  CHECK(missed(rule_of("norm"), Miss::Overlap) == overlaps + 2);
  Rewritten(List().norm(h, w, x).product(x, w1, p1).sum(p1, h, h), 2);
  // The weights of the product come after the norm; the row changes.
  Rewritten(List().norm(h, w, x).other({}, w1).product(x, w1, p1), 3);
  Rewritten(List().norm(h, w, x).other({}, x).product(x, w1, p1), 3);
  CHECK(missed(rule_of("norm"), Miss::Order) == orders + 2);
  // Several rows; a product whose workgroups would read too much again.
  Rewritten(List().norm(h, w, x, 2).product(x, w1, p1), 2);
  Cells long_h{2, 0, 1024}, long_x{1, 0, 1024};
  Rewritten(
      List()
          .norm(long_h, {5, 0, 1024}, long_x)
          .product(long_x, {11, 0, 1050}, {21, 0, 1050}),
      2);
  CHECK(missed(rule_of("norm"), Miss::Form) == forms + 2);
}

TEST_CASE("rewrite: integer dot products and matrix units") {
  auto by_dots = usual_matvec();
  by_dots.INT_DOT = true;
  auto by_matrices = usual_matvec();
  by_matrices.COOPMAT = true;
  for (auto& v : {by_dots, by_matrices}) {
    // They add up in an order of their own.
    auto forms = missed(rule_of("siblings"), Miss::Form);
    Rewritten(List().product(x, w1, p1).product(x, w2, p2, v), 2);
    CHECK(missed(rule_of("siblings"), Miss::Form) == forms + 1);
    // Gate and up: as many outputs of each as of one alone.
    auto gated = gated_matvec(v, GATE_SILU);
    CHECK(gated.BLOCK == 2 * v.BLOCK);
  }
}

TEST_CASE("rewrite: products of a few dozen rows") {
  auto rows = usual_fragments();
  auto variant = [](const Rewritten& r, size_t i) {
    auto* v = r.kernels.get<FusedFragmentsVariant>(r.after.records[i].kernel);
    REQUIRE(v);
    return *v;
  };
  List l;
  l.product(x, w1, p1, rows).sum(h, p1, z);
  Rewritten added(l, 1);
  CHECK(variant(added, 0).SETS == 1);
  CHECK(added.after.fused(0).sets[0].addend == h.address());
  // 40 outputs by workgroups of 32.
  Cells wide{21, 0, 40};
  Rewritten three(
      List()
          .product(x, w1, p2, rows)
          .product(x, {12, 0, 40}, wide, rows)
          .product(x, w3, p3, rows),
      1);
  CHECK(variant(three, 0).SETS == MAX_SETS);
  CHECK(three.after.fused(0).groups == 1 + 2 + 1);
  Rewritten gated(
      List()
          .product(x, {11, 0, 40}, wide, rows)
          .product(x, {12, 0, 40}, {22, 0, 40}, rows)
          .gate(wide, {22, 0, 40}, {31, 0, 40}),
      1);
  CHECK(variant(gated, 0).GATE == GATE_SILU);
  CHECK(gated.after.fused(0).groups == 3); // of 16 outputs of both
  // Other outputs add up alike; other rows or parts of k, other kernels do not.
  auto tall = rows;
  tall.FM = 4;
  Rewritten(List().product(x, w1, p1, rows).product(x, w2, p2, tall), 1);
  tall.FX = 2;
  auto forms = missed(rule_of("siblings"), Miss::Form);
  auto parts = rows;
  parts.WK = 4;
  Rewritten(List().product(x, w1, p1, rows).product(x, w2, p2, parts), 2);
  Rewritten(List().product(x, w1, p1, rows).product(x, w2, p2, tall), 2);
  Rewritten(List().product(x, w1, p1, rows).product(x, w2, p2), 2);
  Rewritten(List().product(x, w1, p1).product(x, w2, p2, rows), 2);
  CHECK(missed(rule_of("siblings"), Miss::Form) == forms + 4);
  // Their norm is apart.
  forms = missed(rule_of("norm"), Miss::Form);
  Rewritten(List().norm(h, {5}, x).product(x, w1, p1, rows), 2);
  CHECK(missed(rule_of("norm"), Miss::Form) == forms + 1);
  // Gate and up are laid down at once, in fragments of their own.
  auto gate_of = [](QmmFragmentsVariant v) {
    return gated_fragments(v, GATE_SILU);
  };
  CHECK(gate_of(rows)->FM == 2);
  rows.FM = 1;
  CHECK(gate_of(rows)->FM == 2);
  CHECK_FALSE(gate_of(tall));
  forms = missed(rule_of("gate"), Miss::Form);
  Rewritten(
      List().product(x, w1, p1, tall).product(x, w2, p2, tall).gate(p1, p2, z),
      2);
  CHECK(missed(rule_of("gate"), Miss::Form) == forms + 1);
  // Nor on small GPUs, or where it does not compile.
  Kernels kernels;
  kernels.refuses = 1;
  List refused = l;
  refused.rewrite(kernels);
  CHECK(refused.records.size() == 2);
  kernels.policy.registers = 128;
  CHECK_FALSE(kernels.fits(fused_fragments(rows, true)));
}

TEST_CASE("rewrite: a layer") {
  // q, k, v; attention; o and residual; gate, up, SiLU; down and residual.
  List l;
  Cells q{51}, k{52}, v{53}, att{54}, o{55}, h2{56}, g{57}, u{58}, d{59};
  for (int layer = 0; layer < 3; ++layer) {
    l.norm(h, {6}, x);
    l.product(x, w1, q).other({q}, q).product(x, w2, k).other({k}, k);
    l.product(x, w3, v).other({q, k, v}, att);
    l.product(att, w4, o).sum(h, o, h2).norm(h2, {7}, x);
    l.product(x, w1, g).product(x, w2, u).gate(g, u, g);
    l.product(g, w3, d).sum(h2, d, h);
  }
  CHECK(l.records.size() == 3 * 15);
  Rewritten r(l, 3 * 7);
}

TEST_CASE("rewrite: without kernels everything stays as it is") {
  List l, before;
  l.product(x, w1, p1).product(x, w2, p2).gate(p1, p2, z).sum(z, h, x);
  before = l;
  Kernels none;
  none.refuses = 1000;
  l.rewrite(none);
  CHECK(l.records.size() == before.records.size());
  // Without that of the gate alone, the products are joined.
  Kernels one;
  one.refuses = 1;
  List again = before;
  again.rewrite(one);
  CHECK(again.records.size() == before.records.size() - 1);
}

TEST_CASE("rewrite: no joined kernel that would spill") {
  QmvVariant one{
      {{Type::bf16, {4, 64, CODE_INTEGER, SCALE_AS_T, true}, true}, 0}};
  QmvVariant two = one, four = one;
  two.ROWS = 2;
  four.ROWS = 4;
  four.OUTS = 2;
  auto sum = [](auto& v) { return fused_matvec(v, false); };
  auto siblings = [](auto& v) { return fused_matvec(v, true); };
  auto gate = [](auto& v) { return gated_matvec(v, GATE_SILU); };
  auto normed = [](FusedQmvVariant v) { return normed_matvec(v, 4096, 64); };
  struct {
    const char* device;
    const QmvVariant& variant;
    bool sum, siblings, gate;
  } cases[] = {
      {"NVIDIA H200", four, true, true, true},
      {"AMD Radeon RX 6800", four, true, true, true},
      {"Apple M1", four, true, true, true},
      {"Intel(R) Arc(tm) A770M", one, true, true, true},
      {"Intel(R) Arc(tm) A770M", two, true, true, true},
      {"Intel(R) Arc(tm) A770M", four, true, false, true},
      {"Intel(R) Graphics (BMG", two, true, true, true},
      {"Intel(R) Graphics (BMG", four, false, false, true},
      {"Turnip Adreno (TM) 740", one, true, false, false},
      {"Turnip Adreno (TM) 740", four, true, false, false}};
  for (auto& x : cases) {
    CAPTURE(x.device);
    CAPTURE(x.variant.ROWS);
    Policy policy = policy_of(caps_of(x.device));
    CHECK(fits_registers(policy, sum(x.variant)) == x.sum);
    CHECK(fits_registers(policy, siblings(x.variant)) == x.siblings);
    CHECK(fits_registers(policy, gate(x.variant)) == x.gate);
    if (x.variant.ROWS == 1) { // x is in shared memory
      CHECK(fits_registers(policy, normed(siblings(x.variant))));
      CHECK(fits_registers(policy, normed(gate(x.variant))));
    }
  }
  // A rewrite asks: what does not fit stays as it is, the rest is joined.
  List l;
  QmvVariant v = usual_matvec();
  l.product(x, w1, p1, v).product(x, w2, p2, v).sum(p2, h, z);
  Kernels kernels;
  kernels.policy.registers = 128;
  kernels.policy.held_values = held_values(kernels.policy, v);
  kernels.policy.several_values = 1;
  auto before = missed(rule_of("siblings"), Miss::Registers);
  l.rewrite(kernels);
  CHECK(missed(rule_of("siblings"), Miss::Registers) == before + 1);
  CHECK(l.records.size() == 2);
  CHECK(l.records[0].kernel == nullptr);
  CHECK(kernels.get<FusedQmvVariant>(l.records[1].kernel)->SETS == 1);
}

TEST_CASE("rewrite: the kernels of a list that is cut") {
  List l;
  l.norm(h, {60, 0, 4}, x).product(x, w1, p1).product(x, w2, p2);
  l.gate(p1, p2, z).product(z, w3, p3).sum(h, p3, h);
  Kernels cuts;
  start_of_cuts(l.records, l.accesses, l.arguments, cuts);
  auto whole = cuts.count<FusedQmvVariant>();
  // Any two batches find what they need there.
  for (size_t cut = 0; cut <= l.records.size(); ++cut) {
    CAPTURE(cut);
    for (bool second : {false, true}) {
      List part = l;
      auto at = part.records.begin() + cut;
      second ? part.records.erase(part.records.begin(), at)
             : part.records.erase(at, part.records.end());
      part.rewrite(cuts);
      CHECK(cuts.count<FusedQmvVariant>() == whole);
    }
  }
  Kernels uncut;
  List all = l;
  all.rewrite(uncut);
  CHECK(uncut.count<FusedQmvVariant>() < whole);
}

namespace {

// Buffers of eight cells, of which operands are whole halves or neighbouring
// ones: so that they are donated, alias, and overlap in part.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  List list(int records) {
    List l;
    for (int i = 0; i < records; ++i) {
      switch (pick(11)) {
        case 7:
          norm_heads(l);
          break;
        case 8:
        case 9:
          rope(l);
          break;
        case 10:
          copy(l);
          break;
        case 6:
          l.norm(any(), {60, 0, 4 * uint32_t(pick(2))}, fresh());
          rows_ = last_fresh();
          break;
        case 0:
        case 1:
          product(l);
          break;
        case 2:
          if (products_.size() >= 2 && pick(2)) {
            auto a = products_[products_.size() - 2], b = products_.back();
            pick(2) ? std::swap(a, b) : void();
            l.gate(a, b, result(a, b), pick(2));
            break;
          }
          product(l);
          break;
        case 3:
        case 4:
          if (!products_.empty()) {
            auto a = products_
                [products_.size() - 1 -
                 pick(std::min<size_t>(products_.size(), 4))];
            auto b = any();
            pick(2) ? std::swap(a, b) : void();
            l.sum(a, b, result(a, b));
            break;
          }
          [[fallthrough]];
        default:
          l.other({any(), any()}, any(), random_());
      }
    }
    return l;
  }

 private:
  size_t pick(size_t n) {
    return random_() % n;
  }
  Cells any() {
    static constexpr uint32_t starts[] = {0, 0, 0, 4, 4, 2};
    return {1 + pick(10), starts[pick(6)], 4};
  }
  Cells fresh() {
    return {100 + next_++, 0, 4};
  }
  Cells last_fresh() const {
    return {99 + next_, 0, 4};
  }
  // No kernel writes what its other invocations read: part of an operand.
  static bool apart(Cells a, Cells b) {
    return !overlap(a.access(true), b.access(true));
  }
  static bool in_part(Cells a, Cells b) {
    return !apart(a, b) && !same_range(a.access(true), b.access(true));
  }
  // Often donated.
  Cells result(Cells a, Cells b) {
    size_t k = pick(5);
    Cells y = k == 0 ? a : k == 1 ? b : k == 2 ? any() : fresh();
    return in_part(y, a) || in_part(y, b) ? fresh() : y;
  }
  void norm_heads(List& l) {
    Cells from = any();
    turned_ = result(from, from);
    l.norm_heads(from, {60, 0, 2 * uint32_t(pick(2))}, turned_, 2);
  }
  // Of two heads, often what a norm has made.
  void rope(List& l) {
    Cells from = pick(3) ? turned_ : any();
    Cells offset = pick(4) ? Cells{61, 0, 1} : Cells{1 + pick(10), 0, 1};
    turned_ = result(from, from);
    if (!apart(turned_, offset)) {
      offset = {61, 0, 1};
    }
    List::Turn turn;
    turn.traditional = pick(2);
    l.rope(from, offset, turned_, turn, pick(4) ? Cells{0} : Cells{62, 0, 1});
  }
  // To a cache whose heads are apart, or not.
  void copy(List& l) {
    Cells from = pick(2) ? turned_ : any();
    bool strided = pick(2);
    Cells to{pick(3) ? 70 + pick(4) : 1 + pick(10), 0, strided ? 6u : 4u};
    if (!apart(to, from)) {
      to.buffer = 70 + pick(4);
    }
    if (apart(to, from)) {
      l.copy(from, to, 2, strided ? 4 : 2);
    }
  }
  void product(List& l) {
    Cells from = rows_.buffer && pick(3) ? rows_ : (rows_ = any());
    Cells to = pick(2) ? fresh() : any();
    Cells w{pick(8) ? 50 + pick(3) : 1 + pick(10), 0, 4};
    Cells whole{w.buffer, 0, 6};
    if (!apart(to, from) || !apart(to, whole)) {
      to = fresh();
    }
    RowsVariant variant = usual_matvec();
    if (pick(3) == 0) {
      variant = usual_fragments();
    }
    l.product(from, w, to, variant, pick(2));
    products_.push_back(to);
  }

  std::mt19937 random_;
  uint64_t next_ = 0;
  Cells rows_{0}, turned_{1};
  std::vector<Cells> products_;
};

} // namespace

TEST_CASE("rewrite: random graphs") {
  // MLX_VK_TEST_ROUNDS=100000 for a soak.
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  uint32_t n = rounds ? uint32_t(std::atoi(rounds)) : 3000;
  constexpr size_t rules = size_t(rule_of("router")); // rewrite_moe_test.cpp
  uint64_t before[rules];
  for (size_t r = 0; r < rules; ++r) {
    before[r] = fired(Rule(r));
  }
  Kernels kernels;
  size_t plain_records = 0, fused_records = 0;
  for (uint32_t seed = 1; seed <= n; ++seed) {
    CAPTURE(seed);
    RandomGraph graph(seed);
    Machine plain(seed), fused(seed + 1), shuffled(seed + 2);
    // Cut into batches, each rewritten by itself.
    for (uint32_t batch = 0; batch < 1 + seed % 3; ++batch) {
      List l = graph.list(4 + seed % 23);
      plain.run(l, kernels);
      plain_records += l.records.size();
      l.rewrite(kernels);
      fused_records += l.records.size();
      fused.run(l, kernels);
      shuffled.run(l, kernels, seed);
    }
    REQUIRE(plain.memory() == fused.memory());
    REQUIRE(plain.memory() == shuffled.memory());
  }
  MESSAGE(plain_records << " records became " << fused_records);
  CHECK(fused_records < plain_records * 9 / 10);
  for (size_t r = 0; r < rules; ++r) {
    CHECK(fired(Rule(r)) - before[r] > n / 20);
  }
}

// The rewrites of heads: norms, turns and copies into a cache in one dispatch;
// lists in, lists out. The random graphs of rewrite_test.cpp have them, too.
#include <doctest/doctest.h>

#include "null/rewrite_program.h"

using namespace rewriting;

namespace {

// A layer's step: four heads of q and two of k and v, of four items.
constexpr uint32_t D = 4;
constexpr Cells q{1, 0, 16}, k{2, 0, 8}, v{3, 0, 8}, qw{4, 0, D}, kw{5, 0, D},
    at_q{6, 0, 1}, at_k{7, 0, 1}, freqs{8, 0, 2}, x{9}, w{10, 0, 4};
// Five positions a head; the step writes the third.
constexpr Cells keys{11, 8, 24}, values{12, 8, 24}, other_q{13, 0, 16},
    other_k{14, 0, 8};
constexpr List::Turn q_turn{D, 2, 4}, k_turn{D, 2, 2};

uint64_t missed(Miss why) {
  return rewrite_counters().rules[size_t(rule_of("rope"))].missed[size_t(why)];
}

struct Rewritten {
  Rewritten(List list, size_t records) : after(list) {
    after.rewrite(kernels);
    CHECK(after.records.size() == records);
    Machine plain(1), fused(2), shuffled(3);
    plain.run(list, kernels);
    fused.run(after, kernels);
    shuffled.run(after, kernels, 7);
    CHECK(plain.memory() == fused.memory());
    CHECK(plain.memory() == shuffled.memory());
  }
  Kernels kernels;
  List after;
};

// That the list stays as it is, for this reason.
void stays(List list, size_t records, Miss why, uint64_t times = 1) {
  auto before = missed(why);
  Rewritten(std::move(list), records);
  CHECK(missed(why) == before + times);
}

List cached(List l) {
  l.copy(k, keys, D, 5 * D).copy(v, values, D, 5 * D);
  return l;
}

} // namespace

TEST_CASE("rewrite: a step's norms, turns and copies") {
  List l;
  l.norm_heads(q, qw, q, D).rope(q, at_q, q, q_turn);
  l.norm_heads(k, kw, k, D).rope(k, at_k, k, k_turn);
  {
    Rewritten r(cached(l), 1);
    auto a = r.after.heads(0);
    auto &turns_q = a.parts[0], &turns_k = a.parts[1], &copies_v = a.parts[2];
    CHECK(turns_q.x == q.address());
    CHECK(turns_q.y == q.address());
    CHECK(turns_q.normed == 0); // is turned where it is
    CHECK(turns_q.cache == 0);
    CHECK(turns_q.weight == qw.address());
    CHECK(turns_q.offset == at_q.address());
    CHECK(turns_q.flags == ROPE_NORMED);
    CHECK(turns_q.eps == 0.5f);
    CHECK(turns_q.groups == 1);
    CHECK(turns_k.offset == at_k.address());
    CHECK(turns_k.cache == keys.address());
    CHECK(turns_k.cache_strides.n == 5 * int(D));
    CHECK(copies_v.half_dims == 0);
    CHECK(copies_v.x == v.address());
    CHECK(copies_v.cache == values.address());
    CHECK(copies_v.N == 2);
    CHECK(copies_v.groups == 1);
    CHECK(r.after.records[0].grid.x == 3);
    CHECK(r.after.records[0].args_in_memory);
  }
}

TEST_CASE("rewrite: steps without norms, and other turns") {
  for (bool traditional : {false, true}) {
    for (Cells f : {Cells{0}, freqs}) {
      for (uint32_t half : {1u, 2u}) {
        List::Turn a = q_turn, b = k_turn;
        a.traditional = b.traditional = traditional;
        a.half_dims = b.half_dims = half;
        List l;
        l.rope(q, at_q, other_q, a, f).rope(k, at_q, k, b, f);
        Rewritten r(cached(l), 1);
        auto part = r.after.heads(0).parts[0];
        CHECK(part.flags == (traditional ? ROPE_TRADITIONAL : 0));
        CHECK(part.freqs == (f.buffer ? f.address() : 0));
        CHECK(part.y == other_q.address());
      }
    }
  }
}

TEST_CASE("rewrite: parts of a step") {
  // One rope is not enough.
  Rewritten(List().rope(q, at_q, q, q_turn), 1);
  Rewritten(List().norm_heads(q, qw, q, D), 1);
  Rewritten(List().norm_heads(q, qw, q, D).rope(q, at_q, q, q_turn), 1);
  Rewritten(List().rope(k, at_k, k, k_turn).copy(k, keys, D, 5 * D), 1);
  Rewritten(List().rope(q, at_q, q, q_turn).rope(k, at_k, k, k_turn), 1);
  Rewritten(List().rope(q, at_q, q, q_turn).copy(v, values, D, 5 * D), 1);
  // The norm keeps what it made where the turn goes elsewhere.
  List l;
  l.norm_heads(q, {4, 0, 0}, q, D).rope(q, at_q, other_q, q_turn);
  Rewritten r(l.other({q}, x), 2);
  CHECK(r.after.heads(0).parts[0].normed == q.address());
  CHECK(r.after.heads(0).parts[0].weight == 0);
  // Not the norm: another made what is turned.
  Rewritten(
      List()
          .norm_heads(other_q, qw, other_q, D)
          .rope(q, at_q, q, q_turn)
          .rope(k, at_k, k, k_turn),
      2);
}

TEST_CASE("rewrite: k and v are made after q is turned") {
  List l;
  l.norm_heads(q, qw, q, D).rope(q, at_q, q, q_turn);
  l.other({x}, k).norm_heads(k, kw, k, D).rope(k, at_k, k, k_turn);
  l.copy(k, keys, D, 5 * D).other({x}, v).copy(v, values, D, 5 * D);
  Rewritten r(l.other({q, keys, values}, x), 4);
  CHECK(r.kernels.get<RopeCacheVariant>(r.after.records[2].kernel));
  // Joined products move before it.
  List m;
  m.product(x, w, q).rope(q, at_q, q, q_turn).product(x, {15, 0, 4}, k);
  m.rope(k, at_k, k, k_turn).copy(k, keys, D, 5 * D);
  m.product(x, {16, 0, 4}, v).copy(v, values, D, 5 * D);
  Rewritten(m, 2);
}

TEST_CASE("rewrite: several rows and sequences") {
  // (B, L, N, D) as norms have them, turned as (B, N, L, D); a cache of five
  // positions takes two.
  for (uint32_t B : {1u, 2u}) {
    uint32_t n = B * 2 * 2 * D;
    Cells made{1, 0, n}, turned{2, 0, n}, offsets{6, 0, B};
    Cells to{11, 4, B * 2 * 5 * D - 12};
    List::Turn turn{D, 2, 2, 2, B, 4 * D, D, 2 * D};
    List l;
    int d = D, b = B;
    l.norm_heads(
        made,
        qw,
        made,
        D,
        0,
        {{b, 4 * d, 4 * d}, {2, 2 * d, 2 * d}, {2, d, d}});
    l.rope(made, offsets, turned, turn);
    auto copied =
        List::heads_of(D, {{b, 4 * d, 10 * d}, {2, 2 * d, 5 * d}, {2, d, d}});
    Rewritten r(l.copy(turned, to, 2 * D, 5 * D, copied), 1);
    auto part = r.after.heads(0).parts[0];
    CHECK(part.x_strides.n == int(D));
    CHECK(part.x_strides.t == 2 * int(D));
    CHECK(part.x_strides.b == (B > 1 ? 4 * int(D) : 0));
    CHECK(part.cache_strides.n == 5 * int(D));
    CHECK(part.cache_strides.t == int(D));
    CHECK(part.cache_strides.b == (B > 1 ? 10 * int(D) : 0));
    CHECK(part.normed == made.address());
    CHECK(part.groups == 2 * B);
    CHECK(r.after.records[0].grid.x == 6 * B);
  }
  // Rows with gaps between, as parts of a product of q, k and v have them.
  Cells wide{1, 0, 60};
  List l;
  l.norm_heads(wide, qw, other_q, D, 3 * D)
      .rope(other_q, at_q, other_q, q_turn);
  CHECK(Rewritten(l, 1).after.heads(0).parts[0].x_strides.n == 3 * int(D));
}

TEST_CASE("rewrite: heads stay behind what they depend on") {
  List l = List().rope(q, at_q, q, q_turn);
  // Another reads the turned q, or overwrites it, or its offset.
  stays(List(l).other({q}, x).rope(k, at_k, k, k_turn), 3, Miss::Order);
  stays(List(l).other({}, q).rope(k, at_k, k, k_turn), 3, Miss::Order);
  stays(List(l).other({}, at_q).rope(k, at_k, k, k_turn), 3, Miss::Order);
  // The norm's rows change meanwhile.
  stays(
      List().norm_heads(q, qw, q, D).other({}, q).rope(q, at_q, q, q_turn),
      3,
      Miss::Order);
  // A later group starts anew.
  l.other({q}, x).rope(k, at_k, k, k_turn).copy(k, keys, D, 5 * D);
  stays(l, 3, Miss::Order);
  // A product does not move before what moves behind its place.
  List m;
  Cells w2{15, 0, 4}, p1{21}, p2{22};
  m.rope(q, at_q, {15, 0, 16}, q_turn).product(x, w, p1);
  m.rope(k, at_k, k, k_turn).product(x, w2, p2);
  auto& row = rewrite_counters().rules[size_t(rule_of("siblings"))];
  uint64_t before = row.missed[size_t(Miss::Order)];
  Rewritten(m, 3);
  CHECK(row.missed[size_t(Miss::Order)] == before + 1);
}

TEST_CASE("rewrite: heads that others still read") {
  List l = List().rope(q, at_q, q, q_turn);
  // k's turn takes part of q's memory, or its offset is there.
  stays(List(l).rope(k, at_k, {1, 4, 8}, k_turn), 2, Miss::Overlap);
  stays(List(l).rope(k, {1, 3, 1}, k, k_turn), 2, Miss::Overlap);
  // Both copies go to the same cache.
  stays(
      List()
          .rope(k, at_k, k, k_turn)
          .copy(k, keys, D, 5 * D)
          .copy(v, keys, D, 5 * D),
      2,
      Miss::Overlap);
  // A norm's weight is what is turned.
  stays(
      List()
          .norm_heads(k, {2, 0, D}, other_k, D)
          .rope(other_k, at_k, k, k_turn),
      2,
      Miss::Overlap);
  // What is turned lies over what was normed, but not head over head.
  stays(
      List()
          .norm_heads({1, 4, 8}, qw, other_k, D)
          .rope(other_k, at_k, {1, 0, 8}, k_turn),
      2,
      Miss::Overlap);
}

TEST_CASE("rewrite: heads of other forms") {
  List l = List().rope(q, at_q, q, q_turn);
  // Longer ones.
  stays(List(l).rope(k, at_k, k, {2 * D, 2, 1}), 2, Miss::Form);
  // Items with gaps: not even alone.
  List::Turn gaps = k_turn;
  gaps.d = 2;
  gaps.n = 2 * D;
  stays(
      List()
          .rope({2, 0, 16}, at_k, other_k, gaps)
          .copy(other_k, keys, D, 5 * D),
      2,
      Miss::Form);
  // A norm of two heads at once.
  stays(
      List().norm_heads(k, {5, 0, 2 * D}, k, 2 * D).rope(k, at_k, k, k_turn),
      2,
      Miss::Form);
  // A copy of some of it, and of a piece of each head.
  stays(
      List().rope(k, at_k, k, k_turn).copy({2, 0, 4}, keys, D, D),
      2,
      Miss::Form);
  stays(
      List().rope(k, at_k, k, k_turn).copy(k, {11, 0, 32}, 2, 8),
      2,
      Miss::Form);
  // A second copy of it.
  stays(
      List()
          .rope(k, at_k, k, k_turn)
          .copy(k, keys, D, 5 * D)
          .copy(k, values, D, 5 * D),
      2,
      Miss::Form);
  // A fourth part begins another group.
  stays(
      List(l)
          .rope(k, at_k, k, k_turn)
          .rope(v, at_k, v, k_turn)
          .rope(other_k, at_k, other_k, k_turn),
      2,
      Miss::Form);
  // Many more than are turned, or no whole heads: another's copies.
  Rewritten(
      List().rope(k, at_k, k, k_turn).copy({20, 0, 64}, {21, 0, 64}, 64, 64),
      2);
  Rewritten(
      List().rope(k, at_k, k, k_turn).copy({20, 0, 6}, {21, 0, 6}, 6, 6), 2);
}

TEST_CASE("rewrite: heads without a kernel") {
  List l;
  l.rope(q, at_q, q, q_turn).rope(k, at_k, k, k_turn);
  Kernels none;
  none.refuses_heads = true;
  auto before = missed(Miss::Kernel);
  l.rewrite(none);
  CHECK(l.records.size() == 2);
  CHECK(missed(Miss::Kernel) == before + 1);
}

TEST_CASE("rewrite: more heads than are worth it") {
  List l;
  l.rope(q, at_q, q, q_turn).rope(k, at_k, k, k_turn).copy(k, keys, D, 5 * D);
  Kernels few;
  few.most_heads = 2; // those of k
  auto before = missed(Miss::Form);
  l.rewrite(few);
  CHECK(l.records.size() == 2);
  CHECK(missed(Miss::Form) == before + 1);
}

TEST_CASE("rewrite: heads four items at a time") {
  auto variant = [](const Rewritten& r) {
    auto* found = r.kernels.get<RopeCacheVariant>(r.after.records[0].kernel);
    REQUIRE(found);
    return *found;
  };
  Cells eights{2, 0, 16};
  List::Turn turn{8, 4, 2};
  Rewritten whole(
      List().rope(eights, at_k, eights, turn).copy(eights, keys, 8, 12), 1);
  CHECK(variant(whole) == RopeCacheVariant{Type::f32, 32, 1, true});
  // Not what they do not divide.
  List l;
  Cells y{2, 0, 12};
  l.rope(y, at_k, y, {6, 2, 2}).copy(y, {11, 0, 36}, 6, 30);
  Rewritten r(l, 1);
  CHECK_FALSE(variant(r).VEC);
  // Aligned to one item alone.
  Cells odd{2, 1, 16};
  Rewritten s(List().rope(odd, at_k, odd, turn).copy(odd, keys, 8, 12), 1);
  CHECK_FALSE(variant(s).VEC);
}

// Which records become attention over a quantized cache (rewrite_attention.h).
#include <doctest/doctest.h>

#include "null/rewrite_program.h"
#include "runtime/rewrite_attention.h"

namespace {

using namespace rewriting;

// Buffers.
enum { Q = 1, Keys, Values, R, Mask, Least, Y, Other };

class Chain {
 public:
  Chain& put(
      std::initializer_list<Cells> reads,
      Cells y,
      const Descriptor& descriptor = {}) {
    Record r;
    r.descriptor = descriptor;
    r.first_access = static_cast<uint32_t>(batch.accesses.size());
    r.access_count = static_cast<uint32_t>(reads.size() + 1);
    for (auto& c : reads) {
      batch.accesses.push_back(c.access(false));
    }
    batch.accesses.push_back(y.access(true));
    batch.records.push_back(r);
    return *this;
  }
  Chain& other(std::initializer_list<Cells> reads, Cells y) {
    return put(reads, y);
  }
  Chain& scores(Cells y = {R}, bool last_use = true) {
    Cells side{Keys, 16, 1};
    ScoresRecord descriptor{Type::f32, 8, 32, last_use};
    return put({{Q}, {Keys, 0, 16}, side, side}, y, descriptor);
  }
  Chain& scale(Cells x, uint32_t rows = 1, bool divides = false) {
    PerRowRecord descriptor{Type::f32, divides, rows, 4};
    return put({x, {Least, 1, 1}}, {Q}, descriptor);
  }
  Chain& hide(Cells s = {R}, Cells y = {R}) {
    return put({{Mask}, s, {Least, 0, 1}}, y, MaskRecord{});
  }
  Chain& softmax(Cells x = {R}, Cells y = {R}) {
    return put({x}, y, SoftmaxRecord{});
  }
  AttentionRecords find(Cells weights = {R}) const {
    return find_attention(records_of(batch), weights.access(false));
  }

  Batch batch{0};
};

TEST_CASE("attention over a quantized cache is found") {
  auto plain = Chain().other({{Other}}, {Q}).scores().softmax().find();
  CHECK(plain.found());
  CHECK(plain.mask == none);
  CHECK(plain.scores == 1);
  CHECK(plain.softmax == 2);

  auto masked = Chain().scores().hide().softmax().find();
  CHECK(masked.found());
  CHECK(masked.scores == 0);
  CHECK(masked.mask == 1);
  CHECK(masked.softmax == 2);

  // With others between, as when values are quantized first.
  Chain apart;
  apart.scores().other({{Other}}, {Values}).hide();
  apart.other({{Other}}, {Other, 8}).softmax();
  apart.other({{Q}, {Keys, 20}}, {Values, 8});
  CHECK(apart.find().found());
}

TEST_CASE("the scale of a query is part of it where nobody else wants it") {
  for (Cells x : {Cells{Other}, Cells{Q}}) {
    auto found = Chain().other({{Y}}, x).scale(x).scores().softmax().find();
    CHECK(found.found());
    CHECK(found.scale != none);
    CHECK(found.scale == 1);
    CHECK(found.scores == 2);
  }
  auto whole = [](const Chain& c) {
    auto found = c.find();
    return found.found() && found.scale == none;
  };
  CHECK(whole(Chain().scale({Other}).scores({R}, false).softmax()));
  CHECK(whole(Chain().scale({Other}, 2).scores().softmax()));
  CHECK(whole(Chain().scale({Other}, 1, true).scores().softmax()));
  CHECK(whole(Chain().scale({Other}).other({{Q}}, {Y}).scores().softmax()));
  CHECK(whole(Chain().scale({Other}).other({{Y}}, {Other}).scores().softmax()));
  CHECK(whole(
      Chain().scale({Other}).scores().softmax().other({{Y}}, {Least, 1, 1})));
}

TEST_CASE("attention over a quantized cache is left as it is") {
  auto alone = [](const Chain& c) { return !c.find().found(); };
  CHECK(alone(Chain()));
  CHECK(alone(Chain().softmax()));
  CHECK(alone(Chain().scores()));
  CHECK(alone(Chain().scores().hide()));
  // Not in place: somebody wants the scores.
  CHECK(alone(Chain().scores({Other}).softmax({Other})));
  CHECK(alone(Chain().scores({Other}).hide({Other}).softmax()));
  // Another part of the same memory.
  CHECK(alone(Chain().scores({R, 0, 3}).softmax()));
  CHECK(alone(Chain().scores().softmax({R, 0, 2}, {R})));
  // Two masks, or what is none.
  CHECK(alone(Chain().scores().hide().hide().softmax()));
  CHECK(alone(Chain().scores().other({{R}}, {R}).softmax()));
  CHECK(alone(Chain().other({{Q}}, {R}).softmax()));
  // Read by others, or partly overwritten.
  CHECK(alone(Chain().scores().other({{R}}, {Other}).softmax()));
  CHECK(alone(Chain().scores().softmax().other({{R, 2, 1}}, {Other})));
  CHECK(alone(Chain().scores().softmax().other({{Other}}, {R, 3, 1})));
  // What the members read is overwritten meanwhile.
  for (Cells c : {Cells{Q, 1, 1}, Cells{Keys, 15, 4}, Cells{Keys, 16, 1}}) {
    uint64_t before = missed(rule_of("attention"), Miss::Order);
    CHECK(alone(Chain().scores().other({{Other}}, c).softmax()));
    CHECK(alone(Chain().scores().softmax().other({{Other}}, c)));
    CHECK(missed(rule_of("attention"), Miss::Order) == before + 2);
    CHECK(Chain().other({{Other}}, c).scores().softmax().find().found());
  }
  CHECK(alone(Chain().scores().hide().softmax().other({{Other}}, {Mask})));
  CHECK(alone(Chain().scores().hide().softmax().other({{Other}}, {Least})));
  CHECK(Chain()
            .scores()
            .other({{Other}}, {Mask})
            .hide()
            .softmax()
            .find()
            .found());
  // Too far back.
  Chain far;
  far.scores();
  for (int i = 0; i < 64; ++i) {
    far.other({{Other}}, {Other, 8});
  }
  CHECK(alone(far.softmax()));
}

} // namespace

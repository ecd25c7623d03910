// The table of a mirror's states (runtime/mirror.h): each entry by itself, and
// on the fake device, in the three memory models.
#include "runtime/mirror.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "null/memory_rig.h"

using namespace mlx::core::vulkan;

namespace {

constexpr Use first_uses[] = {Use::Host, Use::Read, Use::Write, Use::Download};

// Which sides have the array's values in program order.
struct Valid {
  bool host, device;
};
Valid valid(Sides s) {
  bool both = s == Sides::Both || s == Sides::Coming || s == Sides::Returned;
  return {both || s == Sides::Host, both || s == Sides::Device};
}

template <typename F>
void for_all(F&& f) {
  for (size_t s = 0; s < mirror_states; ++s) {
    for (size_t u = 0; u < mirror_uses; ++u) {
      f(Sides(s), Use(u), mirror_table[s][u]);
    }
  }
}

std::set<std::pair<Sides, Use>> seen; // on the fake device

// An array, what it must contain, and a stream.
struct Case {
  explicit Case(fake::Settings settings)
      : rig(std::move(settings)), z(rig.array(n * 4)) {
    enc.emplace(*rig.device, 0);
  }
  void finish() {
    if (auto done = enc->close()) {
      done->wait_retired();
    }
  }
  void read() {
    rig.mix(*enc, a, nullptr, z, 1);
  }
  void write(uint32_t v) {
    rig.mix(*enc, nullptr, nullptr, a, v);
    value = v;
  }
  void fill(uint32_t v) {
    std::fill_n(rig.values(a), a->size / 4, v);
    value = v;
  }
  void set_cpu_writer() { // which is done
    auto event = std::make_shared<EventState>();
    event->signal_host(1);
    rig.memory().set_cpu_writer(*a, {event, 1, nullptr});
  }
  Sides sides() {
    return rig.memory().sides(*a);
  }
  void reach(Sides s) {
    value = 0;
    if (s == Sides::Host || s == Sides::Both) {
      a = rig.array(n * 4, Placement::Host);
      fill(5);
    } else {
      a = rig.array(n * 4);
    }
    if (s == Sides::Both) {
      rig.values(a); // keeps the host side
      read();
    }
    if (s == Sides::Device || s == Sides::Coming) {
      write(5);
    }
    if (s == Sides::Coming) {
      enc->copy_to_host(*a);
    }
    finish();
  }
  void use(Use u) {
    if (u == Use::Host) {
      bool known = sides() != Sides::Neither;
      auto* p = rig.values(a);
      CHECK((!known || p[a->size / 4 - 1] == value));
      fill(6);
    } else if (u == Use::Read) {
      read();
    } else if (u == Use::Write) {
      write(9);
    } else {
      enc->copy_to_host(*a);
    }
  }
  // What follows from `from`, and that nothing is lost, on both sides.
  void check(Sides from, Use u, bool host_first = false) {
    CAPTURE(int(from));
    CAPTURE(int(u));
    CHECK(int(sides()) == int(transition(from, u).next));
    seen.emplace(from, u);
    finish();
    if (value == 0) {
      return;
    }
    for (bool host : {host_first, !host_first}) {
      if (host) {
        CHECK(rig.values(a)[a->size / 4 - 1] == value);
      } else {
        read();
        finish();
        CHECK(rig.values(z)[n - 1] == value * 31 + 1);
      }
    }
  }

  Rig rig;
  std::optional<Encoder> enc; // goes first
  Rig::Array z, a;
  uint32_t value = 0; // 0: nobody wrote yet
};

struct Moved : Case {
  Moved() : Case(card()) {}
  // A card's array of 4 MiB moves to the host's memory. Then there is room on
  // the card again.
  void move() {
    a = rig.array(4 * mib);
    write(5);
    finish();
    rest();
    std::vector<Rig::Array> others;
    while (!rig.memory().in_place(*a)) {
      others.push_back(rig.array(4 * mib));
    }
    others.clear();
    rest();
    CHECK(sides() == Sides::Device);
  }
  void rest() {
    for (int i = 0; i < 300; ++i) {
      rig.mix(*enc, nullptr, nullptr, z, 1);
      finish();
    }
  }
};

void use_in_all_states() {
  for (auto& settings : {lunar_lake(), card(), apu()}) {
    Case c(settings);
    for (size_t s = 0; s < size_t(Sides::Returned); ++s) {
      for (auto u : first_uses) {
        for (bool host_first : {false, true}) {
          c.reach(Sides(s));
          REQUIRE(int(c.sides()) == int(s));
          c.use(u);
          c.check(Sides(s), u, host_first);
        }
      }
    }
  }
}

void read_what_is_being_downloaded() {
  for (auto& settings : {lunar_lake(), card(), apu()}) {
    Case c(settings);
    for (auto s : {Sides::Host, Sides::Both, Sides::Device, Sides::Coming}) {
      c.reach(Sides::Device);
      c.enc->copy_to_host(*c.a);
      fake::hold(true);
      c.enc->close();
      if (s == Sides::Host || s == Sides::Both) {
        c.rig.memory().expect_download(*c.a);
        c.rig.values(c.a);
        c.rig.memory().end_expecting();
      }
      if (s == Sides::Both) {
        c.read();
      } else if (s == Sides::Device) {
        c.write(9);
      }
      REQUIRE(int(c.sides()) == int(s));
      auto uploaded = c.rig.memory().uploaded.load();
      c.read();
      CHECK(c.rig.memory().uploaded == uploaded);
      auto next = c.sides();
      fake::hold(false);
      CHECK(int(next) == int(transition(s, Use::ReadCopy).next));
      seen.emplace(s, Use::ReadCopy);
      c.finish();
      CHECK(c.rig.values(c.a)[n - 1] == c.value);
      CHECK(c.rig.values(c.z)[n - 1] == c.value * 31 + 1);
    }
  }
}

// One memory's, once it is uploaded.
void free_the_host_side() {
  for (bool asked : {false, true}) {
    Case c(apu());
    c.a = c.rig.numbers(n, 5);
    c.value = 5;
    auto buffers = fake::statistics().live_buffers;
    c.read();
    CHECK(c.sides() == Sides::Both);
    if (asked) {
      c.set_cpu_writer();
    }
    auto from = c.sides();
    c.finish();
    CHECK(fake::statistics().live_buffers == buffers + asked);
    c.check(from, Use::Uploaded);
  }
}

// The device's values stay.
void fail_to_copy() {
  for (auto& settings : {card(), apu()}) { // in one allocation none is copied
    auto s = settings;
    s.fail_submit = 1;
    Case c(s);
    c.reach(Sides::Device);
    CHECK_THROWS(c.rig.values(c.a));
    c.check(Sides::Host, Use::FetchFailed);
  }
}

void return_to_the_card() {
  Moved c;
  for (auto u : first_uses) {
    c.move();
    c.read();
    CHECK_FALSE(c.rig.memory().in_place(*c.a));
    REQUIRE(c.sides() == transition(Sides::Device, Use::Return).next);
    c.use(u);
    c.check(Sides::Returned, u);
  }
  seen.emplace(Sides::Device, Use::Return);
  // Its batch retires in each state.
  for (auto s : {Sides::Returned, Sides::Device, Sides::Coming}) {
    c.move();
    auto buffers = fake::statistics().live_buffers;
    c.read();
    if (s != Sides::Returned) {
      c.write(9);
    }
    if (s == Sides::Coming) {
      c.enc->copy_to_host(*c.a);
    }
    REQUIRE(int(c.sides()) == int(s));
    c.finish();
    CHECK(fake::statistics().live_buffers == buffers + (s == Sides::Coming));
    c.check(s, Use::Uploaded);
  }
}

} // namespace

TEST_CASE("mirror: each step of the table is legal or impossible") {
  int legal = 0;
  for_all([&](Sides s, Use u, Transition t) {
    CAPTURE(int(s));
    CAPTURE(int(u));
    if (t.act == Act::Never) {
      CHECK_THROWS_AS(transition(s, u), std::logic_error);
      return;
    }
    ++legal;
    auto now = valid(s);
    switch (t.act) {
      case Act::Upload:
      case Act::UploadAgain:
        // An array that is brought back is copied from its old device side.
        CHECK((now.host || u == Use::Return));
        now = {true, true};
        break;
      case Act::Fetch:
      case Act::Download:
      case Act::DownloadAgain:
        CHECK(now.device);
        now.host = true;
        break;
      case Act::Invalidate:
        CHECK(s == Sides::Returned);
        break;
      case Act::FreeHost:
        CHECK(now.device);
        now.host = false;
        break;
      default:
        break;
    }
    switch (u) {
      case Use::Host: // it may write
        CHECK((now.host || s == Sides::Neither));
        now = {true, false};
        break;
      case Use::Read: // finds it on the device
        CHECK((now.device || s == Sides::Neither));
        break;
      case Use::ReadCopy:
        now.device = true;
        break;
      case Use::Write:
        now = {false, true};
        break;
      case Use::Download:
        CHECK((now.host || s == Sides::Neither));
        break;
      case Use::FetchFailed: // a later download counts
        now = {s == Sides::Coming, true};
        break;
      default:
        break;
    }
    auto next = valid(t.next);
    CHECK((!next.host || now.host));
    CHECK((!next.device || now.device));
    CHECK((next.host || next.device || s == Sides::Neither));
    // An unseen side is never forgotten, and none appears from nowhere.
    CHECK(
        (t.next == Sides::Returned) ==
        (u == Use::Return || (s == Sides::Returned && u == Use::Read)));
  });
  CHECK(legal == 39);
}

TEST_CASE("mirror: arrays take each step of the table") {
  seen.clear();
  use_in_all_states();
  read_what_is_being_downloaded();
  free_the_host_side();
  fail_to_copy();
  return_to_the_card();
  // Threads that read or write while another waits for a copy that fails.
  for (auto s : {Sides::Both, Sides::Device, Sides::Coming, Sides::Returned}) {
    seen.emplace(s, Use::FetchFailed);
  }
  for_all([&](Sides s, Use u, Transition t) {
    CAPTURE(int(s));
    CAPTURE(int(u));
    CHECK(seen.contains({s, u}) == (t.act != Act::Never));
  });
}

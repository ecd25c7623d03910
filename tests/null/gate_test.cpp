// The queue with a gate that knows nothing of ranks (runtime/gate.h).
#include "runtime/gate.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include "null/fake_kernels.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "runtime/profile.h"

using namespace mlx::core::vulkan;

namespace {

struct Numbered : Hold {
  Numbered(int number, const Hold& how) : Hold(how), number(number) {}
  int number;
};

int number_of(const Hold& hold) {
  return static_cast<const Numbered&>(hold).number;
}

// Holds those from `open` on.
class FakeGate : public Gate {
 public:
  std::atomic<int> open{1}, announced{0}, started{0}, ended{0};

  size_t may_start(Holds holds) override {
    size_t i = 0;
    while (i < holds.size() && number_of(*holds[i]) < open) {
      ++i;
    }
    return i;
  }
  void announce(std::vector<const Hold*> holds) override {
    for (auto* hold : holds) {
      announced = std::max<int>(announced, number_of(*hold));
    }
  }
  void start(const Hold& hold) override {
    started = number_of(hold);
  }
  void done(const Hold& hold) override {
    ended = number_of(hold);
  }
  std::string error() override {
    std::lock_guard lock(mutex_);
    return error_;
  }
  void fail(const std::string& why) override {
    std::lock_guard lock(mutex_);
    error_ = why;
  }
  void look_for_ended(const Hold&) override {}
  std::string waits_for(const Hold&) override {
    return "a test";
  }

 private:
  std::mutex mutex_;
  std::string error_;
};

struct Stream {
  Stream() {
    fake::reset({});
    device = std::make_unique<Device>();
    encoder = std::make_unique<Encoder>(*device, 0);
    z = device->memory().allocate(2800, Placement::Host);
  }
  ~Stream() {
    encoder.reset();
    device->memory().release(z);
  }
  void mix() {
    fake::dispatch_mix(*encoder, fake::mix(device->pipelines()), z, 1);
  }
  void mix(int number, const Hold& how) {
    encoder->hold(gate, std::make_shared<Numbered>(number, how));
    mix();
  }

  std::shared_ptr<FakeGate> gate = std::make_shared<FakeGate>();
  std::unique_ptr<Device> device;
  std::unique_ptr<Encoder> encoder;
  Buffer* z = nullptr;
};

uint64_t submissions() {
  return counters().submissions.load();
}

template <typename F>
bool soon(F&& f) {
  for (int i = 0; i < 2000 && !f(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return f();
}

void a_while() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

constexpr Hold at_once{}, announced{.announced_before = 100},
    far{.announced_before = 1e-12f}, ends{.ends_submission = true};

} // namespace

TEST_CASE("gate: a batch is held before a record until that may start") {
  for (auto& how : {at_once, announced}) {
    Stream s;
    uint64_t before = submissions();
    s.mix();
    s.mix(1, how);
    s.mix();
    auto done = s.encoder->close();
    CHECK(soon([&] { return submissions() == before + 1; })); // the first
    a_while();
    CHECK_FALSE(done->submitted());
    CHECK(s.gate->started == 0);
    CHECK(s.gate->announced == (how.announced_before > 0 ? 1 : 0));
    s.gate->open = 2;
    done->wait();
    CHECK(done->error().empty());
    CHECK(submissions() == before + 2);
    CHECK(s.gate->started == 1);
    CHECK(soon([&] { return s.gate->ended == 1; }));
  }
}

TEST_CASE(
    "gate: records that the device does not reach soon are not announced") {
  Stream s;
  s.mix(1, announced);
  s.mix(2, far); // a record is before it
  s.mix(3, announced);
  auto done = s.encoder->close();
  CHECK(soon([&] { return s.gate->announced == 1; }));
  a_while();
  CHECK(s.gate->announced == 1);
  s.gate->open = 4;
  done->wait();
  CHECK(done->error().empty());
}

TEST_CASE("gate: a submission ends where others wait for its end") {
  Stream s;
  s.gate->open = 3;
  uint64_t before = submissions();
  s.mix(1, ends);
  s.mix(2, at_once);
  s.mix();
  auto done = s.encoder->close();
  done->wait();
  CHECK(done->error().empty());
  CHECK(submissions() == before + 2);
}

TEST_CASE("gate: one that failed fails what it holds and what comes later") {
  Stream s;
  s.mix();
  auto first = s.encoder->close();
  first->wait();
  s.mix(1, at_once);
  auto held = s.encoder->close();
  s.gate->fail("it broke");
  held->wait();
  CHECK(held->error() == "it broke");
  s.mix();
  auto later = s.encoder->close();
  later->wait();
  CHECK(later->error() == "it broke");
  CHECK(first->error().empty());
}

TEST_CASE("gate: a hold is forgotten when its dispatch was not encoded") {
  Stream s;
  s.encoder->hold(s.gate, std::make_shared<Numbered>(1, at_once));
  s.encoder->forget_hold();
  s.mix();
  auto done = s.encoder->close();
  s.gate->fail("an operation could not be encoded"); // as callers do
  done->wait();
  CHECK_FALSE(done->error().empty());
}

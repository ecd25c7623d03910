// Waiting for the device, and telling a batch that hangs from a long one.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "null/fake_kernels.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "runtime/recorder.h"
#include "runtime/timeline.h"
#include "runtime/watch.h"

using namespace mlx::core::vulkan;
using namespace std::chrono_literals;

TEST_CASE("wait: polls first, then sleeps in slices that end in time") {
  constexpr std::chrono::nanoseconds spin = 1500us;
  // Linux ends a sleep about this much after its time.
  constexpr std::chrono::nanoseconds slack = 50us;
  CHECK(next_sleep(0ns, spin) == 0ns);
  CHECK(next_sleep(spin - 1ns, spin) == 0ns);
  CHECK(next_sleep(0ns, 0ns) > 0ns);
  for (auto waited : {2ms, 5ms, 20ms, 200ms}) {
    auto sleep = next_sleep(waited, spin);
    CAPTURE(waited.count());
    CHECK(sleep + slack <= 200us); // how late the wait may end
    CHECK(6us * 10 <= sleep + slack); // a look of 6 us takes 10 % of a core
  }
  std::chrono::nanoseconds last = 0ns;
  for (std::chrono::nanoseconds waited = spin; waited < 100s; waited *= 2) {
    auto sleep = next_sleep(waited, spin);
    CHECK(sleep >= last);
    CHECK(sleep <= 2ms);
    last = sleep;
  }
}

TEST_CASE("watch: only a batch without progress hangs, and is told once") {
  Watch watch;
  Watch::Time t{};
  auto limit = 10s;
  CHECK_FALSE(watch.hangs(1, 0, t, limit));
  CHECK_FALSE(watch.hangs(1, 0, t += 9s, limit));
  // A long batch: each mark begins the time anew.
  for (uint32_t done = 1; done < 9; ++done) {
    CHECK_FALSE(watch.hangs(1, done, t += 9s, limit));
  }
  CHECK(watch.hangs(1, 8, t += 10s, limit));
  CHECK_FALSE(watch.hangs(1, 8, t += 10s, limit));
  // It went on after all, and stopped again: one report a batch.
  CHECK_FALSE(watch.hangs(1, 9, t += 10s, limit));
  CHECK_FALSE(watch.hangs(1, 9, t += 10s, limit));
  CHECK_FALSE(watch.hangs(2, 0, t += 10s, limit));
  CHECK(watch.hangs(2, 0, t += 10s, limit));
  // Off.
  CHECK_FALSE(watch.hangs(3, 0, t += 10s, 0s));
  CHECK_FALSE(watch.hangs(3, 0, t += 1000s, 0s));
}

TEST_CASE("watch: the report names device, kernels, grids and settings") {
  std::vector<WatchedRecord> at(10, {"sort{T=f32}", {3, 2, 1}});
  for (uint32_t i = 1; i < 43; ++i) {
    at.push_back({"gather", {i, 1, 1}});
  }
  auto s = describe_hang("GPU X", 7, 30s, 64, 97, at);
  for (auto* part :
       {"GPU X",
        "30 s",
        "stream 7",
        "64 of its 97",
        "sort{T=f32} with 3x2x1 workgroups",
        "10 times",
        "gather with 39x1x1 workgroups",
        "and 3 more kinds",
        "MLX_VK_DEBUG=watch",
        "MLX_VK_TIMEOUT",
        "mlx-vulkan selftest"}) {
    CAPTURE(part);
    CHECK(s.find(part) != s.npos);
  }
}

namespace {

constexpr uint32_t n = 700;

void mix(Device& d, Encoder& enc, Buffer* z, uint32_t salt) {
  fake::dispatch_mix(enc, fake::mix(d.pipelines()), z, salt);
}

} // namespace

TEST_CASE(
    "watch: waiting calls throw away a hung device, and nothing is freed") {
  fake::reset({});
  bool retired = false, freed = false; // the device lets go at its end
  {
    Device d;
    d.recorder().retirer().set_watch({200ms, true});
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      for (uint32_t i = 0; i < 3; ++i) {
        mix(d, enc, z, i);
      }
      enc.keep(std::shared_ptr<void>(nullptr, [&](void*) { freed = true; }));
      fake::hold(true);
      auto done = enc.close([&] { retired = true; });
      done->wait();
      CHECK(done->error().find("no progress") != std::string::npos);
      CHECK(done->error().find("mix") != std::string::npos);
      done->wait_retired();
      CHECK(retired);
      CHECK_FALSE(freed); // the device may still be at it
      // Nothing else starts, and it says why.
      mix(d, enc, z, 9);
      auto next = enc.close();
      next->wait();
      CHECK(next->error() == done->error());
      fake::hold(false);
      d.vk().vkDeviceWaitIdle(d.handle());
    }
    d.memory().release(z);
  }
  CHECK(fake::errors().empty());
  CHECK(fake::statistics().live_memory == 0);
}

TEST_CASE("watch: a hang is reported, and the wait goes on, by default") {
  fake::reset({});
  {
    Device d;
    d.recorder().retirer().set_watch({200ms, false});
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      mix(d, enc, z, 1);
      fake::hold(true);
      auto done = enc.close();
      std::this_thread::sleep_for(1500ms);
      CHECK_FALSE(done->reached());
      fake::hold(false);
      done->wait();
      CHECK(done->error().empty());
    }
    d.memory().release(z);
  }
  CHECK(fake::errors().empty());
}

namespace {

// Four kernels, each after the one before, that take at least `held`; the marks
// that they had.
uint64_t marks_of(
    Device& d,
    Encoder& enc,
    Buffer* z,
    std::chrono::milliseconds held,
    std::function<void()> on_retired = {}) {
  auto before = fake::statistics().marks;
  for (uint32_t i = 0; i < 4; ++i) {
    mix(d, enc, z, i);
  }
  fake::hold(held > 0ms);
  auto done = enc.close(std::move(on_retired));
  std::this_thread::sleep_for(held);
  fake::hold(false);
  done->wait();
  return fake::statistics().marks - before;
}

} // namespace

TEST_CASE("watch: a batch that follows a long one has marks of progress") {
  fake::reset({});
  {
    Device d;
    REQUIRE_FALSE(d.caps().software());
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      auto run = [&](std::chrono::milliseconds held) {
        auto marks = marks_of(d, enc, z, held);
        std::this_thread::sleep_for(20ms); // the retiring thread's look
        return marks;
      };
      CHECK(run(0ms) == 0);
      CHECK(run(1800ms) == 0);
      CHECK(run(0ms) == 3);
      CHECK(run(0ms) == 0);
    }
    d.memory().release(z);
  }
  CHECK(fake::errors().empty());
}

TEST_CASE("watch: a pause is no long batch") {
  fake::reset({});
  {
    Device d;
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      CHECK(marks_of(d, enc, z, 0ms) == 0);
      std::this_thread::sleep_for(1200ms);
      // Without records, it has the ticket of the batch before the pause.
      enc.keep(std::make_shared<int>());
      enc.close()->wait_retired();
      std::this_thread::sleep_for(20ms); // the retiring thread's look
      CHECK(marks_of(d, enc, z, 0ms) == 0);
    }
    d.memory().release(z);
  }
  CHECK(fake::errors().empty());
}

TEST_CASE("watch: a short batch ends the marks, whoever retires it") {
  fake::reset({});
  {
    Device d;
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      std::promise<void> go_on;
      std::atomic<bool> entered = false;
      // Nobody but the retiring thread retires it, which is then held up.
      marks_of(d, enc, z, 1800ms, [&, wait = go_on.get_future().share()] {
        entered = true;
        wait.wait();
      });
      while (!entered) {
        std::this_thread::yield();
      }
      CHECK(marks_of(d, enc, z, 0ms) == 3);
      d.recorder().retirer().retire();
      CHECK(marks_of(d, enc, z, 0ms) == 0);
      d.recorder().retirer().retire();
      CHECK(marks_of(d, enc, z, 0ms) == 0);
      go_on.set_value();
    }
    d.memory().release(z);
  }
  CHECK(fake::errors().empty());
}

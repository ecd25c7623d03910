// How long work is expected to take, where it is cut for that, and what happens
// when the device drops a submission all the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/probe.h"
#include "null/memory_rig.h"
#include "pipeline/sources.h"
#include "runtime/recorder.h"
#include "runtime/sentinels.h"
#include "runtime/work.h"

using namespace mlx::core::vulkan;

namespace {

Caps gpu(VkPhysicalDeviceType type, uint32_t cores) {
  Caps c;
  c.type = type;
  c.core_count = cores;
  return c;
}

uint64_t groups_of(Grid g) {
  return uint64_t(g.x) * g.y * g.z;
}

Record dispatch_of(float seconds, Grid grid = {}, uint32_t parts = 1) {
  Record r;
  r.seconds = seconds;
  r.grid = grid;
  r.parts = parts;
  return r;
}

} // namespace

TEST_CASE("work: every device has rates, and a limit of its kind") {
  auto discrete = gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 0);
  auto integrated = gpu(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 0);
  auto cpu = gpu(VK_PHYSICAL_DEVICE_TYPE_CPU, 0);
  for (auto type :
       {VK_PHYSICAL_DEVICE_TYPE_OTHER,
        VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU,
        VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        VK_PHYSICAL_DEVICE_TYPE_CPU}) {
    Rates r = assumed_rates(gpu(type, 0));
    CHECK(r.bytes >= 1e9);
    CHECK(r.flops >= 1e9);
    CHECK(r.matrix_flops >= r.flops);
    CHECK(r.copy_bytes >= 1e9);
  }
  CHECK(assumed_rates(discrete).bytes > assumed_rates(integrated).bytes);
  auto h200 = assumed_rates(gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 132));
  CHECK(h200.bytes > 4 * assumed_rates(discrete).bytes);
  CHECK(h200.bytes < 4.8e12); // its peak

  CHECK(work_limit(discrete, -1).seconds == 0.5);
  CHECK(work_limit(integrated, -1).seconds == 0.1);
  CHECK(std::isinf(work_limit(cpu, -1).seconds));
  CHECK(std::isinf(work_limit(discrete, 0).seconds));
  CHECK(work_limit(cpu, 2.5).seconds == doctest::Approx(2.5e-3));

  // The slower of memory and arithmetic; a kernel's own bytes before ranges.
  WorkLimit limit{{.bytes = 100, .flops = 10, .matrix_flops = 40}, 1};
  CHECK(limit.expect({}, 200, 0, false) == 2);
  CHECK(limit.expect({.flops = 100}, 200, 0, false) == 10);
  CHECK(limit.expect({.flops = 100}, 200, 0, true) == 2.5);
  CHECK(limit.expect({.bytes = 50}, 200, 0, false) == 0.5);
  // Half of it over the bus.
  CHECK(limit.expect({}, 200, 5, false) == 7);
  CHECK(limit.expect({.bytes = 50}, 200, 5, false) == 1.75);
}

TEST_CASE("work: the parts of a grid have each group once, under its index") {
  const Grid grids[] = {
      {1, 1, 1},
      {7, 1, 1},
      {65535, 1, 1},
      {65535, 2, 1},
      {65535, 30, 1},
      {3, 65535, 1},
      {40000, 3, 1}};
  for (Grid g : grids) {
    for (uint32_t parts : {1u, 2u, 3u, 20u, 64u, 1000u, 4096u}) {
      CAPTURE(g.x);
      CAPTURE(g.y);
      CAPTURE(parts);
      std::vector<uint8_t> seen(groups_of(g));
      bool fits = true, once = true, same = true;
      uint64_t largest = 0;
      for (auto& [b, n] : split(g, parts)) {
        fits = fits && b.x + n.x <= 65535 && b.y + n.y <= 65535 &&
            b.z + n.z <= 65535 && groups_of(n) > 0;
        largest = std::max(largest, groups_of(n));
        for (uint32_t y = b.y; y < b.y + n.y; ++y) {
          for (uint32_t x = b.x; x < b.x + n.x; ++x) {
            for (uint32_t z = b.z; z < b.z + n.z; ++z) {
              // common/args.glsl, with gl_NumWorkGroups of the part or up to
              // its end: devices differ.
              uint64_t index = x + uint64_t(n.x) * (y + uint64_t(n.y) * z);
              same = same &&
                  index ==
                      x + uint64_t(b.x + n.x) * (y + uint64_t(b.y + n.y) * z);
              once = once && index < seen.size() && !seen[index];
              if (once) {
                seen[index] = 1;
              }
            }
          }
        }
      }
      CHECK(fits);
      CHECK(once);
      CHECK(same);
      CHECK(std::count(seen.begin(), seen.end(), 1) == groups_of(g));
      // A row of several is not cut.
      uint64_t least = g.y > 1 ? g.x : 1;
      CHECK(largest <= std::max<uint64_t>(groups_of(g) / parts, least));
    }
  }
}

TEST_CASE("work: a batch is cut where the next record would be too much") {
  constexpr double limit = 0.5;
  auto cuts = [&](const std::vector<Record>& records) {
    std::vector<uint32_t> order(records.size());
    for (uint32_t i = 0; i < order.size(); ++i) {
      order[i] = order.size() - 1 - i; // backwards
    }
    std::string text;
    for (auto& step : cut_work(order, records, limit)) {
      text += (step.cut ? "|" : "") + std::to_string(order[step.position]);
      text += step.last ? "" : "+";
    }
    return text;
  };
  CHECK(cuts({dispatch_of(0.2f), dispatch_of(0.2f)}) == "");
  CHECK(cuts(std::vector<Record>(5, dispatch_of(0.2f))) == "43|21|0");
  // Too long, but of one group.
  CHECK(
      cuts({dispatch_of(0.1f), dispatch_of(2), dispatch_of(0.1f)}) == "2|1|0");
  CHECK(
      cuts({dispatch_of(0.1f), dispatch_of(2, {8, 1, 1}, 4)}) ==
      "1+|1+|1+|1|0");
  Record copy;
  copy.kind = Record::Kind::Copy;
  copy.copy_size = 130;
  copy.seconds = 1.3f;
  CHECK(cuts({copy, dispatch_of(0.3f)}) == "1|0+|0+|0");
  uint64_t at = 0;
  uint32_t order[] = {0};
  for (auto& step : cut_work(order, {&copy, 1}, limit)) {
    CHECK(step.offset == at);
    CHECK(step.offset % 4 == 0);
    at += step.size;
  }
  CHECK(at == copy.copy_size);
}

TEST_CASE("work: kernels know their workgroup by group_index() alone") {
  // In a part of a dispatch the others have another meaning.
  for (size_t i = 0; i < embedded_source_count; ++i) {
    auto& [name, source] = embedded_sources[i];
    std::string text = source;
    std::string_view n = name;
    CAPTURE(name);
    // loops.glsl counts what competes, which parts do not with each other.
    // Custom kernels add gl_WorkGroupID to their arguments' base and count
    // nothing.
    bool may = n == "common/args.glsl" || n == "common/loops.glsl" ||
        n == "common/custom.glsl" || n == "common/msl.glsl" ||
        n == "common/dense.h"; // a comment
    for (auto* word :
         {"gl_NumWorkGroups", "gl_WorkGroupID", "gl_GlobalInvocationID"}) {
      CHECK((may || text.find(word) == text.npos));
    }
  }
}

namespace {

// With two arrays of `items`.
class WorkRig : public Rig {
 public:
  explicit WorkRig(fake::Settings settings, uint32_t items = n)
      : Rig(std::move(settings)), x(numbers(items, 5)), z(numbers(items, 0)) {}

  // z = salt
  void set(Encoder& enc, uint32_t salt, double seconds = 0) {
    Binding in[] = {{}, {}};
    run(enc, fake::mix(device->pipelines()), in, salt, {1, 1, 1}, seconds);
  }
  // z += 31 x + salt, in workgroups
  void add(Encoder& enc, uint32_t salt, Grid grid, double seconds) {
    Binding in[] = {{x.get(), 0, 0, x->size}, {z.get(), 0, 0, z->size}};
    run(enc, fake::groups(device->pipelines()), in, salt, grid, seconds);
  }
  bool all(uint32_t value) {
    auto* items = values(z);
    return std::all_of(
        items, items + z->size / 4, [&](uint32_t v) { return v == value; });
  }

  const Array x, z;

 private:
  void run(
      Encoder& enc,
      const Kernel& k,
      std::span<const Binding> in,
      uint32_t salt,
      Grid grid,
      double seconds) {
    Binding out[] = {{z.get(), 0, 0, z->size}};
    fake::MixParams p{uint32_t(z->size / 4), salt};
    Work work{.flops = seconds * device->work_limit().rates.flops};
    enc.dispatch(k, in, out, &p, sizeof p, grid, work);
    enc.keep(x);
    enc.keep(z);
  }
};

fake::Settings settings(bool discrete) {
  fake::Settings s;
  s.discrete = discrete;
  return s;
}

} // namespace

TEST_CASE("work: a batch takes as many submissions as its limit says") {
  for (bool discrete : {false, true}) {
    CAPTURE(discrete);
    WorkRig rig(settings(discrete));
    double limit = rig.device->work_limit().seconds;
    CHECK(limit == (discrete ? 0.5 : 0.1));
    Encoder enc(*rig.device, 0);
    for (uint32_t i = 0; i < 10; ++i) {
      rig.set(enc, i, 0.4 * limit);
    }
    enc.close()->wait();
    CHECK(fake::statistics().submits == 5);
    CHECK(fake::statistics().sentinels == 5);
    CHECK(fake::statistics().most_dispatches == 2);
    CHECK(rig.all(9));
    // Small work stays together.
    auto before = fake::statistics().submits;
    for (uint32_t i = 0; i < 10; ++i) {
      rig.set(enc, i, 0.01 * limit);
    }
    enc.close()->wait();
    CHECK(fake::statistics().submits == before + 1);
  }
}

TEST_CASE("work: a dispatch of 10 s runs in parts of half a second") {
  struct {
    uint32_t items;
    Grid grid;
  } cases[] = {
      {700, {175, 1, 1}},
      {8 * 65535, {1024, 128, 1}}, // as linear() folds
      {4 * 65535 + 9, {1024, 65, 1}}};
  for (auto& c : cases) {
    CAPTURE(c.items);
    WorkRig rig(settings(true), c.items);
    Encoder enc(*rig.device, 0);
    rig.set(enc, 100);
    rig.add(enc, 7, c.grid, 10);
    rig.add(enc, 1, c.grid, 0.1);
    enc.close()->wait();
    auto s = fake::statistics();
    // The first has what came before, the one of 0.1 s has its own.
    CHECK(s.submits >= 21);
    CHECK(s.submits <= 24);
    CHECK(s.dispatches == s.submits + 1);
    CHECK(s.most_groups == groups_of(c.grid));
    CHECK(rig.all(100 + 7 + 1 + 2 * 31 * 5));
  }
}

TEST_CASE("work: a slow device gets shorter submissions") {
  Slowdown s;
  s.learn(1, 0.1);
  CHECK(s.factor() == 1);
  s.learn(1, 9);
  CHECK(s.factor() == 9);
  s.learn(1, 1);
  CHECK(s.factor() == 8);
  s.learn(1e-9, 1e9);
  CHECK(s.factor() == Slowdown::most);

  WorkRig rig(settings(true), 4 * 4000);
  auto& device = *rig.device;
  double flops = 64. * ProbeRateVariant::group * ProbeRateVariant::flops;
  fake::settings().group_us =
      20e6 * flops / device.work_limit().rates.flops; // twenty times as long
  device.measure_rates();
  // The kernel of bytes, as fast as expected, takes an eighth off, and a start
  // of a dispatch is subtracted.
  CHECK(device.slowdown().factor() >= 16);
  auto submissions = [&](double seconds) {
    auto before = fake::statistics().submits;
    Encoder enc(device, 0);
    rig.add(enc, 7, {4000, 1, 1}, seconds);
    enc.close()->wait();
    device.finish_submitted();
    return fake::statistics().submits - before;
  };
  CHECK(submissions(0.4) >= 12);
  // That took milliseconds, and so does what follows.
  for (int i = 0; i < 60; ++i) {
    submissions(0.4);
  }
  CHECK(submissions(0.4) == 1);
  // A busy device.
  fake::settings().work_us = 30'000;
  CHECK(submissions(0.001) == 1);
  CHECK(device.slowdown().factor() >= 30);
  CHECK(submissions(0.4) >= 24);
}

TEST_CASE("work: no part is more than its share") {
  WorkRig rig(settings(true));
  Encoder enc(*rig.device, 0);
  rig.add(enc, 7, {175, 1, 1}, 10);
  enc.close()->wait();
  CHECK(fake::statistics().most_groups <= 175 / 20 + 1);
  CHECK(rig.all(7 + 31 * 5));
}

TEST_CASE("work: a long upload is cut") {
  WorkRig rig(settings(true), 1 << 20);
  auto limit = rig.device->work_limit();
  limit.rates.copy_bytes = 1e6; // 4.2 s
  rig.device->set_work_limit(limit);
  Encoder enc(*rig.device, 0);
  rig.add(enc, 7, {(1 << 20) / fake::group_items / 16, 16, 1}, 0.01);
  enc.copy_to_host(*rig.z);
  enc.close()->wait();
  CHECK(fake::statistics().most_copied <= 500'000);
  CHECK(fake::statistics().submits >= 27); // x, z, and z back
  CHECK(rig.all(7 + 31 * 5));
}

TEST_CASE("work: pipelines for parts are made when needed, once") {
  WorkRig rig(settings(false));
  auto& table = rig.device->pipelines();
  auto& k = fake::groups(table);
  table.finish(k);
  auto before = fake::statistics().live_pipelines;
  auto& parts = table.in_parts(k);
  table.finish(parts);
  CHECK(&parts != &k);
  CHECK(parts.name == k.name);
  CHECK(parts.args_size == k.args_size);
  CHECK(&table.in_parts(k) == &parts);
  CHECK(&table.in_parts(parts) == &parts);
  CHECK(&fake::groups(table) == &k);
  CHECK(fake::statistics().live_pipelines == before + 1);
}

TEST_CASE("work: a refused submission in a batch of several fails it") {
  auto s = settings(true);
  s.fail_submit = 2;
  WorkRig rig(s);
  Encoder enc(*rig.device, 0);
  bool freed = false;
  enc.keep(std::shared_ptr<void>(nullptr, [&](void*) {
    CHECK(fake::statistics().submits == 2);
    freed = true;
  }));
  rig.add(enc, 7, {175, 1, 1}, 10);
  auto failed = enc.close();
  failed->wait_retired();
  CHECK(failed->error().find("vkQueueSubmit") != std::string::npos);
  CHECK(freed);
  rig.set(enc, 3);
  auto next = enc.close();
  next->wait();
  CHECK(next->error().empty());
  CHECK(rig.all(3));
}

TEST_CASE("work: to the watch, a part that is done is progress") {
  auto s = settings(true);
  s.work_us = 130'000;
  WorkRig rig(s);
  rig.device->recorder().retirer().set_watch(
      {std::chrono::milliseconds(400), true});
  Encoder enc(*rig.device, 0);
  rig.add(enc, 7, {175, 1, 1}, 5.5); // in 11 parts or more, 1.4 s
  auto done = enc.close();
  done->wait();
  CHECK(done->error() == "");
  CHECK(fake::statistics().submits >= 11);
  CHECK(rig.all(7 + 31 * 5));
}

TEST_CASE(
    "sentinels: a dropped submission fails all who wait, and what follows") {
  for (double seconds : {0.01, 3.0}) { // the batch's only one, or of several
    CAPTURE(seconds);
    auto s = settings(true);
    s.drop_submit = 2;
    bool freed = false;
    {
      WorkRig rig(s);
      {
        Encoder one(*rig.device, 1), two(*rig.device, 2);
        auto event = std::make_shared<EventState>();
        rig.set(one, 1);
        auto good = one.close();
        good->wait();
        CHECK(good->error().empty());
        rig.set(one, 2);
        auto second = one.close();
        fake::hold(true);
        one.keep(std::shared_ptr<void>(nullptr, [&](void*) { freed = true; }));
        rig.add(one, 5, {175, 1, 1}, seconds);
        event->signal_on(one.current_completion(), 1);
        auto dropped = one.close();
        two.wait({nullptr, 0, dropped});
        rig.set(two, 3);
        auto dependent = two.close();
        fake::hold(false);
        dropped->wait();
        auto error = dropped->error();
        CAPTURE(error);
        CHECK(error.find("dropped work") != std::string::npos);
        CHECK(error.find("groups") != std::string::npos);
        CHECK(error.find("stream 1") != std::string::npos);
        CHECK(error.find("MLX_VK_MAX_MS_PER_SUBMISSION") != std::string::npos);
        CHECK(second->error().empty());
        event->wait(1);
        CHECK(event->error(1) == error);
        dependent->wait();
        CHECK(dependent->error() == error);
        // Nothing starts any more.
        rig.set(one, 4);
        auto later = one.close();
        later->wait_retired();
        CHECK(later->error() == error);
        auto submits = fake::statistics().submits;
        rig.set(two, 5);
        two.close()->wait_retired();
        CHECK(fake::statistics().submits == submits);
        dropped->wait_retired();
        CHECK_FALSE(freed); // the device may be at what came after it
      }
    }
    CHECK(freed);
  }
}

TEST_CASE("sentinels: a driver that shows no timestamps goes without") {
  auto s = settings(true);
  s.shows_queries = false;
  WorkRig rig(s);
  Encoder enc(*rig.device, 0);
  for (uint32_t i = 0; i < 3; ++i) {
    rig.set(enc, i);
    auto done = enc.close();
    done->wait();
    CHECK(done->error().empty());
    CHECK(rig.all(i));
  }
}

TEST_CASE("sentinels: more submissions than queries") {
  auto s = settings(false);
  s.max_delay_us = 0;
  WorkRig rig(s);
  Encoder enc(*rig.device, 0);
  rig.set(enc, 0);
  enc.close()->wait();
  fake::hold(true);
  std::shared_ptr<Completion> last;
  for (uint32_t i = 0; i < Sentinels::count + 300; ++i) {
    rig.set(enc, i);
    last = enc.close();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(fake::statistics().submits <= Sentinels::count + 1);
  fake::hold(false);
  last->wait();
  CHECK(last->error().empty());
  CHECK(fake::statistics().submits == Sentinels::count + 301);
  CHECK(rig.all(Sentinels::count + 299));
}

TEST_CASE("work: the queue holds what ends within seconds") {
  auto s = settings(false);
  s.max_delay_us = 0;
  WorkRig rig(s);
  Encoder enc(*rig.device, 0);
  rig.set(enc, 0);
  enc.close()->wait();
  fake::hold(true);
  std::shared_ptr<Completion> last;
  for (uint32_t i = 0; i < 10; ++i) {
    for (uint32_t j = 0; j < 10; ++j) {
      rig.set(enc, 10 * i + j, 0.08);
    }
    last = enc.close();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(fake::statistics().submits == 1 + 50);
  fake::hold(false);
  last->wait();
  CHECK(last->error().empty());
  CHECK(fake::statistics().submits == 1 + 100);
  CHECK(rig.all(99));
}

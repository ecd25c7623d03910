// Kernels that are built while their user goes on: when and what a batch, a
// second asker and the end of the device hear of it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "null/fake_kernels.h"
#include "null/rewrite_program.h"
#include "null/text.h"
#include "pipeline/disk_cache.h"
#include "pipeline/workers.h"
#include "runtime/device.h"
#include "runtime/encoder.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

fake::Settings without_probe() {
  fake::Settings s;
  s.float16 = false;
  return s;
}

const Kernel& later(
    PipelineTable& table,
    const char* name,
    const std::string& source,
    std::initializer_list<Define> defines = {}) {
  return table.get_source(
      name,
      source,
      std::span(defines.begin(), defines.size()),
      false,
      Build::Later);
}

// The arguments of fake::mix, of which no program reads the source.
std::string mix_source(const char* body = "") {
  return "#include \"common/types.glsl\"\nstruct Args { Ptr_u32 x; Ptr_u32 y; "
         "Ptr_u32 z; uint n; uint salt; };\n#define ARGS_BLOCK Args\n"
         "#include \"common/args.glsl\"\nlayout(local_size_x = " +
      std::to_string(fake::program_mix) +
      ") in;\nvoid main() { store(A.z, 0u, A.n + A.salt); " + body + "}\n";
}

uint32_t item(Device& d, Buffer* b) {
  return static_cast<uint32_t*>(d.memory().host_pointer(*b))[5];
}

} // namespace

TEST_CASE("pipelines: a batch waits for the kernels it was recorded with") {
  fake::reset(without_probe());
  Device d;
  Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    for (int v = 0; v < 12; ++v) {
      auto& k = later(d.pipelines(), "mix", mix_source(), {{"V", v}});
      fake::dispatch_mix(enc, k, z, v);
    }
    auto done = enc.close();
    done->wait();
    CHECK(done->error().empty());
    CHECK(item(d, z) == 11);
  }
  CHECK(d.pipelines().size() == 12);
  CHECK(fake::statistics().live_pipelines == 12);
  d.memory().release(z);
}

TEST_CASE("pipelines: one that fails names itself to the batch, then at once") {
  fake::reset(without_probe());
  Device d;
  auto& table = d.pipelines();
  Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    fake::dispatch_mix(enc, fake::mix(table), z, 1);
    // The first of the records tells, whichever is built first.
    for (auto* name : {"bad", "worse"}) {
      auto& k = later(table, name, mix_source("nonsense;"));
      fake::dispatch_mix(enc, k, z, 2);
    }
    auto failed = enc.close();
    failed->wait();
    CHECK(has(failed->error(), "The kernel bad does not compile"));
    CHECK(has(failed->error(), "nonsense"));
    CHECK(item(d, z) != 2);

    // Asked for again, before anything is recorded; the stream goes on.
    for (int i = 0; i < 2; ++i) {
      auto again =
          message([&] { later(table, "bad", mix_source("nonsense;")); });
      CHECK(again == failed->error());
    }
    fake::dispatch_mix(enc, fake::mix(table), z, 3);
    auto next = enc.close();
    next->wait();
    CHECK(next->error().empty());
    CHECK(item(d, z) == 3);
  }
  CHECK(table.size() == 1);
  d.memory().release(z);
}

TEST_CASE("pipelines: one that the driver refuses once works the next time") {
  auto settings = without_probe();
  settings.fail_pipeline = 0;
  fake::reset(settings);
  Device d;
  auto& first = later(d.pipelines(), "mix", mix_source());
  CHECK(
      has(message([&] { d.pipelines().finish(first); }),
          "vkCreateComputePipelines"));
  auto& second = later(d.pipelines(), "mix", mix_source());
  CHECK(&second != &first);
  CHECK(second.built()); // at once
  CHECK(&later(d.pipelines(), "mix", mix_source()) == &second);
  CHECK(d.pipelines().size() == 1);
}

TEST_CASE("pipelines: arguments of another size are told by the batch too") {
  fake::reset(without_probe());
  Device d;
  Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
  {
    // dispatch() says so if the kernel is built by then, else the batch.
    Encoder enc(d, 0);
    auto& k = later(d.pipelines(), "mix", mix_source());
    Binding out[] = {{z, 0, 0, z->size}};
    uint32_t params[5] = {};
    auto why = message([&] {
      enc.dispatch(k, {}, out, params, sizeof params, {1, 1, 1});
      auto done = enc.close();
      done->wait();
      throw std::runtime_error(done->error());
    });
    CHECK(has(why, "The kernel mix takes 32 bytes of arguments"));
    CHECK(has(why, "the host passed 28"));
  }
  d.memory().release(z);
}

TEST_CASE("pipelines: large arguments go to memory before it is built") {
  fake::reset(without_probe());
  Device d;
  Buffer* z = d.memory().allocate(700 * 4, Placement::Host);
  std::string source =
      "#include \"common/types.glsl\"\nstruct Args { Ptr_u32 "
      "x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt; uint "
      "pad[40]; };\n#define ARGS_BLOCK Args\n"
      "#include \"common/args.glsl\"\nlayout(local_size_x = " +
      std::to_string(fake::program_mix_in_memory) +
      ") in;\nvoid main() { store(A.z, 0u, A.n + A.salt); }\n";
  {
    Encoder enc(d, 0);
    auto& k = later(d.pipelines(), "large", source);
    Binding in[] = {{}, {}}, out[] = {{z, 0, 0, z->size}};
    struct {
      uint32_t n, salt, pad[40];
    } params{700, 8, {}};
    enc.dispatch(k, in, out, &params, sizeof params, {1, 1, 1});
    auto done = enc.close();
    done->wait();
    CHECK(done->error().empty());
    CHECK(item(d, z) == 8);
  }
  d.memory().release(z);
}

namespace {

// A batch that no event lets start, of a softmax and the sort of its output,
// which the router's kernel replaces, and a record that nothing replaces.
struct Held {
  explicit Held(bool joins) {
    encoder = std::make_unique<Encoder>(*device, 0);
    for (auto& b : buffers) {
      b = device->memory().allocate(1024, Placement::Device);
    }
    encoder->wait({std::make_shared<EventState>(), 1, nullptr});
    record(softmax, 0, 1, SoftmaxRecord{{Type::f32, 32, 1, true}, 1, 8});
    if (joins) {
      record(sort, 1, 2, ArgSortRecord{Type::f32, 1, 8});
    }
  }
  ~Held() {
    encoder->close();
    device->shutdown(); // fails the batch
    encoder.reset();
    for (auto* b : buffers) {
      device->memory().release(b);
    }
  }
  const Kernel& kernel(const char* name) {
    return later(device->pipelines(), name, mix_source());
  }
  void record(const Kernel& k, int from, int to, const Descriptor& descriptor) {
    auto bind = [&](int i) { return Binding{buffers[i], 0, 0, 32}; };
    Binding in[] = {bind(from)}, out[] = {bind(to)};
    encoder->dispatch(k, in, out, nullptr, 0, {1, 1, 1}, {}, descriptor);
  }
  bool soon(const Kernel& k) {
    for (int i = 0; i < 20000 && !k.settled(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return k.settled();
  }
  std::unique_ptr<Device> device = [] {
    fake::reset(without_probe());
    return std::make_unique<Device>();
  }();
  std::unique_ptr<Encoder> encoder;
  Buffer* buffers[4];
  const Kernel &softmax = kernel("softmax"), &sort = kernel("sort"),
               &other = kernel("other");
  RouterVariant router{Type::f32, 32, 1, true};
};

} // namespace

TEST_CASE("pipelines: what a rewrite replaces is not compiled") {
  Held held(true);
  held.record(held.other, 2, 3, {});
  CHECK(held.soon(held.other)); // while its batch is open
  CHECK(held.device->pipelines().size() == 1);
  // The kernels of later batches are compiled too, though none can start.
  held.encoder->close();
  auto& next = held.kernel("next");
  held.record(next, 2, 3, CopyRecord{});
  CHECK_FALSE(next.settled());
  held.encoder->close();
  CHECK(held.soon(next));
  auto& joined = held.device->pipelines().get(held.router);
  CHECK(held.soon(joined));
  CHECK(joined.built());
  CHECK(held.device->pipelines().size() == 3);
  CHECK_FALSE(held.softmax.settled());
  CHECK_FALSE(held.sort.settled());
}

TEST_CASE("pipelines: what nothing joins is compiled when its batch closes") {
  Held held(false);
  CHECK(held.device->pipelines().size() == 0);
  held.encoder->close();
  CHECK(held.soon(held.softmax));
  CHECK(held.softmax.built());
  CHECK_FALSE(held.sort.settled());
}

TEST_CASE("pipelines: records of a joined kernel that fails run themselves") {
  auto settings = without_probe();
  settings.fail_pipeline = 0; // the router's
  fake::reset(settings);
  Device d;
  CompiledFusions fusions(d.pipelines(), d.caps());
  rewriting::List l;
  auto& softmax = later(d.pipelines(), "softmax", mix_source());
  auto& sort = later(d.pipelines(), "sort", mix_source());
  l.other({{1, 0, 8}}, {2, 0, 8}).other({{2, 0, 8}}, {3, 0, 8});
  l.records[0].descriptor = SoftmaxRecord{{Type::f32, 32, 1, true}, 1, 8};
  l.records[1].descriptor = ArgSortRecord{Type::f32, 1, 8};
  l.records[0].kernel = &softmax;
  l.records[1].kernel = &sort;
  std::set<const Kernel*> awaited;
  while (auto* k = rewrite(l.records, l.accesses, l.arguments, fusions)) {
    awaited.insert(k);
    message([&] { d.pipelines().finish(*k); });
  }
  CHECK(awaited.size() >= 2); // the router's, then at least one of these
  CHECK(l.records.size() == 2);
  CHECK(softmax.built());
  CHECK(sort.built());
  CHECK(fusions.refused(RouterVariant{Type::f32, 32, 1, true}));
}

TEST_CASE("pipelines: what is not built when the table stops has failed") {
  fake::reset(without_probe());
  Device d;
  Caps caps = d.caps();
  PipelineTable table(d.vk(), d.handle(), caps, default_disk_cache(), 1);
  std::vector<const Kernel*> kernels;
  for (int v = 0; v < 50; ++v) {
    kernels.push_back(&later(table, "mix", mix_source(), {{"V", v}}));
    v % 2 ? table.start(*kernels.back()) : void(); // others are only registered
  }
  table.stop();
  uint64_t built = 0;
  for (auto* k : kernels) {
    auto why = message([&] { table.finish(*k); });
    built += why.empty();
    CHECK((why.empty() || has(why, "was shut down before")));
  }
  CHECK(built == table.size());
  CHECK(
      has(message([&] { table.finish(later(table, "other", mix_source())); }),
          "was shut down before"));
  table.stop();
}

TEST_CASE("pipelines: asked for by many threads, each is built once") {
  fake::reset(without_probe());
  Device d;
  std::vector<std::thread> threads;
  std::vector<std::vector<const Kernel*>> got(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        int v = (i * 7 + t) % 20;
        got[t].resize(20);
        got[t][v] = &later(d.pipelines(), "mix", mix_source(), {{"V", v}});
        if (i % 3 == 0) {
          d.pipelines().finish(*got[t][v]);
        }
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  for (auto& mine : got) {
    CHECK(mine == got[0]);
    for (auto* k : mine) {
      d.pipelines().finish(*k);
      CHECK(k->local_size[0] == fake::program_mix);
    }
  }
  CHECK(d.pipelines().size() == 20);
}

TEST_CASE("pipelines: compiled kernels are on disk for the next process") {
  auto folder = fs::temp_directory_path() /
      ("mlxvk-later-" + std::to_string(std::random_device{}()));
  fake::reset(without_probe());
  Device d;
  Caps caps = d.caps();
  DiskCache disk(folder);
  auto compiled = [&] {
    uint64_t before = compile_counters().compilations;
    PipelineTable table(d.vk(), d.handle(), caps, disk);
    for (int v = 0; v < 5; ++v) {
      later(table, "mix", mix_source(), {{"V", v}});
    }
    for (int v = 0; v < 5; ++v) {
      table.finish(later(table, "mix", mix_source(), {{"V", v}}));
    }
    return compile_counters().compilations - before;
  };
  CHECK(compiled() == 5);
  CHECK(compiled() == 0);
  fs::remove_all(folder);
}

TEST_CASE("workers: jobs run once each, in order on one thread, none after") {
  std::vector<int> order;
  std::atomic<int> runs = 0;
  {
    Workers one(1);
    for (int i = 0; i < 100; ++i) {
      CHECK(one.add([&, i] { order.push_back(i); }));
    }
    CHECK(one.add([&] { ++runs; }));
    while (runs == 0) {
      std::this_thread::yield();
    }
  }
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(order.size() == 100);
  Workers none(0);
  CHECK(none.add([&] { ++runs; }));
  CHECK(runs == 2);
  none.stop();
  CHECK_FALSE(none.add([&] { ++runs; }));
  CHECK(runs == 2);

  Workers four(4);
  std::atomic<bool> begun = false;
  four.add([&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  while (!begun) {
    std::this_thread::yield();
  }
  four.stop(); // what has begun is finished
  four.stop();
  CHECK(compile_threads() >= 1);
  CHECK(compile_threads() <= 8);
}

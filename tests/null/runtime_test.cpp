// The runtime on the fake device: order, lifetimes, waits, failures.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "null/fake_kernels.h"
#include "null/text.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "runtime/recorder.h"

using namespace mlx::core::vulkan;

namespace {

void expect_no_errors() {
  for (auto& e : fake::errors()) {
    FAIL_CHECK(e);
  }
  fake::clear_errors();
}

// A started fake device, and arrays of uint32.
class Rig {
 public:
  explicit Rig(fake::Settings settings = {}) {
    fake::reset(settings);
    device.emplace();
  }
  ~Rig() {
    device.reset();
    auto s = fake::statistics();
    CHECK(s.live_buffers == 0);
    CHECK(s.live_memory == 0);
    CHECK(s.live_pipelines == 0);
    CHECK(s.live_semaphores == 0);
    CHECK(s.live_events == 0);
    CHECK(s.live_command_pools == 0);
    expect_no_errors();
  }

  using Array = std::shared_ptr<Buffer>;
  Array array(uint32_t n, uint32_t value, Placement p = Placement::Host) {
    auto& memory = device->memory();
    Array a(
        memory.allocate(n * 4, p), [&memory](Buffer* b) { memory.release(b); });
    if (p == Placement::Host) {
      auto* x = static_cast<uint32_t*>(memory.host_pointer(*a));
      std::fill_n(x, n, value);
    }
    return a;
  }

  static Binding all(const Array& a) {
    return a ? Binding{a.get(), 0, 0, a->size} : Binding{};
  }

  // z = 31 x + 17 y + salt, on the first n elements. The batch keeps them.
  void mix(
      Encoder& enc,
      const Array& x,
      const Array& y,
      const Array& z,
      uint32_t salt,
      bool args_in_memory = false) {
    Binding in[] = {all(x), all(y)}, out[] = {all(z)};
    uint32_t n = uint32_t(z->size / 4);
    if (args_in_memory) {
      struct {
        uint32_t n, salt, pad[40];
      } params{n, salt, {}};
      auto& k = fake::mix_in_memory(device->pipelines());
      enc.dispatch(k, in, out, &params, sizeof params, {1, 1, 1});
    } else {
      fake::MixParams params{n, salt};
      auto& k = fake::mix(device->pipelines());
      enc.dispatch(k, in, out, &params, sizeof params, {1, 1, 1});
    }
    for (auto& a : {x, y, z}) {
      enc.keep(a);
    }
  }

  uint32_t value(const Array& a, uint32_t index = 0) {
    auto* x = static_cast<uint32_t*>(device->memory().host_pointer(*a));
    return x[index];
  }

  std::optional<Device> device;
};

uint32_t mixed(uint32_t x, uint32_t y, uint32_t salt) {
  return x * 31 + y * 17 + salt;
}

fake::Settings with_seed(uint32_t seed, bool discrete = false) {
  fake::Settings s;
  s.seed = seed;
  s.discrete = discrete;
  return s;
}

constexpr uint32_t n = 700; // above the small-buffer limit

} // namespace

TEST_CASE("runtime: starts, computes, stops") {
  for (bool discrete : {false, true}) {
    CAPTURE(discrete);
    Rig rig(with_seed(1, discrete));
    CHECK(rig.device->memory().types().unified == !discrete);
    auto x = rig.array(n, 3), y = rig.array(n, 4);
    auto z = rig.array(n, 0, Placement::Device);
    Encoder enc(*rig.device, 0);
    rig.mix(enc, x, y, z, 5);
    rig.mix(enc, z, nullptr, z, 1, true);
    auto done = enc.close();
    done->wait();
    CHECK(done->error().empty());
    CHECK(rig.value(z) == mixed(mixed(3, 4, 5), 0, 1));
    CHECK(rig.value(z, n - 1) == mixed(mixed(3, 4, 5), 0, 1));
    CHECK(rig.value(x) == 3);
  }
}

TEST_CASE("runtime: kernels for one subgroup size ask for it if it varies") {
  Rig rig;
  auto asked = [&](uint32_t largest, bool can, std::vector<Define> defines) {
    Caps caps = rig.device->caps();
    caps.max_subgroup_size = largest;
    caps.subgroup_size_control = true;
    caps.required_subgroup_size = can;
    PipelineTable table(rig.device->vk(), rig.device->handle(), caps);
    std::string text =
        "#include \"common/types.glsl\"\n"
        "struct Args { Ptr_f32 x; uint n; uint pad; };\n#define ARGS_BLOCK Args\n"
        "#include \"common/args.glsl\"\n"
        "layout(local_size_x = 64) in;\n"
        "void main() { store(A.x, 0u, 1.0); }\n";
    table.get_source("t", text, defines);
    return fake::statistics().subgroup_size;
  };
  auto any = [] { return fake::statistics().any_subgroup_size; };
  CHECK(asked(64, true, {{"SG", 32}}) == 32);
  CHECK_FALSE(any());
  // Others see the size that runs, and not the one that the device reports.
  CHECK(asked(64, true, {}) == 0);
  CHECK(any());
  CHECK(asked(64, false, {{"SG", 32}}) == 0);
  CHECK(asked(32, true, {{"SG", 32}}) == 0);
  CHECK_FALSE(any());
}

TEST_CASE("runtime: float16 is used only where it rounds correctly") {
  auto native = [](bool offered, bool good) {
    auto s = with_seed(1);
    s.float16 = offered;
    s.good_float16 = good;
    Rig rig(s);
    std::string text =
        "#include \"common/types.glsl\"\n"
        "struct Args { Ptr_f16 x; uint n; uint pad; };\n#define ARGS_BLOCK Args\n"
        "#include \"common/args.glsl\"\n"
        "layout(local_size_x = 64) in;\n"
        "#ifdef NATIVE_F16\nlayout(local_size_y = 2) in;\n#endif\n"
        "void main() { store(A.x, 0u, 1.0); }\n";
    return rig.device->pipelines().get_source("t", text).local_size[1] == 2;
  };
  CHECK(native(true, true));
  CHECK_FALSE(native(true, false));
  CHECK_FALSE(native(false, true));
}

TEST_CASE("runtime: a device whose subgroups are not neighbours is refused") {
  for (bool chosen : {true, false}) {
    for (bool neighbours : {true, false}) {
      CAPTURE(chosen);
      CAPTURE(neighbours);
      auto s = with_seed(1);
      s.size_control = chosen; // then gl_SubgroupSize is what runs
      s.neighbours = neighbours;
      auto text = message([&] { Rig rig(s); });
      CHECK(text.empty() == (chosen || neighbours));
      CHECK((text.empty() || has(text, "MLX_VK_DEVICE")));
    }
  }
}

TEST_CASE("runtime: what a kernel may not declare is named") {
  Rig rig;
  auto compile = [&](std::string extension, std::string statement) {
    return message([&] {
      rig.device->pipelines().get_source(
          "t",
          (extension.empty() ? ""
                             : "#extension " + extension + " : require\n") +
              "#include \"common/types.glsl\"\n"
              "struct Args { Ptr_f32 x; uint n; uint pad; };\n"
              "#define ARGS_BLOCK Args\n"
              "#include \"common/args.glsl\"\n"
              "layout(local_size_x = 64) in;\n"
              "shared uint64_t word;\n"
              "void main() { float x = load(A.x, 0u);\n" +
              statement + "\n store(A.x, 0u, x); }\n");
    });
  };
  CHECK(compile("", "x += 1.0;").empty());
  CHECK(compile(
            "GL_KHR_shader_subgroup_shuffle_relative",
            "x = subgroupShuffleUp(x, 1u);")
            .empty());
  CHECK(has(compile("", "x = float(sqrt(double(x)));"), "Float64"));
  auto atomic = compile(
      "GL_EXT_shader_atomic_int64", "x = float(atomicAdd(word, uint64_t(1)));");
  CHECK(has(atomic, "Int64Atomics"));
  CHECK(has(atomic, "Fake GPU"));
}

TEST_CASE("runtime: independent dispatches share a level") {
  Rig rig;
  auto before = fake::statistics();
  std::vector<Rig::Array> out;
  auto x = rig.array(n, 1);
  Encoder enc(*rig.device, 0);
  for (int i = 0; i < 10; ++i) {
    out.push_back(rig.array(n, 0, Placement::Device));
    rig.mix(enc, x, nullptr, out.back(), i);
  }
  for (int i = 0; i < 9; ++i) {
    rig.mix(enc, out[i], out[i + 1], rig.array(n, 0, Placement::Device), 0);
  }
  enc.close()->wait();
  auto after = fake::statistics();
  CHECK(after.submits - before.submits == 1);
  CHECK(after.dispatches - before.dispatches == 19);
  // One between the two levels, one at the end of both.
  CHECK(after.barriers - before.barriers == 2);
}

// Batches whose every barrier is needed, and the barriers that they take; each
// after a batch that they depend on, whose last but one orders the two.
struct BarrierCase {
  const char* name;
  bool discrete;
  int barriers;
  void (*first)(Rig&, Encoder&, Rig::Array& a, Rig::Array& b, Rig::Array& c);
  void (*second)(Rig&, Encoder&, Rig::Array& a, Rig::Array& b, Rig::Array& c);
};

using A = Rig::Array;
const BarrierCase barrier_cases[] = {
    {"kernel to kernel",
     false,
     5, // four between five levels, end
     [](Rig& rig, Encoder& enc, A& a, A& b, A& c) { rig.mix(enc, a, b, c, 1); },
     [](Rig& rig, Encoder& enc, A& a, A& b, A& c) {
       rig.mix(enc, c, nullptr, b, 2); // after the first batch
       rig.mix(enc, b, nullptr, a, 3); // read after write
       rig.mix(enc, nullptr, nullptr, b, 4); // write after read
       rig.mix(enc, nullptr, nullptr, b, 5); // write after write
       rig.mix(enc, b, a, c, 6, true); // all of it
     }},
    {"upload, kernel, download",
     true,
     3, // upload to kernel, kernel to download, end
     [](Rig& rig, Encoder& enc, A& a, A&, A& c) {
       rig.mix(enc, a, nullptr, c, 1);
     },
     [](Rig& rig, Encoder& enc, A& a, A&, A& c) {
       rig.value(a); // the host's again: the next use uploads over the reader
       rig.mix(enc, a, nullptr, c, 2);
       enc.copy_to_host(*c);
     }},
    {"a download before the kernel that overwrites it",
     true,
     2, // download to kernel, end
     [](Rig& rig, Encoder& enc, A& a, A&, A& c) {
       rig.mix(enc, a, nullptr, c, 1);
     },
     [](Rig& rig, Encoder& enc, A&, A&, A& c) {
       enc.copy_to_host(*c);
       rig.mix(enc, nullptr, nullptr, c, 2);
     }},
    {"kernels and the next batch's copies",
     true,
     1, // end
     [](Rig& rig, Encoder& enc, A& a, A& b, A& c) {
       rig.mix(enc, a, nullptr, c, 1);
       rig.mix(enc, nullptr, nullptr, b, 1);
     },
     [](Rig&, Encoder& enc, A&, A& b, A& c) {
       enc.copy_to_host(*c);
       enc.copy_to_host(*b);
     }},
};

int run(const BarrierCase& x, Rig& rig) {
  auto a = rig.array(n, 1);
  auto b = rig.array(n, 2, x.discrete ? Placement::Device : Placement::Host);
  auto c = rig.array(n, 0, Placement::Device);
  Encoder enc(*rig.device, 0);
  x.first(rig, enc, a, b, c);
  enc.close()->wait_retired();
  auto before = fake::statistics().barriers;
  x.second(rig, enc, a, b, c);
  for (auto& array : {a, b, c}) {
    enc.keep(array);
  }
  enc.close()->wait_retired();
  return int(fake::statistics().barriers - before);
}

TEST_CASE("runtime: no barrier can be left out") {
  for (auto& x : barrier_cases) {
    CAPTURE(x.name);
    {
      Rig rig(with_seed(2, x.discrete));
      CHECK(run(x, rig) == x.barriers);
    }
    for (int drop = 0; drop < x.barriers; ++drop) {
      CAPTURE(drop);
      auto s = with_seed(2, x.discrete);
      s.drop_barrier = drop;
      Rig rig(s);
      fake::clear_errors();
      run(x, rig);
      CHECK_FALSE(fake::errors().empty());
      fake::clear_errors();
    }
  }
}

TEST_CASE("runtime: on RADV barriers between kernels order no copies") {
  for (auto& x : barrier_cases) {
    CAPTURE(x.name);
    for (auto driver : {VkDriverId{}, VK_DRIVER_ID_MESA_RADV}) {
      auto s = with_seed(2, x.discrete);
      s.driver = driver;
      Rig rig(s);
      auto before = fake::statistics().kernel_barriers;
      CHECK(run(x, rig) == x.barriers);
      // Four between the five levels of kernels; copies are near all others.
      bool kernels = driver && x.barriers == 5;
      CHECK(fake::statistics().kernel_barriers - before == (kernels ? 4 : 0));
      CHECK(fake::errors().empty());
    }
  }
}

TEST_CASE("runtime: batches keep what they use alive") {
  for (bool discrete : {false, true}) {
    auto s = with_seed(3, discrete);
    s.max_delay_us = 2000;
    Rig rig(s);
    Encoder enc(*rig.device, 0);
    auto x = rig.array(n, 1);
    for (int i = 0; i < 100; ++i) {
      auto next = rig.array(n, 0, Placement::Device);
      rig.mix(enc, x, rig.array(n, uint32_t(i)), next, 0);
      x = next; // the old one is held by the batch alone
      if (i % 3 == 0) {
        enc.close();
      }
    }
    enc.close()->wait();
    uint32_t expected = 1;
    for (int i = 0; i < 100; ++i) {
      expected = mixed(expected, i, 0);
    }
    CHECK(rig.value(x) == expected);
  }
}

TEST_CASE("runtime: an upload counts for other streams once it is submitted") {
  for (bool fails : {false, true}) {
    CAPTURE(fails);
    Rig rig(with_seed(4, true));
    auto x = rig.array(n, 7);
    auto y = rig.array(n, 0, Placement::Device);
    auto z = rig.array(n, 0, Placement::Device);
    Encoder one(*rig.device, 1), two(*rig.device, 2);
    auto event = std::make_shared<EventState>();
    one.wait({event, 1, nullptr});
    rig.mix(one, x, nullptr, y, 1); // held: x is not on the device yet
    auto first = one.close();
    rig.mix(two, x, x, z, 2);
    if (fails) {
      event->signal_host(1, "no");
      first->wait();
    }
    two.close()->wait();
    CHECK(rig.value(z) == mixed(7, 7, 2));
    event->signal_host(1);
    first->wait();
    rig.mix(two, x, nullptr, z, 3);
    two.close()->wait();
    CHECK(rig.value(z) == mixed(7, 0, 3));
    if (!fails) {
      CHECK(rig.value(y) == mixed(7, 0, 1));
    }
  }
}

TEST_CASE("runtime: a wait for retirement covers all earlier batches") {
  for (bool empty : {false, true}) { // such a batch shares its ticket
    CAPTURE(empty);
    Rig rig(with_seed(6, false));
    Encoder enc(*rig.device, 0);
    auto x = rig.array(n, 1);
    auto y = rig.array(n, 0, Placement::Device);
    std::promise<void> go_on;
    std::atomic<bool> entered = false, released = false;
    rig.mix(enc, x, nullptr, y, 0);
    // The retiring thread is held in the first batch, so this one takes the
    // next.
    enc.close([&, wait = go_on.get_future().share()] {
      entered = true;
      wait.wait();
      released = true;
    });
    while (!entered) {
      std::this_thread::yield();
    }
    if (empty) {
      enc.keep(x);
    } else {
      rig.mix(enc, x, nullptr, y, 1);
    }
    auto second = enc.close();
    auto& recorder = rig.device->recorder();
    while (!second->retired()) {
      recorder.retirer().retire();
    }
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      go_on.set_value();
    });
    recorder.retirer().wait_retired(*second);
    CHECK(released);
    late.join();
  }
}

TEST_CASE("runtime: an idle close completes at once") {
  Rig rig;
  Encoder enc(*rig.device, 0);
  CHECK(enc.close() == nullptr);
  bool called = false;
  enc.close([&] { called = true; });
  CHECK(called);
  CHECK(enc.current_completion() == nullptr);
}

TEST_CASE("runtime: empty grids and arrays dispatch nothing") {
  Rig rig;
  auto before = fake::statistics();
  Encoder enc(*rig.device, 0);
  auto& k = fake::mix(rig.device->pipelines());
  auto a = rig.array(n, 0);
  Binding in[] = {{}, {}}, out[] = {Rig::all(a)};
  fake::MixParams p{n, 0};
  enc.dispatch(k, in, out, &p, sizeof p, {0, 1, 1});
  enc.dispatch(k, in, out, &p, sizeof p, {1, 0, 1});
  if (auto done = enc.close()) {
    done->wait_retired();
  }
  CHECK(fake::statistics().dispatches == before.dispatches);
}

TEST_CASE("runtime: a wrong argument block is refused before it is recorded") {
  Rig rig;
  Encoder enc(*rig.device, 0);
  auto& k = fake::mix(rig.device->pipelines());
  auto a = rig.array(n, 0);
  Binding in[] = {{}}, out[] = {Rig::all(a)};
  fake::MixParams p{n, 0};
  CHECK_THROWS_WITH_AS(
      enc.dispatch(k, in, out, &p, sizeof p, {1, 1, 1}),
      doctest::Contains("takes 32 bytes"),
      std::runtime_error);
}

TEST_CASE("events: a batch waits for the host's signal, successors too") {
  Rig rig;
  auto event = std::make_shared<EventState>();
  auto a = rig.array(n, 1), b = rig.array(n, 0), c = rig.array(n, 0);
  Encoder one(*rig.device, 1), two(*rig.device, 2);
  one.wait({event, 1, nullptr});
  rig.mix(one, a, nullptr, b, 0);
  auto first = one.close();
  rig.mix(one, b, nullptr, b, 0);
  auto second = one.close();
  // Another stream is not held up.
  rig.mix(two, a, nullptr, c, 9);
  two.close()->wait();
  CHECK(rig.value(c) == mixed(1, 0, 9));
  CHECK_FALSE(first->submitted());
  CHECK_FALSE(second->submitted());
  static_cast<uint32_t*>(rig.device->memory().host_pointer(*a))[0] = 7;
  event->signal_host(1);
  second->wait();
  CHECK(rig.value(b) == mixed(mixed(7, 0, 0), 0, 0));
  CHECK(rig.value(b, 1) == mixed(mixed(1, 0, 0), 0, 0));
}

TEST_CASE("events: a signal on submitted work wakes a held batch") {
  Rig rig;
  for (int i = 0; i < 50; ++i) {
    auto event = std::make_shared<EventState>();
    auto a = rig.array(n, 1), b = rig.array(n, 0);
    Encoder one(*rig.device, 1), two(*rig.device, 2);
    rig.mix(one, a, nullptr, b, 0);
    auto producer = one.close();
    producer->wait_retired();
    two.wait({event, 1, nullptr});
    rig.mix(two, b, nullptr, b, 0);
    auto consumer = two.close();
    std::this_thread::sleep_for(std::chrono::microseconds(i * 40));
    event->signal_on(producer, 1);
    // A lost wake-up must not hang the test.
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!consumer->reached() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    bool woken = consumer->reached();
    CHECK(woken);
    if (!woken) {
      wakeup().notify();
    }
    consumer->wait();
    CHECK(rig.value(b) == mixed(mixed(1, 0, 0), 0, 0));
  }
}

TEST_CASE("events: an error travels to those who wait") {
  Rig rig;
  auto event = std::make_shared<EventState>();
  auto a = rig.array(n, 1), b = rig.array(n, 5);
  Encoder one(*rig.device, 1), two(*rig.device, 2);
  one.wait({event, 1, nullptr});
  rig.mix(one, a, nullptr, b, 0);
  auto first = one.close();
  two.wait({nullptr, 0, first});
  rig.mix(two, a, nullptr, b, 0);
  auto second = two.close();
  event->signal_host(1, "the CPU stream failed");
  first->wait();
  second->wait();
  CHECK(first->error() == "the CPU stream failed");
  CHECK(second->error() == "the CPU stream failed");
  CHECK(rig.value(b) == 5);
  // Streams and device stay usable.
  rig.mix(two, a, nullptr, b, 0);
  auto third = two.close();
  third->wait();
  CHECK(third->error().empty());
  CHECK(rig.value(b) == mixed(1, 0, 0));
}

TEST_CASE("events: ping-pong between two streams") {
  Rig rig(with_seed(5));
  auto a = rig.array(n, 1);
  Encoder one(*rig.device, 1), two(*rig.device, 2);
  auto event = std::make_shared<EventState>();
  uint32_t expected = 1;
  for (uint32_t i = 1; i <= 300; ++i) {
    auto& enc = i % 2 ? one : two;
    if (i > 1) {
      enc.wait({event, i - 1, nullptr});
    }
    rig.mix(enc, a, nullptr, a, i);
    expected = mixed(expected, 0, i);
    event->signal_on(enc.current_completion(), i);
    enc.close();
  }
  event->wait(300);
  CHECK(rig.value(a) == expected);
}

// Random graphs over several streams, in program order on one thread, with
// host signals, host reads and releases in between; checked by value.
void random_graph(uint32_t seed, bool discrete) {
  CAPTURE(seed);
  CAPTURE(discrete);
  Rig rig(with_seed(seed, discrete));
  std::mt19937 random(seed);
  auto pick = [&](uint32_t k) { return uint32_t(random() % k); };
  constexpr int streams = 3, arrays = 8;
  std::vector<std::unique_ptr<Encoder>> enc;
  for (int s = 0; s < streams; ++s) {
    enc.push_back(std::make_unique<Encoder>(*rig.device, s));
  }
  struct Node {
    Rig::Array array;
    uint32_t value;
    // Who touched it last, by stream: anyone else must wait for that.
    std::vector<std::shared_ptr<Completion>> users;
  };
  std::vector<Node> nodes(arrays);
  for (auto& x : nodes) {
    uint32_t v = pick(1000);
    x = {rig.array(n, v), v, {}};
    x.users.resize(streams);
  }
  std::vector<std::thread> signallers;
  auto use = [&](int s, Node& x) {
    for (int t = 0; t < streams; ++t) {
      if (t != s && x.users[t]) {
        enc[t]->close();
        enc[s]->wait({nullptr, 0, x.users[t]});
      }
    }
  };
  for (int i = 0; i < 150; ++i) {
    int s = pick(streams);
    auto& x = nodes[pick(arrays)];
    auto& y = nodes[pick(arrays)];
    auto& z = nodes[pick(arrays)];
    if (pick(10) == 0) {
      // A batch of this stream waits for some thread of the host.
      auto event = std::make_shared<EventState>();
      enc[s]->wait({event, 1, nullptr});
      int us = pick(500);
      signallers.emplace_back([event, us] {
        std::this_thread::sleep_for(std::chrono::microseconds(us));
        event->signal_host(1);
      });
    }
    for (auto* node : {&x, &y, &z}) {
      use(s, *node);
    }
    rig.mix(*enc[s], x.array, y.array, z.array, i, pick(3) == 0);
    z.value = mixed(x.value, y.value, i);
    auto done = enc[s]->current_completion();
    x.users[s] = y.users[s] = z.users[s] = done;
    if (pick(4) == 0) {
      enc[s]->close();
    }
    if (pick(12) == 0) {
      for (auto& e : enc) {
        e->close();
      }
      for (auto& u : z.users) {
        if (u) {
          u->wait();
        }
      }
      REQUIRE(rig.value(z.array, pick(n)) == z.value);
    }
    if (pick(12) == 0) {
      uint32_t v = pick(1000);
      z.array = rig.array(n, v);
      z.value = v;
      z.users.assign(streams, nullptr);
    }
  }
  for (auto& e : enc) {
    if (auto done = e->close()) {
      done->wait();
    }
  }
  for (auto& x : nodes) {
    CHECK(rig.value(x.array) == x.value);
    CHECK(rig.value(x.array, n - 1) == x.value);
  }
  for (auto& t : signallers) {
    t.join();
  }
}

TEST_CASE("runtime: random graphs on several streams") {
  // MLX_VK_TEST_ROUNDS=500 for a soak.
  const char* rounds = std::getenv("MLX_VK_TEST_ROUNDS");
  for (uint32_t seed = 1; seed <= uint32_t(rounds ? std::atoi(rounds) : 20);
       ++seed) {
    random_graph(seed, false);
    random_graph(seed, true);
  }
}

TEST_CASE("runtime: one stream a thread") {
  for (bool discrete : {false, true}) {
    Rig rig(with_seed(9, discrete));
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    // More than Completion::wait() lets ask the device at once.
    constexpr uint32_t count = 40, rounds = 4;
    for (uint32_t t = 0; t < count; ++t) {
      threads.emplace_back([&, t] {
        Encoder enc(*rig.device, t);
        for (uint32_t round = 0; round < rounds; ++round) {
          auto x = rig.array(n, t);
          uint32_t expected = t;
          for (uint32_t i = 0; i < 10; ++i) {
            rig.mix(enc, x, nullptr, x, i);
            expected = mixed(expected, 0, i);
          }
          enc.close()->wait();
          good += rig.value(x) == expected;
        }
      });
    }
    for (auto& t : threads) {
      t.join();
    }
    CHECK(good == count * rounds);
  }
}

TEST_CASE("runtime: the command buffers of a burst are given back") {
  Rig rig;
  Encoder enc(*rig.device, 0);
  auto x = rig.array(n, 1);
  auto run = [&] {
    rig.mix(enc, x, nullptr, x, 0);
    return enc.close();
  };
  constexpr uint32_t burst = 200;
  fake::hold(true);
  std::shared_ptr<Completion> last;
  for (uint32_t i = 0; i < burst; ++i) {
    last = run();
  }
  while (!last->submitted()) {
    std::this_thread::yield();
  }
  fake::hold(false);
  rig.device->recorder().retirer().wait_retired(*last);
  CHECK(fake::statistics().live_command_buffers >= burst);
  for (uint32_t i = 0; i < burst; ++i) {
    rig.device->recorder().retirer().wait_retired(*run());
  }
  CHECK(fake::statistics().live_command_buffers < burst / 4);
}

TEST_CASE("runtime: a batch that somebody waits for takes no more waits") {
  // Without records, too: one that only keeps a view alive.
  Rig rig;
  auto view = rig.array(n, 3);
  auto z = rig.array(n, 0, Placement::Device);
  Encoder first(*rig.device, 0), second(*rig.device, 1);
  first.keep(view);
  second.wait({nullptr, 0, first.current_completion()});
  rig.mix(second, view, nullptr, z, 5);
  // For the other stream, then for itself.
  first.wait({nullptr, 0, second.current_completion()});
  first.keep(view);
  first.wait({nullptr, 0, first.current_completion()});
  auto one = second.close(), other = first.close();
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!(one->reached() && other->reached()) &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(one->reached());
  REQUIRE(other->reached());
  CHECK(rig.value(z) == mixed(3, 0, 5));
}

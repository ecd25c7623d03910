// Failures of the device: nothing hangs, nothing leaks, the message says what
// was being done. Also the pipeline table, which these need.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
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
namespace fs = std::filesystem;

namespace {

constexpr uint32_t n = 700;

fake::Settings failing_submit(int index, VkResult result) {
  fake::Settings s;
  s.float16 = false; // no probe: the first submission is the test's
  s.fail_submit = index;
  s.submit_result = result;
  return s;
}

void mix(Device& d, Encoder& enc, Buffer* z, uint32_t salt) {
  fake::dispatch_mix(enc, fake::mix(d.pipelines()), z, salt);
}

} // namespace

TEST_CASE("failure: a refused submission fails its batch only") {
  fake::reset(failing_submit(0, VK_ERROR_OUT_OF_HOST_MEMORY));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0), other(d, 1);
    mix(d, enc, z, 1);
    bool retired = false;
    auto first = enc.close([&] { retired = true; });
    first->wait_retired();
    CHECK(retired);
    CHECK(first->error().find("vkQueueSubmit") != std::string::npos);
    CHECK(first->error().find("OUT_OF_HOST_MEMORY") != std::string::npos);
    CHECK(first->error().find("mix") != std::string::npos);
    // Who depends on it hears of it; others do not.
    other.wait({nullptr, 0, first});
    mix(d, other, z, 2);
    auto dependent = other.close();
    dependent->wait();
    CHECK(dependent->error() == first->error());
    mix(d, enc, z, 3);
    auto next = enc.close();
    next->wait();
    CHECK(next->error().empty());
    CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 3);
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: a command buffer that was not ended is not begun again") {
  fake::Settings s;
  s.float16 = false;
  fake::reset(s);
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    fake::settings().fail_end = 0;
    for (uint32_t salt : {1, 2, 3}) {
      mix(d, enc, z, salt);
      auto batch = enc.close();
      batch->wait_retired();
      CHECK(batch->error().empty() == (salt > 1));
    }
    CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 3);
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: a wait for a batch that failed covers earlier ones") {
  fake::reset(failing_submit(1, VK_ERROR_OUT_OF_HOST_MEMORY));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    fake::hold(true);
    mix(d, enc, z, 1);
    auto first = enc.close();
    mix(d, enc, z, 2);
    auto second = enc.close();
    second->wait();
    CHECK(!second->error().empty());
    std::thread late([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fake::hold(false);
    });
    d.recorder().retirer().wait_retired(*second);
    CHECK(first->retired()); // it wrote memory that may be freed now
    late.join();
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: what was encoded behind a batch that fails does too") {
  fake::reset();
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    auto event = std::make_shared<EventState>();
    enc.wait({event, 1, nullptr});
    mix(d, enc, z, 1);
    auto first = enc.close();
    // Of the same stream: nothing says that it waits, and it may read z.
    mix(d, enc, z, 2);
    auto second = enc.close();
    mix(d, enc, z, 3);
    auto third = enc.close();
    event->signal_host(1, "why");
    third->wait();
    CHECK(first->error() == "why");
    CHECK(second->error() == "why");
    CHECK(third->error() == "why");
    // Begun when that was known.
    mix(d, enc, z, 4);
    auto next = enc.close();
    next->wait();
    CHECK(next->error().empty());
    CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 4);
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: an eval fails with its first batch, whenever that does") {
  fake::reset(failing_submit(0, VK_ERROR_OUT_OF_HOST_MEMORY));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    enc.begin_eval(1);
    mix(d, enc, z, 1);
    auto first = enc.close();
    first->wait(); // before the second one begins, which may read z
    mix(d, enc, z, 2);
    auto second = enc.close();
    second->wait();
    CHECK(!first->error().empty());
    CHECK(second->error() == first->error());
    // Another eval reads what the first was to write, which had not failed when
    // it looked.
    enc.begin_eval(2);
    enc.go_on();
    mix(d, enc, z, 3);
    auto reader = enc.close();
    reader->wait();
    CHECK(reader->error() == first->error());
    // And one that does not.
    enc.begin_eval(3);
    mix(d, enc, z, 4);
    auto next = enc.close();
    next->wait();
    CHECK(next->error().empty());
    CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 4);
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: an eval begins with the wait for its first input") {
  fake::reset(failing_submit(0, VK_ERROR_OUT_OF_HOST_MEMORY));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    enc.begin_eval(1);
    auto input = std::make_shared<EventState>();
    enc.wait({input, 1, nullptr});
    enc.begin_eval(2);
    mix(d, enc, z, 1);
    input->signal_host(1);
    auto first = enc.close();
    first->wait(); // before the second one begins, which may read z
    mix(d, enc, z, 2);
    auto second = enc.close();
    second->wait();
    CHECK(!first->error().empty());
    CHECK(second->error() == first->error());
    // The error is not the next eval's, which begins with a wait, too.
    auto other = std::make_shared<EventState>();
    enc.wait({other, 1, nullptr});
    enc.begin_eval(3);
    mix(d, enc, z, 3);
    other->signal_host(1);
    auto next = enc.close();
    next->wait();
    CHECK(next->error().empty());
    CHECK(static_cast<uint32_t*>(d.memory().host_pointer(*z))[5] == 3);
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: what a CPU stream still writes outlives a lost device") {
  fake::reset(failing_submit(0, VK_ERROR_DEVICE_LOST));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  auto event = std::make_shared<EventState>(); // that the CPU stream signals
  auto written = std::make_shared<int>(0);
  std::weak_ptr<int> left = written;
  {
    Encoder enc(d, 0), reader(d, 1);
    reader.wait({event, 1, nullptr});
    reader.keep(std::shared_ptr<void>(std::move(written)));
    mix(d, reader, z, 1);
    auto waiting = reader.close();
    mix(d, enc, z, 2);
    enc.close()->wait();
    waiting->wait_retired();
    CHECK(!waiting->error().empty());
    CHECK(!left.expired());
  }
  d.memory().release(z);
}

TEST_CASE("failure: what a failed batch has pinned, an earlier one may use") {
  fake::reset(failing_submit(1, VK_ERROR_OUT_OF_HOST_MEMORY));
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  auto used = std::make_shared<int>(0);
  std::weak_ptr<int> left = used;
  {
    Encoder enc(d, 0);
    fake::hold(true);
    mix(d, enc, z, 1);
    auto first = enc.close();
    enc.keep(std::shared_ptr<void>(std::move(used)));
    mix(d, enc, z, 2);
    auto failed = enc.close();
    failed->wait_retired();
    CHECK(!failed->error().empty());
    CHECK(!left.expired());
    fake::hold(false);
    first->wait_retired();
    CHECK(left.expired());
  }
  d.memory().release(z);
  CHECK(fake::errors().empty());
}

TEST_CASE("failure: a lost device fails everything, and nothing hangs") {
  fake::reset(failing_submit(1, VK_ERROR_DEVICE_LOST));
  {
    Device d;
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    {
      Encoder enc(d, 0);
      mix(d, enc, z, 1);
      enc.close()->wait_retired();
      mix(d, enc, z, 2);
      auto lost = enc.close();
      mix(d, enc, z, 3);
      auto after = enc.close();
      lost->wait();
      after->wait();
      CAPTURE(lost->error());
      CHECK(lost->error().find("LOST") != std::string::npos);
      // Of the device, or of the batch before, if that has failed by then.
      bool of_device = after->error().find("lost") != std::string::npos;
      CHECK((of_device || after->error() == lost->error()));
      after->wait_retired();
    }
    d.memory().release(z);
  }
  CHECK(fake::statistics().live_buffers == 0);
}

TEST_CASE("failure: a loss that only vkQueueSubmit reports ends a wait") {
  fake::reset(failing_submit(1, VK_ERROR_DEVICE_LOST));
  {
    Device d;
    Buffer* z = d.memory().allocate(n * 4, Placement::Host);
    fake::hold(true); // the batch never runs, and the fake device keeps silent
    {
      Encoder enc(d, 0);
      mix(d, enc, z, 1);
      auto batch = enc.close();
      batch->wait();
      CAPTURE(batch->error());
      CHECK(
          batch->error().find("vkQueueSubmit: ERROR_DEVICE_LOST") !=
          std::string::npos);
      CHECK(batch->error().find("mix") != std::string::npos);
      batch->wait_retired();
    }
    fake::hold(false);
    d.memory().release(z);
  }
  CHECK(fake::statistics().live_buffers == 0);
}

TEST_CASE("failure: shut down while a batch waits for ever") {
  fake::reset();
  std::shared_ptr<Completion> held;
  Device d;
  Buffer* z = d.memory().allocate(n * 4, Placement::Host);
  {
    Encoder enc(d, 0);
    enc.wait({std::make_shared<EventState>(), 1, nullptr});
    mix(d, enc, z, 1);
    held = enc.close();
    d.shutdown();
    held->wait();
    CHECK(held->error().find("shut down") != std::string::npos);
  }
  d.memory().release(z);
}

TEST_CASE("failure: out of memory names the size and the device") {
  for (bool discrete : {false, true}) {
    fake::Settings s;
    s.discrete = discrete;
    s.heap_bytes = 8 << 20;
    fake::reset(s);
    Device d;
    std::vector<Buffer*> all;
    auto text = message([&] {
      for (int i = 0; i < 20; ++i) {
        all.push_back(d.memory().allocate(1 << 20, Placement::Device));
      }
    });
    CHECK(text.find("1048576 bytes") != std::string::npos);
    CHECK(text.find("Fake GPU") != std::string::npos);
    CHECK(all.size() >= 3);
    d.memory().release(all.back());
    all.back() = d.memory().allocate(1 << 20, Placement::Device);
    for (auto* b : all) {
      d.memory().release(b);
    }
    CHECK(message([&] {
            d.memory().allocate(uint64_t(1) << 40, Placement::Device);
          }).find("largest single array") != std::string::npos);
  }
}

TEST_CASE("pipelines: made once, by any number of threads") {
  fake::Settings s;
  s.float16 = false;
  fake::reset(s);
  Device d;
  std::vector<std::thread> threads;
  std::vector<std::vector<const Kernel*>> got(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        int v = (i * 7 + t) % 20;
        got[t].resize(20);
        std::vector<Define> defines = {{"V", v}, {"T", Type::f32}};
        got[t][v] = &d.pipelines().get_source(
            "t", "layout(local_size_x = V + 1) in; void main() {}", defines);
        CHECK(got[t][v]->local_size[0] == uint32_t(v + 1));
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  for (int t = 1; t < 8; ++t) {
    CHECK(got[t] == got[0]);
  }
  CHECK(d.pipelines().size() == 20);
  CHECK(fake::statistics().live_pipelines == 20);
  CHECK(got[0][3]->name == "t{V=3 T=f32}");
}

TEST_CASE("pipelines: references outlive the table's growth") {
  fake::Settings s;
  s.float16 = false;
  fake::reset(s);
  Device d;
  auto get = [&](int v) -> const Kernel& {
    std::vector<Define> defines = {{"V", v}};
    return d.pipelines().get_source("t", "void main() {}", defines);
  };
  auto& first = get(0);
  for (int v = 1; v < 1200; ++v) {
    get(v);
  }
  CHECK(&get(0) == &first);
  CHECK(get(600).name == "t{V=600}");
  CHECK(d.pipelines().size() == 1200);
}

TEST_CASE("pipelines: errors are told, and told again") {
  fake::Settings s;
  s.float16 = false;
  s.fail_pipeline = 0;
  fake::reset(s);
  Device d;
  auto& p = d.pipelines();
  for (int i = 0; i < 2; ++i) {
    CHECK(message([&] {
            p.get("no_such_file", {});
          }).find("no_such_file.comp") != std::string::npos);
    CHECK(message([&] {
            p.get_source("bad", "void main() { x; }");
          }).find("bad:1") != std::string::npos);
  }
  auto text = message([&] { p.get_source("t", "void main() {}"); });
  CHECK(text.find("vkCreateComputePipelines") != std::string::npos);
  CHECK(text.find("kernel t") != std::string::npos);
  CHECK_NOTHROW(p.get_source("t", "void main() {}"));
  // Beyond this device.
  std::vector<Define> half = {{"NATIVE_F16", 1}};
  CHECK(message([&] {
          p.get_source(
              "half",
              "shared float16_t x; void main() { x = float16_t(1) + x; }",
              half);
        }).find("Float16 of SPIR-V") != std::string::npos);
  CHECK(message([&] {
          p.get_source(
              "big", "shared float x[20000]; void main() { x[0] = x[1]; }");
        }).find("80000 bytes of shared memory") != std::string::npos);
  CHECK(
      message([&] {
        p.get_source(
            "wide",
            "layout(local_size_x = 1024, local_size_y = 2) in; void main() {}");
      }).find("2048") != std::string::npos);
}

TEST_CASE("pipelines: the driver's cache is kept on disk, per driver") {
  auto folder = fs::temp_directory_path() /
      ("mlxvk-driver-" + std::to_string(std::random_device{}()));
  fake::reset();
  Device d;
  Caps caps = d.caps();
  DiskCache disk(folder);
  auto run = [&](const char* source) {
    PipelineTable table(d.vk(), d.handle(), caps, disk);
    table.get_source("t", source);
    table.save_driver_cache();
    table.save_driver_cache(); // nothing new
  };
  auto name = "driver-" + caps.uuid + "-" + std::to_string(caps.driver_version);
  auto stored = [&] { return disk.get(name)->size(); };
  // Of the fake's caches each save adds a byte, and a merge joins both.
  run("void main() {}");
  CHECK(stored() == 2);
  run("void main() {}");
  CHECK(stored() == 5);
  {
    // What another process stores meanwhile stays.
    PipelineTable table(d.vk(), d.handle(), caps, disk);
    table.get_source("t", "void main() {}");
    std::vector<std::byte> others(100, std::byte('F'));
    disk.put(name, others);
    table.save_driver_cache();
    CHECK(stored() == 100 + 5 + 1);
  }
  caps.driver_version++;
  run("void main() {}");
  CHECK(stored() == 106); // the other driver's is untouched
  // What the driver refuses is replaced.
  caps.driver_version--;
  std::vector<std::byte> junk(10, std::byte('X'));
  disk.put(name, junk);
  run("void main() {}");
  CHECK(stored() == 2);
  fs::remove_all(folder);
}

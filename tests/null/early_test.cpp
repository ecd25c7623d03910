// Kernels before they are requested: lists of kernels as text, the table that
// the library carries, and what a process remembers for the next.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "null/fake_kernels.h"
#include "null/text.h"
#include "pipeline/compiler.h"
#include "pipeline/kernel_list.h"
#include "pipeline/shipped.h"
#include "runtime/device.h"
#include "variants/compile.h"

using namespace mlx::core::vulkan;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A folder of its own; a cache of it and tables on the fake device.
struct Rig {
  Rig() {
    fake::Settings s;
    s.float16 = false;
    fake::reset(s);
    device = std::make_unique<Device>();
  }
  ~Rig() {
    device.reset();
    fs::remove_all(folder);
  }
  std::unique_ptr<PipelineTable> table(size_t threads = 1) {
    return std::make_unique<PipelineTable>(
        device->vk(), device->handle(), device->caps(), disk, threads);
  }
  fs::path folder = fs::temp_directory_path() /
      ("mlxvk-early-" + std::to_string(std::random_device{}()));
  DiskCache disk{folder};
  std::unique_ptr<Device> device;
};

constexpr const char* source = "void main() {}";

const Kernel& request(PipelineTable& table, int v) {
  Define define("V", v);
  return table.get_source("t", source, {&define, 1}, false, Build::Later);
}

ListedKernel listed(int v) {
  return {{}, "t", {{"V", std::to_string(v)}}, source, false};
}

bool soon(auto condition) {
  for (int i = 0; i < 20000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

} // namespace

TEST_CASE("kernel list: text and back") {
  std::vector<ListedKernel> all = {
      {{}, "norm", {{"T", "f32"}, {"N", "-4"}}, "", false},
      {{{"FLOAT_CONTROLS", "1"}, {"X", "2"}}, "quant/qmm", {}, "", true},
      {{{"FLOAT_CONTROLS", "1"}, {"X", "2"}},
       "Multiply",
       {{"FORM", "3"}},
       "// } 3\nvoid main() {}\n\n",
       false},
      {{}, "plain", {}, "{\n", true}};
  auto text = text_of(all);
  CHECK(kernels_in(text) == all);
  CHECK(kernels_in("# a comment\n\n" + text) == all);
  CHECK(has(text, "\nglobals FLOAT_CONTROLS=1 X=2\n*quant/qmm\n"));
  // Those that the text cannot say are left out.
  auto more = all;
  more.push_back({{}, "a b", {}, "", false});
  more.push_back({{}, "a", {{"T", "x y"}}, "", false});
  more.push_back({{{"G", "}"}}, "a", {}, "", false});
  more.push_back({{}, "", {}, "", false});
  CHECK(text_of(more) == text);
  CHECK(kernels_in("")->empty());
  for (auto* bad :
       {"norm{T=f32",
        "norm{T}",
        "norm{=1}",
        "norm}",
        "norm{T=f32} x",
        "norm{T=f32} 5\nabc\n",
        "norm{T=f32} 3\nabcd\n",
        "norm{T=f32} -1\n",
        "norm{T=f32}3\nabc\n",
        "globals X\nnorm",
        "*",
        "norm 99999999999999999999\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(kernels_in(bad));
  }
}

TEST_CASE("kernel list: names and values give the same kernel") {
  const Define defines[] = {
      Define("T", Type::bf16), Define("N", -3), Define("OP", "Add")};
  auto values = named_values(defines);
  CHECK(
      hash_of("x", to_defines(values), false) == hash_of("x", defines, false));
}

TEST_CASE("shipped: a table finds its entries and no others") {
  auto key = [](char c) { return "spv-" + std::string(32, c); };
  auto table = table_of(
      {{key('b'), bytes_of("two")},
       {key('a'), bytes_of("one one")},
       {key('d'), {}}});
  auto found = [&](const std::string& k) {
    auto bytes = find_shipped(table, k);
    return std::string(
        reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  CHECK(found(key('a')) == "one one");
  CHECK(found(key('b')) == "two");
  for (auto& other : std::vector<std::string>{
           key('c'), key('e'), key('0'), key('a') + "a", ""}) {
    CHECK(found(other).empty());
  }
  CHECK(find_shipped({}, key('a')).empty());
  CHECK(find_shipped(table_of({}), key('a')).empty());
  table[0] = std::byte('X');
  CHECK(found(key('a')).empty());
  CHECK(find_shipped(key('a')).empty()); // this program carries none
}

TEST_CASE("early: kernels of a list are built before they are requested") {
  Rig rig;
  auto table = rig.table();
  auto other_globals = listed(7);
  other_globals.globals = {{"G", "1"}};
  table->prepare(
      {listed(0),
       {{}, "no such kernel", {}, "", false},
       {{}, "bad", {}, "nonsense", false},
       other_globals,
       listed(1)});
  CHECK(soon([&] { return table->size() == 2; }));
  CHECK(request(*table, 0).built());
  CHECK(request(*table, 1).built());
  CHECK_FALSE(request(*table, 7).settled());
  // What failed is told to who requests it.
  CHECK(
      has(message([&] { table->get_source("bad", "nonsense"); }),
          "The kernel bad does not compile"));
  // A table that stops first builds nothing, and requests still fail.
  auto stopped = rig.table();
  stopped->stop();
  stopped->prepare({listed(0)});
  CHECK(stopped->size() == 0);
}

TEST_CASE("early: requests come before kernels of a list") {
  Rig rig;
  auto table = rig.table();
  std::vector<ListedKernel> many;
  for (int v = 0; v < 300; ++v) {
    many.push_back(listed(v));
  }
  table->prepare(many);
  table->finish(request(*table, 299));
  CHECK(table->size() < 300);
  CHECK(soon([&] { return table->size() == 300; })); // each once
}

TEST_CASE("early: a process remembers what it built and used") {
  Rig rig;
  CHECK(rig.table()->recent().empty());
  {
    auto table = rig.table();
    for (int v = 0; v < 3; ++v) {
      table->finish(request(*table, v));
    }
    request(*table, 3); // never built
    table->remember_recent();
    CHECK(
        table->recent() ==
        std::vector<ListedKernel>{listed(0), listed(1), listed(2)});
  }
  auto table = rig.table();
  table->prepare(table->recent());
  CHECK(soon([&] { return table->size() == 3; }));
  table->remember_recent(); // nothing new
  CHECK(table->recent().size() == 3);
  // What is new comes first, then what was used, then the rest, to a limit.
  request(*table, 1).used = true;
  table->finish(request(*table, 4));
  table->remember_recent();
  CHECK(
      table->recent() ==
      std::vector<ListedKernel>{listed(1), listed(4), listed(0), listed(2)});
  for (int v = 5; v < int(PipelineTable::recent_limit) + 10; ++v) {
    table->finish(request(*table, v));
  }
  table->remember_recent();
  CHECK(table->recent().size() == PipelineTable::recent_limit);
  // A damaged list is none.
  rig.disk.put("recent-" + rig.device->caps().uuid, bytes_of("norm{"));
  CHECK(table->recent().empty());
}

TEST_CASE("compiler: preparing it makes no kernel") {
  uint64_t before = compile_counters().compilations;
  prepare_compiler();
  CHECK(compile_counters().compilations == before);
}

TEST_CASE("compiler: one pass for a file whose arguments are known as large") {
  auto text = fake::source(
      1, "Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt; uint pad[40];");
  auto passes = [&](int v, const std::string& source) {
    uint64_t before = compile_counters().compilations;
    Define define("V", v);
    auto code = compile_source("large", source, {&define, 1});
    CHECK(code.args_in_memory == (source == text));
    return compile_counters().compilations - before;
  };
  CHECK(passes(0, text) == 2);
  CHECK(passes(1, text) == 1);
  auto small =
      fake::source(1, "Ptr_u32 x; Ptr_u32 y; Ptr_u32 z; uint n; uint salt;");
  CHECK(passes(2, small) == 2);
  CHECK(passes(3, small) == 1);
}

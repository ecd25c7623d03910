#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "vk/config.h"

using namespace mlx::core::vulkan;

namespace {

std::map<std::string, std::string> environment;

Config parse(std::map<std::string, std::string> values) {
  environment = std::move(values);
  return parse_config([](const char* name) -> const char* {
    auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
}

} // namespace

TEST_CASE("config: defaults") {
  auto c = parse({});
  CHECK(c.device.empty());
  CHECK(c.memory == MemoryModel::Automatic);
  CHECK(c.fallback == FallbackPolicy::Allow);
  CHECK_FALSE(c.debug_validate);
  CHECK(c.profile.empty());
  CHECK(c.test.drop_barrier == -1);
  CHECK(c.test.small_buffer == 1024);
  CHECK(c.max_ops > 0);
  CHECK(c.max_mb > 0);
}

TEST_CASE("config: values") {
  auto c = parse({
      {"MLX_VK_DEVICE", "cpu"},
      {"MLX_VK_MEMORY", "discrete"},
      {"MLX_VK_FALLBACK", "deny"},
      {"MLX_VK_PROFILE", "trace.json"},
      {"MLX_VK_DEBUG", "validate,shuffle,loops"},
      {"MLX_VK_DISABLE", "coopmat,levels"},
      {"MLX_VK_TIMEOUT", "7,error"},
      {"MLX_MAX_OPS_PER_BUFFER", "7"},
      {"MLX_MAX_MB_PER_BUFFER", "9"},
      {"MLX_HOSTFILE", "hosts.json"},
      {"MLX_VK_KERNEL_PATH", "src/kernels"},
  });
  CHECK(c.device == "cpu");
  CHECK(c.memory == MemoryModel::Discrete);
  CHECK(parse({{"MLX_VK_MEMORY", "uncached"}}).memory == MemoryModel::Uncached);
  CHECK(c.fallback == FallbackPolicy::Deny);
  CHECK(c.profile == "trace.json");
  CHECK(c.debug_validate);
  CHECK(c.debug_shuffle);
  CHECK(c.debug_loops);
  CHECK_FALSE(c.debug_guard);
  CHECK(c.disabled("coopmat"));
  CHECK(c.disabled("levels"));
  CHECK_FALSE(c.disabled("coop"));
  CHECK_FALSE(c.disabled("coopmat2"));
  CHECK(c.max_ops == 7);
  CHECK(c.max_mb == 9);
  CHECK((c.timeout_s == 7 && c.timeout_error));
  CHECK(c.hostfile == "hosts.json");
  CHECK(c.kernel_path == "src/kernels");
}

TEST_CASE("config: test hooks") {
  auto hooks = [](const char* text) {
    return parse({{"MLX_VK_TEST", text}}).test;
  };
  auto t = hooks(
      "small_buffer=0,dequantize_rows=33,skinny_rows=5,radix_items=0,"
      "drop_barrier=2,matrices=8x16x16,kernels=/a/b,emulate,fixed_subgroups,assumed_rates,trusted,queue=graphics,"
      "heap=64");
  CHECK((t.small_buffer == 0 && t.dequantize_rows == 33));
  CHECK((t.skinny_rows == 5 && t.radix_items == 0 && t.drop_barrier == 2));
  CHECK(t.matrices == "8x16x16");
  CHECK(t.kernels == "/a/b");
  CHECK((t.emulate && t.fixed_subgroups && t.assumed_rates && t.trusted));
  CHECK((t.queue == QueueKind::Graphics && t.heap == 64));
  CHECK(hooks("queue=compute").queue == QueueKind::Compute);
  CHECK(parse({{"MLX_VK_TEST", "int8=signed"}}).int8_activations == 2);
  CHECK(parse({{"MLX_VK_TEST", "int8=unsigned"}}).int8_activations == 3);
  for (auto* bad :
       {"skinny_rows",
        "skinny_rows=",
        "skinny_rows=-2",
        "skinny_rows=1.5",
        "skinny_rows=99999999999",
        "matrices=8x16",
        "kernels=",
        "emulate=1",
        "int8=2",
        "queue=transfer",
        "heap=0",
        "none"}) {
    CAPTURE(bad);
    auto c = parse({{"MLX_VK_TEST", bad}});
    REQUIRE(c.misread.size() == 1);
    CHECK(c.misread[0].value == bad);
  }
}

TEST_CASE("config: what is not understood keeps the default") {
  auto normal = parse({});
  auto c = parse({
      {"MLX_VK_MEMORY", "fast"},
      {"MLX_VK_FALLBACK", "perhaps"},
      {"MLX_VK_INT8_ACTIVATIONS", "2"},
      {"MLX_MAX_OPS_PER_BUFFER", "many"},
      {"MLX_MAX_MB_PER_BUFFER", "-3"},
      {"MLX_VK_PROFILE", "0"},
  });
  CHECK(c.memory == normal.memory);
  CHECK(c.fallback == normal.fallback);
  CHECK(c.int8_activations == 0);
  CHECK(c.max_ops == normal.max_ops);
  CHECK(c.max_mb == normal.max_mb);
  CHECK(c.profile.empty());
}

TEST_CASE("config: each debug mode is a word, a flag and a description") {
  std::string text;
  for (auto& e : config_table()) {
    if (e.name == std::string("MLX_VK_DEBUG")) {
      text = e.description;
    }
  }
#define CHECK_MODE(name, description)                              \
  CHECK(parse({{"MLX_VK_DEBUG", #name}}).debug_##name);            \
  CHECK(parse({{"MLX_VK_DEBUG", "x,,cache," #name}}).debug_cache); \
  CHECK_FALSE(parse({{"MLX_VK_DEBUG", #name "x"}}).debug_##name);  \
  CHECK(text.find("`" #name "` " description ".") != text.npos);
  MLXVK_DEBUG_MODES(CHECK_MODE)
#undef CHECK_MODE
}

TEST_CASE("config: the table is complete and has no doubles") {
  std::set<std::string> names;
  for (auto& e : config_table()) {
    CHECK(names.insert(e.name).second);
    std::string name = e.name;
    CHECK((name == "MLX_VK" || name.starts_with("MLX_VK_")));
    CHECK(std::string(e.description).size() > 10);
  }
  for (auto* name : {"MLX_VK_DEVICE", "MLX_VK_CACHE", "MLX_VK_KERNEL_PATH"}) {
    CHECK(names.count(name));
  }
  CHECK(names.size() <= 16); // a word of an existing one is better
}

TEST_CASE("config: milliseconds of a submission may have decimals") {
  CHECK(parse({}).max_ms == -1);
  auto ms = [](const char* text) {
    return parse({{"MLX_VK_MAX_MS_PER_SUBMISSION", text}}).max_ms;
  };
  CHECK(ms("0") == 0);
  CHECK(ms("2.5") == 2.5);
  for (auto* bad : {"-2", "x", "3s", "nan"}) {
    CHECK(ms(bad) == -1);
  }
}

TEST_CASE("config: what is not understood keeps its default") {
  CHECK_FALSE(parse({{"MLX_VK_TIMEOUT", "false"}}).timeout_error);
  CHECK(parse({{"MLX_VK_TIMEOUT", "-1"}}).timeout_s == 30);
  CHECK_FALSE(parse({{"MLX_VK_HOST_GROUP", "yes"}}).host_group);
  CHECK(parse({{"MLX_VK_HOST_GROUP", "1"}}).host_group);
  CHECK_FALSE(parse({{"MLX_VK_HOST_GROUP", "0"}}).host_group);
}

TEST_CASE("config: what is not understood is kept for doctor") {
  auto c = parse(
      {{"MLX_VK_MEMORY", "fast"},
       {"MLX_VK_TIMEOUT", "x"},
       {"MLX_VK_DEBUG", "cache,y"},
       {"MLX_VK_DISABLE", "fuse,z"}});
  REQUIRE(c.misread.size() == 4);
  std::set<std::string> said;
  for (auto& m : c.misread) {
    said.insert(m.name + "=" + m.value);
    CHECK_FALSE(m.expected.empty());
  }
  CHECK(
      said ==
      std::set<std::string>{
          "MLX_VK_MEMORY=fast",
          "MLX_VK_TIMEOUT=x",
          "MLX_VK_DEBUG=y",
          "MLX_VK_DISABLE=z"});
  CHECK(c.misread[0].expected == "auto, unified, discrete or uncached");
  CHECK(parse({{"MLX_VK_MEMORY", "auto"}, {"MLX_VK_TIMEOUT", ""}})
            .misread.empty());
}

TEST_CASE("config: unknown names and the nearest known ones") {
  const char* names[] = {
      "PATH=/bin",
      "MLX_VK=1",
      "MLX_VK_DEVISE=0",
      "MLX_VK_MEMORY=auto",
      "MLX_VK_MEMROY=auto",
      "MLX_VK_TEST_OF_OURS=1",
      "MLX_VK_TIMEOUTS",
      nullptr};
  auto unknown = unknown_settings(names);
  REQUIRE(unknown.size() == 3);
  CHECK(unknown[0].name == "MLX_VK_DEVISE");
  CHECK(unknown[0].nearest == std::string("MLX_VK_DEVICE"));
  CHECK(unknown[1].nearest == std::string("MLX_VK_MEMORY"));
  CHECK(unknown[2].nearest == std::string("MLX_VK_TIMEOUT"));
  CHECK(unknown_settings(nullptr).empty());
}

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
  CHECK_FALSE(c.validate);
  CHECK(c.profile.empty());
  CHECK(c.drop_barrier == -1);
  CHECK(c.max_ops > 0);
  CHECK(c.max_mb > 0);
}

TEST_CASE("config: values") {
  auto c = parse({
      {"MLX_VK_DEVICE", "cpu"},
      {"MLX_VK_MEMORY", "discrete"},
      {"MLX_VK_FALLBACK", "deny"},
      {"MLX_VK_VALIDATE", "1"},
      {"MLX_VK_PROFILE", "trace.json"},
      {"MLX_VK_DEBUG", "fallback,shuffle,loops"},
      {"MLX_VK_DISABLE", "coopmat,levels"},
      {"MLX_VK_MAX_OPS_PER_BUFFER", "7"},
      {"MLX_VK_MAX_MB_PER_BUFFER", "9"},
      {"MLX_VK_SMALL_BUFFER", "0"},
      {"MLX_VK_KERNEL_PATH", "src/kernels"},
  });
  CHECK(c.device == "cpu");
  CHECK(c.memory == MemoryModel::Discrete);
  CHECK(parse({{"MLX_VK_MEMORY", "uncached"}}).memory == MemoryModel::Uncached);
  CHECK(parse({{"MLX_VK_QUEUE", "compute"}}).queue == QueueKind::Compute);
  CHECK(parse({{"MLX_VK_QUEUE", "graphics"}}).queue == QueueKind::Graphics);
  CHECK(parse({{"MLX_VK_QUEUE", "auto"}}).queue == QueueKind::Automatic);
  CHECK(c.fallback == FallbackPolicy::Deny);
  CHECK(c.validate);
  CHECK(c.profile == "trace.json");
  CHECK(c.debug_fallback);
  CHECK(c.debug_shuffle);
  CHECK(c.debug_loops);
  CHECK_FALSE(c.debug_guard);
  CHECK(c.disabled("coopmat"));
  CHECK(c.disabled("levels"));
  CHECK_FALSE(c.disabled("coop"));
  CHECK_FALSE(c.disabled("coopmat2"));
  CHECK(c.max_ops == 7);
  CHECK(c.max_mb == 9);
  CHECK(c.small_buffer == 0);
  CHECK(c.kernel_path == "src/kernels");
}

TEST_CASE("config: MLX's own names, ours first") {
  CHECK(parse({{"MLX_MAX_OPS_PER_BUFFER", "5"}}).max_ops == 5);
  CHECK(
      parse(
          {{"MLX_MAX_OPS_PER_BUFFER", "5"}, {"MLX_VK_MAX_OPS_PER_BUFFER", "6"}})
          .max_ops == 6);
}

TEST_CASE("config: what is not understood keeps the default") {
  auto normal = parse({});
  auto c = parse({
      {"MLX_VK_MEMORY", "fast"},
      {"MLX_VK_FALLBACK", "perhaps"},
      {"MLX_VK_QUEUE", "transfer"},
      {"MLX_VK_MAX_OPS_PER_BUFFER", "many"},
      {"MLX_VK_MAX_MB_PER_BUFFER", "-3"},
      {"MLX_VK_VALIDATE", "0"},
      {"MLX_VK_PROFILE", "0"},
  });
  CHECK(c.memory == normal.memory);
  CHECK(c.fallback == normal.fallback);
  CHECK(c.queue == QueueKind::Automatic);
  CHECK(c.max_ops == normal.max_ops);
  CHECK(c.max_mb == normal.max_mb);
  CHECK_FALSE(c.validate);
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
  CHECK_FALSE(parse({{"MLX_VK_TIMEOUT_ERROR", "false"}}).timeout_error);
  CHECK_FALSE(parse({{"MLX_VK_HOST_GROUP", "yes"}}).host_group);
  CHECK(parse({{"MLX_VK_HOST_GROUP", "1"}}).host_group);
  CHECK_FALSE(parse({{"MLX_VK_HOST_GROUP", "0"}}).host_group);
}

TEST_CASE("config: what is not understood is kept for doctor") {
  auto c = parse(
      {{"MLX_VK_MEMORY", "fast"},
       {"MLX_VK_SPIN", "x"},
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
          "MLX_VK_SPIN=x",
          "MLX_VK_DEBUG=y",
          "MLX_VK_DISABLE=z"});
  CHECK(c.misread[0].expected == "auto, unified, discrete or uncached");
  CHECK(
      parse({{"MLX_VK_MEMORY", "auto"}, {"MLX_VK_SPIN", ""}}).misread.empty());
}

TEST_CASE("config: unknown names and the nearest known ones") {
  const char* names[] = {
      "PATH=/bin",
      "MLX_VK=1",
      "MLX_VK_DEVISE=0",
      "MLX_VK_MEMORY=auto",
      "MLX_VK_MEMROY=auto",
      "MLX_VK_TEST_OF_OURS=1",
      "MLX_VK_TIMEOUT_ERR",
      nullptr};
  auto unknown = unknown_settings(names);
  REQUIRE(unknown.size() == 3);
  CHECK(unknown[0].name == "MLX_VK_DEVISE");
  CHECK(unknown[0].nearest == std::string("MLX_VK_DEVICE"));
  CHECK(unknown[1].nearest == std::string("MLX_VK_MEMORY"));
  CHECK(unknown[2].nearest == std::string("MLX_VK_TIMEOUT_ERROR"));
  CHECK(unknown_settings(nullptr).empty());
}

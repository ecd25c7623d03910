// The output of `mlx-vulkan doctor`, as JSON through a C function of libmlx.so,
// so that the tool sees the very library that Python loaded.
#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include <nlohmann/json.hpp>

#include "backend/fallback.h"
#include "backend/host_ranks.h"
#include "mlx/version.h"
#include "pipeline/disk_cache.h"
#include "pipeline/library.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/rewrite.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

using nlohmann::json;

json device_json(const Caps& c, bool selected) {
  json d;
  d["name"] = c.name;
  d["type"] = type_name(c.type);
  d["uuid"] = c.uuid;
  d["driver"] = c.driver;
  d["driver_id"] = driver_name(c.driver_id);
  d["vendor_id"] = c.vendor_id;
  d["device_id"] = c.device_id;
  d["api_version"] = std::to_string(VK_API_VERSION_MAJOR(c.api_version)) + "." +
      std::to_string(VK_API_VERSION_MINOR(c.api_version)) + "." +
      std::to_string(VK_API_VERSION_PATCH(c.api_version));
  auto missing = missing_features(c);
  d["missing"] = missing;
  d["usable"] = missing.empty();
  d["selected"] = selected;
  d["optional"] = {
      {"shaderFloat16", c.shader_float16},
      {"VK_KHR_shader_bfloat16", c.bfloat16},
      {"VK_KHR_cooperative_matrix", c.cooperative_matrix},
      {"cooperative matrix f16 " + c.shape_f16.text(), c.coopmat_f16},
      {"cooperative matrix bf16 " + c.shape_bf16.text(), c.coopmat_bf16},
      {"bf16 on matrices of f16", c.half_matrices(Type::bf16).lanes != 0},
      {"known matrix fragments", c.known_fragments},
      {"integerDotProduct", c.integer_dot_product},
      {"fast products of packed bytes", c.fast_dot_signed || c.fast_dot_mixed},
      {"subgroupSizeControl", c.subgroup_size_control},
      {"shaderSubgroupExtendedTypes", c.subgroup_extended_types},
      {"VK_EXT_memory_budget", c.memory_budget},
      {"timestamps", c.timestamps},
      {"queue without graphics in use", c.compute_only_queue}};
  d["limits"] = {
      {"subgroup_size", c.subgroup_size},
      {"max_workgroup_size", c.max_workgroup_size},
      {"shared_memory", c.shared_memory},
      {"max_push_constants", c.max_push_constants},
      {"max_buffer_size", c.max_buffer_size}};
  auto policy = policy_of(c);
  d["plans"] = {
      {"class", policy.name},
      {"cores", c.core_count},
      {"registers", policy.registers},
      {"held_values", policy.held_values},
      {"lanes", policy.lanes}};
  d["heaps"] = json::array();
  for (uint32_t i = 0; i < c.memory.memoryHeapCount; ++i) {
    d["heaps"].push_back(
        {{"size", c.memory.memoryHeaps[i].size},
         {"device_local",
          bool(
              c.memory.memoryHeaps[i].flags &
              VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)}});
  }
  return d;
}

// The memory model of the device in use, why it was chosen, and its limits.
json memory_json(const Caps& c) {
  auto wanted = config().memory;
  auto types = choose_memory_types(c.memory, c.type, wanted);
  json j;
  try {
    // The speed of host reads is known only once a device is started.
    bool probed = type_to_probe(c.memory, c.type, wanted) >= 0;
    if (auto* d = probed ? &device() : device_if_started()) {
      types = d->memory().types();
      j["budget"] = d->memory().budget();
    }
  } catch (const std::exception& e) {
    j["problem"] = e.what();
  }
  j["model"] = types.why;
  j["size"] = heap_bytes(c.memory, types.device);
  j["largest_array"] = c.max_buffer_size;
  return j;
}

json counters_json() {
  auto& c = counters();
  auto& k = compile_counters();
  json j;
  j["compilations"] = k.compilations.load();
  j["translations"] = k.translations.load();
  j["shipped_hits"] = k.shipped_hits.load();
  j["disk_hits"] = k.disk_hits.load();
  j["compile_seconds"] = k.compile_ns.load() * 1e-9;
  j["pipelines"] = k.pipelines.load();
  j["pipeline_seconds"] = k.pipeline_ns.load() * 1e-9;
  j["compile_wait_seconds"] = k.wait_ns.load() * 1e-9;
  j["batches"] = c.batches.load();
  j["submissions"] = c.submissions.load();
  j["splits"] = c.splits.load();
  j["dispatches"] = c.dispatches.load();
  j["copies"] = c.copies.load();
  j["barriers"] = c.barriers.load();
  j["marks"] = c.marks.load();
  j["record_seconds"] = c.record_ns.load() * 1e-9;
  for (size_t rule = 0; rule < rule_names.count; ++rule) {
    j[std::string("rewrites_") + name_of(Rule(rule))] =
        rewrite_counters().rules[rule].fired.load();
  }
  // A fallback is a decomposition into other GPU operations, never the CPU.
  j["fallbacks"] = j["decompositions"] = c.decompositions.load();
  if (auto* d = device_if_started()) {
    j["host_waits"] = d->timeline().host_waits.load();
    j["uploaded_bytes"] = d->memory().uploaded.load();
    j["downloaded_bytes"] = d->memory().downloaded.load();
  }
  j["fallback_signatures"] = json::array();
  for (auto& f : fallback_counts()) {
    j["fallback_signatures"].push_back(
        {{"signature", f.name}, {"calls", f.calls}, {"kind", "decomposition"}});
  }
  return j;
}

json cache_json() {
  auto& cache = default_disk_cache();
  auto s = cache.status();
  json j;
  j["path"] = cache.folder().string();
  j["entries"] = s.entries;
  j["bytes"] = s.bytes;
  j["limit"] = s.limit;
  j["writable"] = s.not_writable.empty();
  j["why_not"] = s.not_writable;
  j["stored"] = s.stored;
  j["not_stored"] = s.not_stored;
  j["why_not_stored"] = s.why_not_stored;
  j["driver_caches"] = json::array();
  for (auto& [name, bytes] : s.driver_caches) {
    j["driver_caches"].push_back({{"name", name}, {"bytes", bytes}});
  }
  return j;
}

json report() {
  const Probe& p = probe();
  json j;
  j["mlx_version"] = mlx::core::version();
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(&probe), &where)) {
    j["library"] = where.dli_fname;
  }
  j["loader"] = {
      {"found", system_loader() != nullptr},
      {"why", p.why},
      {"closed_node", closed_render_node()}};
  j["local_rank"] =
      launch().local_rank ? json(*launch().local_rank) : json(nullptr);
  j["devices"] = json::array();
  for (size_t i = 0; i < p.devices.size(); ++i) {
    j["devices"].push_back(
        device_json(p.devices[i], static_cast<int>(i) == p.chosen));
    if (static_cast<int>(i) == p.chosen) {
      j["devices"].back()["memory"] = memory_json(p.devices[i]);
    }
  }
  j["distributed"] = distributed_state();
  j["started"] = device_if_started() != nullptr;
  j["config"] = json::array();
  for (const auto& e : config_table()) {
    const char* value = std::getenv(e.name);
    j["config"].push_back(
        {{"name", e.name},
         {"value", value ? value : e.fallback},
         {"default", e.fallback},
         {"description", e.description},
         {"set", value != nullptr}});
    for (auto& m : config().misread) {
      if (m.name == e.name) {
        j["config"].back()["expected"] = m.expected;
      }
    }
  }
  j["unknown_settings"] = json::array();
  for (auto& u : unknown_settings(environ)) {
    j["unknown_settings"].push_back({{"name", u.name}, {"nearest", u.nearest}});
  }
  j["cache"] = cache_json();
  j["counters"] = counters_json();
  return j;
}

// Valid until the next call from the same thread. Never throws; an error is
// an object with the member "error".
template <json make()>
const char* kept_text() {
  static thread_local std::string text;
  try {
    text = make().dump();
  } catch (const std::exception& e) {
    text = json{{"error", e.what()}}.dump();
  }
  return text.c_str();
}

} // namespace

} // namespace mlx::core::vulkan

extern "C" __attribute__((visibility("default"))) const char*
mlx_vulkan_doctor_json() {
  return mlx::core::vulkan::kept_text<mlx::core::vulkan::report>();
}

// Only the counters, cheap enough to call around a decode step.
extern "C" __attribute__((visibility("default"))) const char*
mlx_vulkan_counters_json() {
  return mlx::core::vulkan::kept_text<mlx::core::vulkan::counters_json>();
}

// Whether kernels of find_of_cuts() are compiled too.
extern "C" __attribute__((visibility("default"))) void mlx_vulkan_prepare_cuts(
    bool on) {
  mlx::core::vulkan::prepare_cuts(on);
}

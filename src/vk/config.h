// Every environment variable of the backend, MLX_VK..., in one table. It feeds
// `mlx-vulkan doctor` and the documentation. All but MLX_VK_CACHE
// (pipeline/disk_cache.h) and MLX_VK_COMMIT (the Python package) are in Config.
// Read once, at first use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

struct ConfigEntry {
  const char* name;
  const char* fallback; // default, as text
  const char* description;
};
std::span<const ConfigEntry> config_table();

// X(name, description): the words of MLX_VK_DEBUG, each of which sets
// Config::debug_<name>.
#define MLXVK_DEBUG_MODES(X)                                           \
  X(fallback, "names the operations that are decomposed")              \
  X(submit, "logs batches")                                            \
  X(cache, "logs files that the kernel cache cannot read or write")    \
  X(shuffle, "permutes independent dispatches")                        \
  X(guard, "puts red zones around arrays")                             \
  X(noncoherent,                                                       \
    "emulates caches that are not coherent: the host works on copies " \
    "that only flushes and invalidations update")                      \
  X(watch,                                                             \
    "marks progress, so that a report of MLX_VK_TIMEOUT names one "    \
    "kernel")                                                          \
  X(loops, "makes a kernel loop that exceeds its bound an error")      \
  X(bounds,                                                            \
    "makes an index outside of its array an error that names it; "     \
    "every operation is a batch of its own")

enum class FallbackPolicy : uint8_t { Allow, Warn, Deny };
enum class MemoryModel : uint8_t { Automatic, Unified, Discrete, Uncached };
enum class QueueKind : uint8_t { Automatic, Compute, Graphics };

// A value that the setting does not take.
struct Misread {
  std::string name, value, expected;
};

struct Config {
  bool off = false; // MLX_VK=0
  std::string device; // MLX_VK_DEVICE
  MemoryModel memory = MemoryModel::Automatic;
  QueueKind queue = QueueKind::Automatic;
  FallbackPolicy fallback = FallbackPolicy::Allow;
  bool validate = false;
  std::string profile; // empty: off; "1": table; else a trace file
  bool qmm_stats = false, sdpa_stats = false;
  int dequantize_rows = -1; // -1: where it measured faster; 0: never
  int skinny_rows = -1; // the same
  int radix_items = -1; // the same
  int int8_activations = 0; // 1: where that is fast; 2, 3: wherever it can be
  int max_ops = 100;
  int max_mb = 256;
  double max_ms = -1; // of a submission, by estimate; -1: by the device
  size_t small_buffer = 1024;
  int spin_us = 1500; // polling of a wait before it sleeps
  int timeout_s = 30; // without progress of the device; 0: no watch
  bool host_group = false;
  bool timeout_error = false;
  std::string kernel_path;
  std::string disable; // comma-separated paths
  bool metal_kernels = false; // mx.metal.is_available()
#define MLXVK_MEMBER(name, description) bool debug_##name = false;
  MLXVK_DEBUG_MODES(MLXVK_MEMBER)
#undef MLXVK_MEMBER
  std::string matrices; // test hook: a shape (vk/matrix_units.h)
  int drop_barrier = -1; // test hook: leave out the n-th barrier of a batch

  std::vector<Misread> misread; // each keeps its default

  bool disabled(std::string_view path) const;
};

// A variable MLX_VK_... that is not in the table, and the entry most like it.
struct UnknownSetting {
  std::string name;
  const char* nearest;
};
std::vector<UnknownSetting> unknown_settings(const char* const* environment);

// The configuration in force. Throws nothing: an unknown value warns on
// stderr and keeps the default; so does an unknown name.
const Config& config();

// Parses from a lookup function; the pure part of config(), for tests.
Config parse_config(const char* (*get)(const char*));

} // namespace mlx::core::vulkan

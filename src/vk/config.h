// Every environment variable of the backend, MLX_VK..., in one table, which
// feeds `mlx-vulkan doctor` and the documentation. They are read once, at first
// use, here and nowhere else; the Python package reads MLX_VK, MLX_VK_TRACE,
// MLX_VK_DEBUG (trace) and MLX_VK_METAL_KERNELS too.
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
#define MLXVK_DEBUG_MODES(X)                                                   \
  X(validate, "loads the Khronos validation layer and makes its errors fatal") \
  X(paths,                                                                     \
    "prints at exit, for each shape of a quantized product and of "            \
    "attention, the kernel that ran, the number of calls and the "             \
    "reason why a faster kernel was not used")                                 \
  X(select,                                                                    \
    "prints the records of each batch, the kernel that ran for each, and "     \
    "why others were not joined (docs/dev/rewrites.md)")                       \
  X(submit, "logs batches")                                                    \
  X(cache,                                                                     \
    "logs compilations, and files that the kernel cache cannot read or write") \
  X(shuffle, "permutes independent dispatches")                                \
  X(guard, "puts red zones around arrays")                                     \
  X(noncoherent,                                                               \
    "emulates caches that are not coherent: the host works on copies "         \
    "that only flushes and invalidations update")                              \
  X(trace, "says which steps of models are traced, and why others are not")    \
  X(watch,                                                                     \
    "marks progress, so that a report of MLX_VK_TIMEOUT names one "            \
    "kernel")                                                                  \
  X(loops, "makes a kernel loop that exceeds its bound an error")              \
  X(bounds,                                                                    \
    "makes an index outside of its array an error that names it; "             \
    "every operation is a batch of its own")

enum class FallbackPolicy : uint8_t { Allow, Warn, Deny };
enum class MemoryModel : uint8_t { Automatic, Unified, Discrete, Uncached };
enum class QueueKind : uint8_t { Automatic, Compute, Graphics };

// Test hooks: the words of MLX_VK_TEST, such as skinny_rows=5. The defaults are
// what users get.
struct TestHooks {
  QueueKind queue = QueueKind::Automatic; // of a GPU with both families
  int small_buffer = 1024; // bytes up to which arrays live in mapped memory
  // Rows of x, or items of a row, from which products dequantize w first, take
  // matrix units for few rows, and sorts go by digits. -1: where that measured
  // faster; 0: never.
  int dequantize_rows = -1, skinny_rows = -1, radix_items = -1;
  bool emulate = false; // matrix units of attention, on software devices
  bool fixed_subgroups = false; // act like a driver without control of the size
  std::string matrices; // only matrices of this shape (vk/matrix_units.h)
  std::string kernels; // a second folder, of sources that are not embedded
  int drop_barrier = -1; // of every batch, counted from 1
  bool assumed_rates = false; // the device's are not measured at start
  int heap = 0; // MiB of each device-local heap; 0: what the driver says
  bool trusted = false; // probes of what it claims may fail
  std::string plans; // planned_policy() (policy/policy.h)
  std::string rows; // a file that replaces the chip's in src/ops/tuned/rows
};

// A value that the setting does not accept.
struct Misread {
  std::string name, value, expected;
};

struct Config {
  bool off = false; // MLX_VK=0
  std::string device;
  MemoryModel memory = MemoryModel::Automatic;
  FallbackPolicy fallback = FallbackPolicy::Allow;
  std::string cache; // the folder of compiled kernels; empty: none
  std::string profile; // empty: off; "1": table; else a trace file
  // 1: on devices where it is fast. MLX_VK_TEST=int8=... sets 2 (signed codes)
  // or 3 (unsigned codes), which hold for any device.
  int int8_activations = 0;
  int max_ops = 100;
  int max_mb = 256;
  double max_ms = -1; // of a submission, by estimate; -1: by the device
  int timeout_s = 30; // without progress of the device; 0: no watchdog
  bool timeout_error = false;
  bool host_group = false;
  std::string hostfile; // MLX_HOSTFILE, which MLX's ring reads too
  std::string kernel_path;
  std::string disable; // comma-separated paths
  bool metal_kernels = false; // mx.metal.is_available()
#define MLXVK_MEMBER(name, description) bool debug_##name = false;
  MLXVK_DEBUG_MODES(MLXVK_MEMBER)
#undef MLXVK_MEMBER
  TestHooks test;

  std::vector<Misread> misread; // each keeps its default

  bool disabled(std::string_view path) const;
};

// A variable MLX_VK_... that is not in the table, and the entry most like it.
struct UnknownSetting {
  std::string name;
  std::string nearest;
};
std::vector<UnknownSetting> unknown_settings(const char* const* environment);

// The configuration in force. Throws nothing: an unknown value warns on
// stderr and keeps the default; so does an unknown name.
const Config& config();

// Parses from a lookup function; the pure part of config(), for tests.
Config parse_config(const char* (*get)(const char*));

} // namespace mlx::core::vulkan

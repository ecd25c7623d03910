#include "vk/config.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace mlx::core::vulkan {

namespace {

constexpr ConfigEntry table[] = {
    {"MLX_VK",
     "1",
     "0: this backend steps aside. Another libmlx.so (mlx-cpu, mlx-cuda) is "
     "used if it is there, else this one without a GPU."},
    {"MLX_VK_DEVICE",
     "",
     "Device to use: index, part of the name, UUID, `cpu` for a software "
     "device, or `auto`, the default: discrete, then integrated, then virtual "
     "GPU. Processes of one job (mlx.launch, mpirun, srun, torchrun) share out "
     "the GPUs of that kind by their local rank. Software devices are used "
     "only when asked for."},
    {"MLX_VK_MEMORY",
     "auto",
     "Memory model: auto, unified (one mapped allocation per array), discrete "
     "(device-local arrays with host mirrors) or uncached (auto, as if the host "
     "read the device's memory slowly). `mlx-vulkan doctor` says what auto "
     "chose and why."},
    {"MLX_VK_SMALL_BUFFER",
     "1024",
     "Discrete model: arrays of up to this many bytes live in mapped device "
     "memory and need no copies. 0 turns that off."},
    {"MLX_VK_TIMEOUT",
     "30",
     "Seconds without progress after which the kernels that the device is at "
     "are named on stderr. 0: no watch."},
    {"MLX_VK_TIMEOUT_ERROR",
     "0",
     "1: calls that wait for such a device throw instead of waiting on. The "
     "process cannot use the device again."},
    {"MLX_VK_SPIN",
     "1500",
     "Microseconds that a wait polls the device before it sleeps between "
     "looks. More is more exact and takes more of a core."},
    {"MLX_VK_QUEUE",
     "auto",
     "Which of a GPU's queues takes the work, where it has both: compute (one "
     "without graphics), graphics (one with), auto (compute on NVIDIA, where it "
     "starts work sooner; graphics elsewhere)."},
    {"MLX_VK_FALLBACK",
     "allow",
     "Operations that are decomposed into several kernels where Metal has one: "
     "allow, warn, deny (throw)."},
    {"MLX_VK_VALIDATE",
     "0",
     "1 loads the Khronos validation layer and makes its errors fatal."},
    {"MLX_VK_PROFILE",
     "",
     "1 prints a table per kernel at exit; a file name writes a "
     "Chrome/Perfetto trace."},
    {"MLX_VK_DEBUG",
     "",
#define MLXVK_TEXT(name, description) " `" #name "` " description "."
     "Comma-separated words." MLXVK_DEBUG_MODES(MLXVK_TEXT)},
#undef MLXVK_TEXT
    {"MLX_VK_DISABLE",
     "",
     "Comma-separated paths to switch off: coopmat, bfloat16, native_f16, "
     "float_controls, levels, splits, joins, sentinels, fuse, fuse_attention "
     "(the part of fuse that changes how results round), halves (bf16 on "
     "matrices of f16, where there are none of bf16), meet (GPUs of "
     "MLX_VK_HOST_GROUP do not wait for each other), subgroup_sizes (as on "
     "drivers that let nobody choose them)."},
    {"MLX_VK_METAL_KERNELS",
     "",
     "What mx.metal.is_available() says. Not set: true where models of mlx-lm and "
     "mlx-vlm ask before they make Metal kernels, but for mlx-vlm's exact "
     "speculation; false to everybody else. 0: false, so that those models take "
     "MLX's operations. 1: true; as on a Mac, arrays then tell DLPack that they "
     "are Metal's; np.array(x) works as ever. mx.fast.metal_kernel itself works "
     "with any of them."},
    {"MLX_VK_QMM_STATS",
     "0",
     "1 lists at exit, per shape of a quantized product, the kernel that ran, "
     "how often, and why not a faster one."},
    {"MLX_VK_SDPA_STATS", "0", "1 lists the same at exit for attention."},
    {"MLX_VK_CACHE",
     "",
     "Folder of the kernel cache, for nothing else; `off`, or set to nothing: "
     "none. Default: $XDG_CACHE_HOME/mlx-vulkan."},
    {"MLX_VK_KERNEL_PATH",
     "",
     "Reads kernel sources from this folder instead of the embedded ones "
     "(development)."},
    {"MLX_VK_MAX_OPS_PER_BUFFER",
     "100",
     "Operations after which a batch is submitted (MLX_MAX_OPS_PER_BUFFER is "
     "honoured too). 100 stands for 25 to 400, as the device is idle or busy."},
    {"MLX_VK_MAX_MB_PER_BUFFER",
     "256",
     "MiB of arrays pinned by a batch after which it is submitted "
     "(MLX_MAX_MB_PER_BUFFER is honoured too)."},
    {"MLX_VK_MAX_MS_PER_SUBMISSION",
     "-1",
     "Milliseconds that what is submitted to the device at once should take at "
     "most, by estimate. Batches are cut for that, and long kernels run in "
     "parts. 0: no limit. -1: 500, 100 on integrated GPUs, none on software "
     "devices."},
    {"MLX_VK_DEQUANTIZE_ROWS",
     "-1",
     "Rows of x from which a quantized product dequantizes its weights first, "
     "once, into three times up to 256 MiB of memory a stream. -1: with matrix "
     "units 128, or 768 on integrated GPUs, else never; 0: never."},
    {"MLX_VK_SKINNY_ROWS",
     "-1",
     "Rows of x from which matrix units take quantized products of up to 64 "
     "rows, in a kernel for few. -1: where that is faster; 0: never. If set, "
     "software devices emulate it, for tests."},
    {"MLX_VK_RADIX_ITEMS",
     "-1",
     "Items of a row from which sorts go by digits instead of merging. -1: where "
     "that is faster; 0: never."},
    {"MLX_VK_INT8_ACTIVATIONS",
     "0",
     "1: on GPUs without matrix units that multiply bytes fast (integer dot "
     "products), quantized products of more than eight rows (prompts) round x to 8 "
     "bits, 32 items with one scale, which changes results: see \"Activations of 8 bits\" "
     "in docs/benchmarks.md. 2, 3: on any device that has such products, with "
     "signed and unsigned codes, for tests. 0: never."},
    {"MLX_VK_HOST_GROUP",
     "0",
     "1: ranks of one host (mlx.launch with its ring) exchange data on GPU streams "
     "through shared memory, not over TCP. Not the default yet: see \"Two GPUs\" "
     "in docs/benchmarks-models.md."},
    {"MLX_VK_TEST_MATRICES",
     "",
     "Test hook: cooperative matrices of this shape alone, M x N x K as in "
     "8x16x16, if the device lists it. Software devices emulate it."},
    {"MLX_VK_TEST_DROP_BARRIER",
     "-1",
     "Test hook: leaves out the n-th barrier of every batch; with "
     "MLX_VK_DEBUG=shuffle, what it kept apart is permuted too."},
};

// Of MLX_VK_DISABLE.
constexpr std::string_view paths[] = {
    "coopmat",
    "bfloat16",
    "native_f16",
    "float_controls",
    "levels",
    "splits",
    "joins",
    "sentinels",
    "fuse",
    "fuse_attention",
    "halves",
    "meet",
    "subgroup_sizes"};

// Cuts the first word off a comma-separated list.
std::string_view take_word(std::string_view& list) {
  auto end = std::min(list.find(','), list.size());
  auto word = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return word;
}

void warn(const char* name, const char* value, const char* expected) {
  std::fprintf(
      stderr,
      "[mlx-vulkan] %s=%s is not understood (expected %s); using the "
      "default.\n",
      name,
      value,
      expected);
}

template <typename T>
auto to_number(const char* text, char** end, const T&) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::strtod(text, end);
  } else {
    return std::strtol(text, end, 10);
  }
}

} // namespace

std::span<const ConfigEntry> config_table() {
  return table;
}

bool Config::disabled(std::string_view path) const {
  for (std::string_view rest = disable; !rest.empty();) {
    if (take_word(rest) == path) {
      return true;
    }
  }
  return false;
}

namespace {

void parse_debug_modes(const std::string& modes, Config& c) {
  for (std::string_view rest = modes; !rest.empty();) {
    auto word = take_word(rest);
#define MLXVK_PARSE(name, description) \
  if (word == #name) {                 \
    c.debug_##name = true;             \
    continue;                          \
  }
    MLXVK_DEBUG_MODES(MLXVK_PARSE)
#undef MLXVK_PARSE
    if (!word.empty()) {
      std::string unknown(word);
      warn("MLX_VK_DEBUG", unknown.c_str(), "words of docs/environment.md");
    }
  }
}

void check_paths(std::string_view disabled) {
  while (!disabled.empty()) {
    std::string word(take_word(disabled));
    if (!word.empty() && std::ranges::find(paths, word) == std::end(paths)) {
      warn("MLX_VK_DISABLE", word.c_str(), "words of docs/environment.md");
    }
  }
}

// The environment's words. What is empty or not understood keeps the default.
struct Environment {
  const char* (*get)(const char*);

  std::string text(const char* name) const {
    const char* v = get(name);
    return v ? v : "";
  }
  template <typename T>
  bool number(const char* name, T& out, long least) const {
    auto v = text(name);
    if (v.empty()) {
      return false;
    }
    char* end = nullptr;
    auto n = to_number(v.c_str(), &end, out);
    if (*end || !(n >= least)) {
      warn(name, v.c_str(), "a number");
      return false;
    }
    out = n;
    return true;
  }
  template <typename E, size_t n>
  void word(
      const char* name,
      E& out,
      const std::pair<const char*, E> (&words)[n],
      const char* expected) const {
    auto v = text(name);
    auto found =
        std::find_if(words, words + n, [&](auto& w) { return v == w.first; });
    if (found != words + n) {
      out = found->second;
    } else if (!v.empty()) {
      warn(name, v.c_str(), expected);
    }
  }
  void flag(const char* name, bool& out) const {
    word(name, out, {{"0", false}, {"1", true}}, "0 or 1");
  }
};

} // namespace

Config parse_config(const char* (*get)(const char*)) {
  Environment e{get};
  Config c;
  c.off = e.text("MLX_VK") == "0";
  c.device = e.text("MLX_VK_DEVICE");
  e.word(
      "MLX_VK_MEMORY",
      c.memory,
      {{"auto", MemoryModel::Automatic},
       {"unified", MemoryModel::Unified},
       {"discrete", MemoryModel::Discrete},
       {"uncached", MemoryModel::Uncached}},
      "auto, unified, discrete or uncached");
  e.word(
      "MLX_VK_QUEUE",
      c.queue,
      {{"auto", QueueKind::Automatic},
       {"compute", QueueKind::Compute},
       {"graphics", QueueKind::Graphics}},
      "auto, compute or graphics");
  e.word(
      "MLX_VK_FALLBACK",
      c.fallback,
      {{"allow", FallbackPolicy::Allow},
       {"warn", FallbackPolicy::Warn},
       {"deny", FallbackPolicy::Deny}},
      "allow, warn or deny");
  e.flag("MLX_VK_VALIDATE", c.validate);
  e.flag("MLX_VK_METAL_KERNELS", c.metal_kernels);
  e.flag("MLX_VK_QMM_STATS", c.qmm_stats);
  e.flag("MLX_VK_SDPA_STATS", c.sdpa_stats);
  auto profile = e.text("MLX_VK_PROFILE");
  c.profile = profile == "0" ? "" : profile;
  e.number("MLX_VK_MAX_OPS_PER_BUFFER", c.max_ops, 1) ||
      e.number("MLX_MAX_OPS_PER_BUFFER", c.max_ops, 1);
  e.number("MLX_VK_MAX_MB_PER_BUFFER", c.max_mb, 1) ||
      e.number("MLX_MAX_MB_PER_BUFFER", c.max_mb, 1);
  e.number("MLX_VK_MAX_MS_PER_SUBMISSION", c.max_ms, -1);
  e.number("MLX_VK_SMALL_BUFFER", c.small_buffer, 0);
  e.number("MLX_VK_SPIN", c.spin_us, 0);
  e.number("MLX_VK_DEQUANTIZE_ROWS", c.dequantize_rows, -1);
  e.number("MLX_VK_SKINNY_ROWS", c.skinny_rows, -1);
  e.number("MLX_VK_RADIX_ITEMS", c.radix_items, -1);
  e.number("MLX_VK_INT8_ACTIVATIONS", c.int8_activations, 0);
  e.number("MLX_VK_TIMEOUT", c.timeout_s, 0);
  e.flag("MLX_VK_HOST_GROUP", c.host_group);
  e.flag("MLX_VK_TIMEOUT_ERROR", c.timeout_error);
  c.matrices = e.text("MLX_VK_TEST_MATRICES");
  e.number("MLX_VK_TEST_DROP_BARRIER", c.drop_barrier, -1);
  c.kernel_path = e.text("MLX_VK_KERNEL_PATH");
  c.disable = e.text("MLX_VK_DISABLE");
  check_paths(c.disable);
  parse_debug_modes(e.text("MLX_VK_DEBUG"), c);
  return c;
}

const Config& config() {
  static const Config c =
      parse_config([](const char* n) -> const char* { return std::getenv(n); });
  return c;
}

} // namespace mlx::core::vulkan

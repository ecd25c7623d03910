#include "vk/config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <type_traits>
#include <utility>

namespace mlx::core::vulkan {

namespace {

constexpr ConfigEntry table[] = {
    {"MLX_VK",
     "1",
     "0 switches this backend off: MLX runs on the CPU, or on another libmlx.so "
     "(mlx-cpu, mlx-cuda) if one is installed."},
    {"MLX_VK_DEVICE",
     "auto",
     "The device to use: an index, a UUID, part of a name, `cpu` for a software "
     "device, or `auto`, which prefers discrete GPUs to integrated GPUs to virtual "
     "GPUs. With `auto` and `cpu`, the processes of one job (mlx.launch, mpirun, "
     "srun, torchrun) are spread over the devices of that type by local rank. "
     "Software devices are opt-in."},
    {"MLX_VK_MEMORY",
     "auto",
     "The memory model: `auto`, `unified` (one mapped allocation per array), "
     "`discrete` (device-local arrays with host mirrors) or `uncached` (`auto`, "
     "treating host reads of device memory as slow). `mlx-vulkan doctor` shows the "
     "model that `auto` chose and the reason."},
    {"MLX_VK_SMALL_BUFFER",
     "1024",
     "Discrete memory model: arrays of up to this many bytes live in mapped device "
     "memory and need no copies. 0 disables this."},
    {"MLX_VK_TIMEOUT",
     "30",
     "Seconds without progress after which the kernels that the device is running "
     "are named on stderr. 0 disables the watchdog."},
    {"MLX_VK_TIMEOUT_ERROR",
     "0",
     "1 makes calls that wait for a hung device raise an error after "
     "MLX_VK_TIMEOUT. The process cannot use the device afterwards."},
    {"MLX_VK_SPIN",
     "1500",
     "Microseconds for which a wait polls the device before it starts to sleep "
     "between polls. Higher values reduce latency and use more CPU time."},
    {"MLX_VK_QUEUE",
     "auto",
     "The queue family to use where a GPU has both: `compute` (without graphics), "
     "`graphics` (with graphics) or `auto` (compute on NVIDIA, where submissions "
     "start sooner; graphics elsewhere)."},
    {"MLX_VK_FALLBACK",
     "allow",
     "What happens to operations that this backend decomposes into several kernels "
     "and MLX's Metal backend runs as one: `allow`, `warn` or `deny` (raise an "
     "error)."},
    {"MLX_VK_VALIDATE",
     "0",
     "1 loads the Khronos validation layer and makes its errors fatal."},
    {"MLX_VK_PROFILE",
     "",
     "1 prints a table of kernel times at exit; a file name writes a "
     "Chrome/Perfetto trace to that file."},
    {"MLX_VK_DEBUG",
     "",
#define MLXVK_TEXT(name, description) " `" #name "` " description "."
     "Debug modes, separated by commas." MLXVK_DEBUG_MODES(MLXVK_TEXT)},
#undef MLXVK_TEXT
    {"MLX_VK_DISABLE",
     "",
     "Optimizations and features to switch off, separated by commas: coopmat, "
     "bfloat16, native_f16, float_controls, levels, splits, joins, sentinels, fuse, "
     "fuse_attention (the part of fuse that changes rounding), halves (bf16 "
     "products on f16 matrix units, for devices without bf16 ones), meet (direct "
     "waits between the GPUs of MLX_VK_HOST_GROUP) and subgroup_sizes (behaves "
     "like a driver without subgroup size control)."},
    {"MLX_VK_METAL_KERNELS",
     "",
     "The result of mx.metal.is_available(). By default, it is true where models of "
     "mlx-lm and mlx-vlm ask before they use Metal kernels (except mlx-vlm's exact "
     "speculation), and false elsewhere. 0 makes it false, so that those models use "
     "MLX's operations. 1 makes it true everywhere; arrays then report Metal as "
     "their DLPack device, as on a Mac, and np.array(x) is not affected. "
     "mx.fast.metal_kernel works with any value."},
    {"MLX_VK_QMM_STATS",
     "0",
     "1 prints at exit, for each shape of a quantized product, the kernel that ran, "
     "the number of calls, and the reason why a faster kernel was not used."},
    {"MLX_VK_SDPA_STATS", "0", "1 prints the same statistics for attention."},
    {"MLX_VK_CACHE",
     "",
     "A folder for compiled kernels and nothing else; `off` or an empty value "
     "disables the cache. The default is $XDG_CACHE_HOME/mlx-vulkan, or "
     "~/.cache/mlx-vulkan."},
    {"MLX_VK_KERNEL_PATH",
     "",
     "Development: a folder from which kernel sources are read instead of the "
     "embedded ones."},
    {"MLX_VK_MAX_OPS_PER_BUFFER",
     "100",
     "Number of operations after which a batch is submitted; "
     "MLX_MAX_OPS_PER_BUFFER works too. The default stands for 25 to 400, "
     "depending on how busy the device is."},
    {"MLX_VK_MAX_MB_PER_BUFFER",
     "256",
     "MiB of arrays in use by a batch after which it is submitted; "
     "MLX_MAX_MB_PER_BUFFER works too."},
    {"MLX_VK_MAX_MS_PER_SUBMISSION",
     "-1",
     "Longest estimated duration of one submission in milliseconds. Batches and "
     "long kernels are split to stay below it. 0 means no limit. -1 means 500, or "
     "100 on integrated GPUs, or no limit on software devices."},
    {"MLX_VK_DEQUANTIZE_ROWS",
     "-1",
     "Number of rows of x from which a quantized product dequantizes its weights "
     "first, into up to three buffers of 256 MiB per stream. -1 means 128 with "
     "matrix units (768 on integrated GPUs) and never without; 0 means never."},
    {"MLX_VK_SKINNY_ROWS",
     "-1",
     "Number of rows of x from which quantized products of up to 64 rows use a "
     "matrix-unit kernel for few rows. -1 means where it is faster; 0 means never. "
     "Any other value makes software devices emulate it, for tests."},
    {"MLX_VK_RADIX_ITEMS",
     "-1",
     "Number of items of a row from which sorts are radix sorts instead of merge "
     "sorts. -1 means where that is faster; 0 means never."},
    {"MLX_VK_INT8_ACTIVATIONS",
     "0",
     "1 rounds x to 8 bits, with one scale per 32 items, in quantized products of "
     "more than eight rows (prompts), on GPUs without matrix units that have fast "
     "integer dot products. This changes results. 2 and 3 do so on any device with "
     "integer dot products, with signed and unsigned codes, for tests."},
    {"MLX_VK_HOST_GROUP",
     "0",
     "1 lets the ranks of one host (mlx.launch with the ring backend) exchange data "
     "on GPU streams through shared memory instead of TCP. Opt-in."},
    {"MLX_VK_COMMIT",
     "",
     "The commit that `mlx-vulkan bench` records in its results where it finds no "
     "git checkout."},
    {"MLX_VK_TEST_MATRICES",
     "",
     "Test hook: use only cooperative matrices of this shape, M x N x K as in "
     "8x16x16, if the device lists it. Software devices emulate it."},
    {"MLX_VK_TEST_DROP_BARRIER",
     "-1",
     "Test hook: leave out the n-th barrier of every batch; MLX_VK_DEBUG=shuffle "
     "then also permutes the dispatches that it separated."},
};

// The words of MLX_VK_DISABLE.
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

// "a, b or c".
std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 < words.size() ? ", " : " or ";
    text += words[i];
  }
  return text;
}

// Reads settings into `c`. What is empty or not understood keeps the default.
struct Environment {
  const char* (*get)(const char*);
  Config& c;

  void misread(const char* name, std::string value, std::string expected)
      const {
    std::fprintf(
        stderr,
        "[mlx-vulkan] %s=%s is ignored: expected %s.\n",
        name,
        value.c_str(),
        expected.c_str());
    c.misread.push_back({name, std::move(value), std::move(expected)});
  }
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
      misread(name, v, "a number of " + std::to_string(least) + " or more");
      return false;
    }
    out = n;
    return true;
  }
  template <typename E, size_t n>
  void word(
      const char* name,
      E& out,
      const std::pair<std::string_view, E> (&words)[n]) const {
    auto v = text(name);
    auto found =
        std::find_if(words, words + n, [&](auto& w) { return v == w.first; });
    if (found != words + n) {
      out = found->second;
    } else if (!v.empty()) {
      std::string_view names[n];
      std::transform(words, words + n, names, [](auto& w) { return w.first; });
      misread(name, v, alternatives(names));
    }
  }
  void flag(const char* name, bool& out) const {
    word(name, out, {{"0", false}, {"1", true}});
  }
};

void parse_debug_modes(const Environment& e) {
  constexpr std::string_view known[] = {
#define MLXVK_NAME(name, description) #name,
      MLXVK_DEBUG_MODES(MLXVK_NAME)
#undef MLXVK_NAME
  };
  auto modes = e.text("MLX_VK_DEBUG");
  for (std::string_view rest = modes; !rest.empty();) {
    auto word = take_word(rest);
#define MLXVK_PARSE(name, description) \
  if (word == #name) {                 \
    e.c.debug_##name = true;           \
    continue;                          \
  }
    MLXVK_DEBUG_MODES(MLXVK_PARSE)
#undef MLXVK_PARSE
    if (!word.empty()) {
      e.misread("MLX_VK_DEBUG", std::string(word), alternatives(known));
    }
  }
}

void check_paths(const Environment& e) {
  for (std::string_view rest = e.c.disable; !rest.empty();) {
    std::string word(take_word(rest));
    if (!word.empty() && std::ranges::find(paths, word) == std::end(paths)) {
      e.misread("MLX_VK_DISABLE", word, alternatives(paths));
    }
  }
}

// Levenshtein's distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

const ConfigEntry& nearest(std::string_view name) {
  return *std::ranges::min_element(
      table, {}, [&](auto& e) { return distance(name, e.name); });
}

} // namespace

std::vector<UnknownSetting> unknown_settings(const char* const* environment) {
  std::vector<UnknownSetting> found;
  for (; environment && *environment; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    // MLX_VK_TEST_*: the test suite has more of them than the library.
    if (name.starts_with("MLX_VK_") && !name.starts_with("MLX_VK_TEST_") &&
        std::ranges::find(table, name, &ConfigEntry::name) == std::end(table)) {
      found.push_back({std::string(name), nearest(name).name});
    }
  }
  return found;
}

Config parse_config(const char* (*get)(const char*)) {
  Config c;
  Environment e{get, c};
  c.off = e.text("MLX_VK") == "0";
  c.device = e.text("MLX_VK_DEVICE");
  e.word(
      "MLX_VK_MEMORY",
      c.memory,
      {{"auto", MemoryModel::Automatic},
       {"unified", MemoryModel::Unified},
       {"discrete", MemoryModel::Discrete},
       {"uncached", MemoryModel::Uncached}});
  e.word(
      "MLX_VK_QUEUE",
      c.queue,
      {{"auto", QueueKind::Automatic},
       {"compute", QueueKind::Compute},
       {"graphics", QueueKind::Graphics}});
  e.word(
      "MLX_VK_FALLBACK",
      c.fallback,
      {{"allow", FallbackPolicy::Allow},
       {"warn", FallbackPolicy::Warn},
       {"deny", FallbackPolicy::Deny}});
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
  check_paths(e);
  parse_debug_modes(e);
  return c;
}

const Config& config() {
  static const Config c = [] {
    auto found = parse_config(
        [](const char* n) -> const char* { return std::getenv(n); });
    if (!found.off) {
      for (auto& u : unknown_settings(environ)) {
        std::fprintf(
            stderr,
            "[mlx-vulkan] %s is not a setting; did you mean %s?\n",
            u.name.c_str(),
            u.nearest);
      }
    }
    return found;
  }();
  return c;
}

} // namespace mlx::core::vulkan

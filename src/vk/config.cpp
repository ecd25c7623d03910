#include "vk/config.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <type_traits>
#include <utility>

#include "vk/matrix_units.h"

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
    {"MLX_VK_CACHE",
     "",
     "A folder for compiled kernels and nothing else; `off` or an empty value "
     "disables the cache. The default is $XDG_CACHE_HOME/mlx-vulkan, or "
     "~/.cache/mlx-vulkan."},
    {"MLX_VK_TIMEOUT",
     "30",
     "Seconds without progress after which the kernels that the device is running "
     "are named on stderr; 0 disables the watchdog. With `error`, as in "
     "`30,error`, calls that wait for the device then raise an error, and the "
     "process cannot use the device afterwards."},
    {"MLX_VK_MAX_MS_PER_SUBMISSION",
     "-1",
     "Longest estimated duration of one submission in milliseconds. Batches and "
     "long kernels are split to stay below it. 0 means no limit. -1 means 500, or "
     "100 on integrated GPUs, or no limit on software devices."},
    {"MLX_VK_FALLBACK",
     "allow",
     "What happens to operations that run on the CPU for want of a kernel, or as "
     "several kernels where MLX's Metal backend has one: `allow`, `warn` or `deny` "
     "(raise an error)."},
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
     "bfloat16, native_f16, float64, shared (all but 16 KiB of a workgroup's "
     "memory), levels, splits, sentinels, fuse, fuse_attention (the part of "
     "fuse that changes rounding), halves (bf16 "
     "products on f16 matrix units, for devices without bf16 ones), meet "
     "(direct waits between the GPUs of MLX_VK_HOST_GROUP), experts (their "
     "cache on a card that lacks room for all) and tuned (what `mlx-vulkan tune` "
     "found)."},
    {"MLX_VK_METAL_KERNELS",
     "",
     "The result of mx.metal.is_available(). By default, it is true where models of "
     "mlx-lm and mlx-vlm ask before they use Metal kernels (except mlx-vlm's exact "
     "speculation), and false elsewhere. 0 makes it false, so that those models use "
     "MLX's operations. 1 makes it true everywhere. mx.fast.metal_kernel works with "
     "any value, and DLPack sees the same arrays."},
    {"MLX_VK_TRACE",
     "1",
     "0 runs every decode step of mlx-lm's and mlx-vlm's models in Python. "
     "Otherwise steps are traced once and then built without Python "
     "(docs/dev/traced-step.md)."},
    {"MLX_VK_INT8_ACTIVATIONS",
     "0",
     "1 rounds x to 8 bits, with one scale per 32 items, in quantized products of "
     "more than eight rows (prompts), on GPUs without matrix units that have fast "
     "integer dot products. This changes results."},
    {"MLX_VK_HOST_GROUP",
     "0",
     "1 lets the ranks of one host (mlx.launch with the ring backend) exchange data "
     "on GPU streams through shared memory instead of TCP. Opt-in."},
    {"MLX_VK_KERNEL_PATH",
     "",
     "Development: a folder of kernel sources, used instead of the "
     "embedded ones."},
    {"MLX_VK_TEST",
     "",
     "Test hooks, not for users, separated by commas. `skinny_rows=N`, "
     "`dequantize_rows=N` and `radix_items=N` set the rows or items from which "
     "matrix units take few rows, weights are dequantized first and sorts go by "
     "digits (-1: where that measured faster, 0: never; skinny_rows also makes "
     "software devices emulate matrix units). `matrices=8x16x16` uses only "
     "matrices of this shape, which software devices emulate. `emulate` makes "
     "software devices emulate the matrix units of attention. `kernels=FOLDER` "
     "is a second folder of kernel sources; emulation needs that of "
     "tests/emulation. `int8=signed` or "
     "`int8=unsigned` rounds as MLX_VK_INT8_ACTIVATIONS on any device. "
     "`fixed_subgroups` behaves like a driver without subgroup size control. "
     "`small_buffer=N` sets the bytes up to which arrays of the discrete memory "
     "model live in mapped device memory (1024). `heap=MiB` makes device-local "
     "heaps no larger than this. `queue=compute` or "
     "`queue=graphics` chooses the queue family. `drop_barrier=N` leaves out the "
     "n-th barrier of every batch; MLX_VK_DEBUG=shuffle then also permutes the "
     "dispatches that it separated. `assumed_rates` does not measure the "
     "device's rates at start. `trusted` believes what the device claims, whatever "
     "probes say (tests/chips). `plans=CLASS` (a file of src/policy: `plans=amd`) "
     "gives plans of products, attention and norms the policy of that class, "
     "also on a software device; `plans=quant.dot_row_k=1` and "
     "`plans=quant.compiled_weights=1` change a threshold. `rows=FILE` stands for "
     "the chip's rows (ops/tuned/plan.h)."},
};

// The words of MLX_VK_DISABLE.
constexpr std::string_view paths[] = {
    "coopmat",
    "bfloat16",
    "native_f16",
    "float64",
    "shared",
    "levels",
    "splits",
    "sentinels",
    "fuse",
    "fuse_attention",
    "halves",
    "meet",
    "experts",
    "tuned"};

// Cuts the first word off a comma-separated list.
std::string_view take_word(std::string_view& list) {
  auto end = std::min(list.find(','), list.size());
  auto word = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return word;
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

// Whether `text` is a number of `least` or more, which it stores.
template <typename T>
bool to_number(const std::string& text, T& out, long least) {
  char* end = nullptr;
  double n = std::strtod(text.c_str(), &end);
  bool whole = std::is_floating_point_v<T> || n == static_cast<long>(n);
  if (text.empty() || *end || !(n >= least && n <= INT_MAX) || !whole) {
    return false;
  }
  out = static_cast<T>(n);
  return true;
}

std::string at_least(long least) {
  return "a number of " + std::to_string(least) + " or more";
}

// Reads settings into `c`; an empty or unknown value keeps the default.
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
    auto* value = get(name);
    return value ? value : "";
  }
  template <typename T>
  void number(const char* name, T& out, long least) const {
    auto v = text(name);
    if (!v.empty() && !to_number(v, out, least)) {
      misread(name, v, at_least(least));
    }
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
  // Passes the words of a list to `known`, which returns whether it took one.
  template <typename F>
  void list(const char* name, const std::string& expected, F known) const {
    auto words = text(name);
    for (std::string_view rest = words; !rest.empty();) {
      std::string word(take_word(rest));
      if (!word.empty() && !known(word)) {
        misread(name, word, expected);
      }
    }
  }
};

void parse_debug_modes(const Environment& e) {
  constexpr std::string_view known[] = {
#define MLXVK_NAME(name, description) #name,
      MLXVK_DEBUG_MODES(MLXVK_NAME)
#undef MLXVK_NAME
  };
  e.list("MLX_VK_DEBUG", alternatives(known), [&](auto& word) {
#define MLXVK_PARSE(name, description) \
  if (word == #name) {                 \
    e.c.debug_##name = true;           \
    return true;                       \
  }
    MLXVK_DEBUG_MODES(MLXVK_PARSE)
#undef MLXVK_PARSE
    return false;
  });
}

// A word of MLX_VK_TEST, as key=value or key.
bool parse_hook(const std::string& word, Config& c) {
  auto key = word.substr(0, word.find('='));
  auto value = key.size() < word.size() ? word.substr(key.size() + 1) : "";
  auto number = [&](const char* name, int& out, int least) {
    return key == name && to_number(value, out, least);
  };
  auto choice = [&](const char* text, auto& out, auto meaning) {
    bool found = word == text;
    out = found ? meaning : out;
    return found;
  };
  auto& t = c.test;
  if (key == "matrices" && parse_matrix_shape(value)) {
    t.matrices = value;
    return true;
  }
  if (key == "plans") {
    t.plans = value;
    return true;
  }
  if ((key == "kernels" || key == "rows") && !value.empty()) {
    (key == "rows" ? t.rows : t.kernels) = value;
    return true;
  }
  return number("small_buffer", t.small_buffer, 0) ||
      number("dequantize_rows", t.dequantize_rows, -1) ||
      number("skinny_rows", t.skinny_rows, -1) ||
      number("radix_items", t.radix_items, -1) ||
      number("drop_barrier", t.drop_barrier, -1) || number("heap", t.heap, 1) ||
      choice("int8=signed", c.int8_activations, 2) ||
      choice("int8=unsigned", c.int8_activations, 3) ||
      choice("queue=auto", t.queue, QueueKind::Automatic) ||
      choice("queue=compute", t.queue, QueueKind::Compute) ||
      choice("queue=graphics", t.queue, QueueKind::Graphics) ||
      choice("emulate", t.emulate, true) ||
      choice("fixed_subgroups", t.fixed_subgroups, true) ||
      choice("assumed_rates", t.assumed_rates, true) ||
      choice("trusted", t.trusted, true);
}

std::string cache_folder(const Environment& e) {
  if (e.get("MLX_VK_CACHE")) {
    auto set = e.text("MLX_VK_CACHE");
    return set == "off" ? "" : set;
  }
  if (auto xdg = e.text("XDG_CACHE_HOME"); !xdg.empty()) {
    return xdg + "/mlx-vulkan";
  }
  auto home = e.text("HOME");
  return home.empty() ? "" : home + "/.cache/mlx-vulkan";
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
    std::string_view entry = *environment;
    auto name = entry.substr(0, entry.find('='));
    // MLX_VK_TEST_*: the test suite's own
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
      "MLX_VK_FALLBACK",
      c.fallback,
      {{"allow", FallbackPolicy::Allow},
       {"warn", FallbackPolicy::Warn},
       {"deny", FallbackPolicy::Deny}});
  c.cache = cache_folder(e);
  auto profile = e.text("MLX_VK_PROFILE");
  c.profile = profile == "0" ? "" : profile;
  e.number("MLX_MAX_OPS_PER_BUFFER", c.max_ops, 1);
  e.number("MLX_MAX_MB_PER_BUFFER", c.max_mb, 1);
  e.number("MLX_VK_MAX_MS_PER_SUBMISSION", c.max_ms, -1);
  e.list("MLX_VK_TIMEOUT", at_least(0) + ", or error", [&](auto& word) {
    c.timeout_error |= word == "error";
    return word == "error" || to_number(word, c.timeout_s, 0);
  });
  e.flag("MLX_VK_METAL_KERNELS", c.metal_kernels);
  e.flag("MLX_VK_HOST_GROUP", c.host_group);
  e.word("MLX_VK_INT8_ACTIVATIONS", c.int8_activations, {{"0", 0}, {"1", 1}});
  c.hostfile = e.text("MLX_HOSTFILE");
  c.kernel_path = e.text("MLX_VK_KERNEL_PATH");
  c.disable = e.text("MLX_VK_DISABLE");
  e.list("MLX_VK_DISABLE", alternatives(paths), [](auto& word) {
    return std::ranges::find(paths, word) != std::end(paths);
  });
  e.list(
      "MLX_VK_TEST", "a test hook of docs/dev/all-settings.md", [&](auto& w) {
        return parse_hook(w, c);
      });
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
            u.nearest.c_str());
      }
    }
    return found;
  }();
  return c;
}

} // namespace mlx::core::vulkan

#include "ops/tuned/tuned.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <unordered_map>

#include "mlx/version.h"
#include "pipeline/disk_cache.h"
#include "pipeline/hash.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// A bit for problems of about these sizes (sizes_of()). It tells without a hash
// that there is no choice for a problem.
uint64_t size_bit(const Sizes& sizes) {
  return 1ull << (std::bit_width(bucket(sizes[0])) % 32 + (sizes[2] ? 32 : 0));
}

struct Entry {
  Choice choice;
  uint32_t view;
  // 0: not known yet; else whether it holds().
  std::atomic<int8_t> known{0};

  Entry(const Choice& c, uint32_t view) : choice(c), view(view) {}
};
using Table = std::unordered_map<uint64_t, Entry>;

struct State {
  explicit State(const Target& t) : caps(t.caps), device(caps, t.policy) {}

  const Caps caps;
  const Target device;
  std::atomic<const Table*> table{nullptr}; // replaced ones are leaked
  std::atomic<uint64_t> sizes{0}; // size_bit() of problems to look up
  std::mutex mutex;
  std::atomic<bool> recording{false};
  std::map<uint64_t, Recorded> recorded; // under mutex

  // Some 150 policies.
  const Views& views() {
    std::call_once(once, [&] { // leaked, as this is
      views_ = new Views(device, config().test.plans);
    });
    return *views_;
  }
  void use(const std::vector<Choice>& choices) {
    auto* made = new Table;
    for (auto& c : choices) {
      int view = views().find(c.view);
      if (view >= 0) {
        made->try_emplace(c.problem, c, view);
      }
    }
    table.store(made, std::memory_order_release);
    update();
  }
  void update() {
    uint64_t bits = recording || !config().test.plans.empty() ? ~0ull : 0;
    for (auto& [problem, entry] : *table.load()) {
      bits |= size_bit(entry.choice.sizes);
    }
    sizes = bits;
  }

  std::once_flag once;
  std::atomic<const Views*> views_{nullptr};
};

std::atomic<State*> state_{nullptr};

std::chrono::steady_clock::time_point started;
std::atomic<bool> by_tuner{false}; // a process that needs no hint

// Once on a machine whose kind of GPU nobody has timed, at the end of a process
// that used it for a minute.
void hint() {
  constexpr std::string_view said = "said-tune";
  auto& cache = default_disk_cache();
  bool used =
      std::chrono::steady_clock::now() - started > std::chrono::minutes(1);
  if (used && !by_tuner && ::isatty(STDERR_FILENO) && !cache.get(said) &&
      cache.put(said, std::as_bytes(std::span(said)))) {
    std::fputs(
        "[mlx-vulkan] `mlx-vulkan tune MODEL` may make this model faster on "
        "this GPU. This is said once.\n",
        stderr);
  }
}

// The user's, else those of the chip's rows.
std::vector<Choice> stored_choices(const Caps& device) {
  if (config().disabled("tuned")) {
    return {};
  }
  auto found = choices_in(tuned_text(device));
  if (found) {
    return *found;
  }
  found.emplace();
  for (auto& text : rows_of(device)) {
    auto more = choices_in(text).value_or(std::vector<Choice>());
    found->insert(found->end(), more.begin(), more.end());
  }
  return *found;
}

State& state_of(const Target& device) {
  static auto* made = [&] { // leaked: used at exit
    auto* s = new State(device);
    s->use(stored_choices(device.caps));
    state_ = s;
    if (!device.policy.timed_tiles && s->table.load()->empty()) {
      started = std::chrono::steady_clock::now();
      std::atexit(hint);
    }
    return s;
  }();
  return *made;
}

std::string file_name(const Caps& device) {
  Hasher h;
  h.add(device.driver);
  h.add(device.driver_version, plans_version);
  h.add(std::string_view(mlx::core::version()));
  return "tuned-" + device.uuid + "-" + hexadecimal(h.a());
}

} // namespace

void load_choices(const Target& device) {
  state_of(device);
}

const Target& tuned(const Target& device, const Planned& p) {
  State& s = state_of(device);
  if (!(s.sizes.load(std::memory_order_relaxed) & size_bit(sizes_of(p)))) {
    return device; // no choice, no class for tests, and no tuner that records
  }
  uint64_t key = class_of(p);
  if (s.recording.load(std::memory_order_relaxed)) {
    std::lock_guard lock(s.mutex);
    auto& r = s.recorded.try_emplace(key, Recorded{p}).first->second;
    ++r.calls;
  }
  auto& table = *s.table.load(std::memory_order_acquire);
  auto found = table.find(key);
  if (found == table.end()) {
    return s.views()[0].target;
  }
  auto& entry = const_cast<Entry&>(found->second);
  int8_t known = entry.known.load(std::memory_order_relaxed);
  if (known == 0) {
    known = holds(s.views(), entry.view, entry.choice, p) ? 1 : -1;
    entry.known.store(known, std::memory_order_relaxed);
  }
  return s.views()[known > 0 ? entry.view : 0].target;
}

const Views& views() {
  State* s = state_.load();
  if (!s) {
    throw std::runtime_error("The device has not planned anything yet.");
  }
  by_tuner = true;
  return s->views();
}

bool made_views() {
  State* s = state_.load();
  return s && s->views_;
}

void use_choices(const std::vector<Choice>& choices) {
  views();
  state_.load()->use(choices);
}

void record_problems(bool on) {
  views();
  State& s = *state_.load();
  std::lock_guard lock(s.mutex);
  s.recorded.clear();
  s.recording = on;
  s.update();
}

std::vector<Recorded> recorded_problems() {
  views();
  State& s = *state_.load();
  std::lock_guard lock(s.mutex);
  std::vector<Recorded> found;
  for (auto& [key, r] : s.recorded) {
    found.push_back(r);
  }
  return found;
}

std::string tuned_text(const Caps& device) {
  auto bytes = default_disk_cache().get(file_name(device));
  auto* text = bytes ? reinterpret_cast<const char*>(bytes->data()) : nullptr;
  return text ? std::string(text, bytes->size()) : std::string();
}

bool store_tuned_text(const Caps& device, std::string_view text) {
  return default_disk_cache().put(
      file_name(device), std::as_bytes(std::span(text)));
}

std::vector<std::string> rows_of(const Caps& device) {
  auto& hook = config().test.rows;
  if (hook.empty()) {
    return rows_of(device, {embedded_rows, embedded_row_count});
  }
  std::ifstream file(hook);
  return {std::string(std::istreambuf_iterator<char>(file), {})};
}

} // namespace mlx::core::vulkan

#include "ops/tuned/tuned.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "mlx/version.h"
#include "ops/matrix_tiles.h"
#include "pipeline/disk_cache.h"
#include "pipeline/hash.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

struct Entry {
  Choice choice;
  // 0: not known yet; else whether the view still gives the plan.
  std::atomic<int8_t> holds{0};

  explicit Entry(const Choice& c) : choice(c) {}
};
using Table = std::unordered_map<uint64_t, Entry>;

struct State {
  explicit State(const Caps& device) : views(device, config().test.plans) {}

  const Views views;
  std::atomic<const Table*> table{nullptr}; // replaced ones are leaked
  std::atomic<bool> active{false};
  std::mutex mutex;
  std::atomic<bool> recording{false};
  std::map<uint64_t, Recorded> recorded; // under mutex

  void use(const std::vector<Choice>& choices) {
    auto* made = new Table;
    for (auto& c : choices) {
      made->try_emplace(c.problem, c);
    }
    table.store(made, std::memory_order_release);
    update();
  }
  void update() {
    active =
        recording || !table.load()->empty() || !config().test.plans.empty();
  }
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

State& state_of(const Caps& device) {
  static auto* made = [&] { // leaked: used at exit
    auto* s = new State(device);
    s->use(
        config().disabled("tuned") ? std::vector<Choice>()
                                   : choices_in(s->views, tuned_text(device)));
    state_ = s;
    if (!timed_tiles(device) && s->table.load()->empty()) {
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
  char text[17];
  std::snprintf(
      text, sizeof text, "%016llx", static_cast<unsigned long long>(h.a()));
  return "tuned-" + device.uuid + "-" + text;
}

} // namespace

bool looks_up(const Caps& device) {
  return state_of(device).active.load(std::memory_order_relaxed);
}

const Caps& looked_up(const Caps& device, const Planned& p) {
  State& s = state_of(device);
  uint64_t key = class_of(p);
  if (s.recording.load(std::memory_order_relaxed)) {
    std::lock_guard lock(s.mutex);
    auto& r = s.recorded.try_emplace(key, Recorded{p}).first->second;
    ++r.calls;
  }
  auto& table = *s.table.load(std::memory_order_acquire);
  auto found = table.find(key);
  if (found == table.end()) {
    return s.views[0].caps;
  }
  auto& [choice, holds] = const_cast<Entry&>(found->second);
  int8_t known = holds.load(std::memory_order_relaxed);
  if (known == 0) {
    auto plan = plan_of(s.views, choice.view, with_sizes(p, choice.sizes));
    known = plan.plan == choice.plan ? 1 : -1;
    holds.store(known, std::memory_order_relaxed);
  }
  return s.views[known > 0 ? choice.view : 0].caps;
}

const Views& views() {
  State* s = state_.load();
  if (!s) {
    throw std::runtime_error("The device has not planned anything yet.");
  }
  by_tuner = true;
  return s->views;
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

std::vector<Choice> choices_in(const Views& views, const std::string& text) {
  std::vector<Choice> found;
  try {
    auto table = nlohmann::json::parse(text.empty() ? "{}" : text);
    if (table.value("plans", 0u) != plans_version) {
      return {};
    }
    auto hash = [](const nlohmann::json& j) {
      return std::stoull(j.get<std::string>(), nullptr, 16);
    };
    for (auto& j : table.at("choices")) {
      int view = views.find(j.at("view").get<std::string>());
      if (view >= 0) {
        found.push_back(
            {hash(j.at("class")),
             static_cast<uint32_t>(view),
             hash(j.at("plan")),
             j.at("sizes").get<Sizes>()});
      }
    }
  } catch (const std::exception&) {
    return {};
  }
  return found;
}

} // namespace mlx::core::vulkan

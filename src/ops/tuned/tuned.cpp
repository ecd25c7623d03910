#include "ops/tuned/tuned.h"

#include <atomic>
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

using Table = std::unordered_map<uint64_t, Choice>;

struct State {
  explicit State(const Target& t)
      : caps(t.caps),
        target(
            caps,
            planned_policy(caps, config().test, config().int8_activations)) {}

  const Caps caps;
  const Target target; // that plans see
  std::atomic<const Table*> table{nullptr}; // replaced ones are leaked
  std::atomic<uint64_t> sizes{0}; // size_bit() of problems to look up
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
    uint64_t bits = recording ? ~0ull : 0;
    for (auto& [problem, choice] : *table.load()) {
      bits |= choice.size_bit;
    }
    sizes = bits;
  }
};

std::atomic<State*> state_{nullptr};

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
    return s;
  }();
  return *made;
}

std::string file_name(const Caps& device) {
  Hasher h;
  h.add(device.driver);
  h.add(device.driver_version);
  h.add(std::string_view(mlx::core::version()));
  return "tuned-" + device.uuid + "-" + hexadecimal(h.a());
}

} // namespace

void load_choices(const Target& device) {
  state_of(device);
}

namespace {

// The choice for a problem's class; null without one.
const Choice* choice_of(State& s, const Planned& p) {
  if (!(s.sizes.load(std::memory_order_relaxed) & size_bit(p))) {
    return nullptr;
  }
  uint64_t key = class_of(p);
  if (s.recording.load(std::memory_order_relaxed)) {
    std::lock_guard lock(s.mutex);
    auto& r = s.recorded.try_emplace(key, Recorded{p}).first->second;
    ++r.calls;
  }
  auto& table = *s.table.load(std::memory_order_acquire);
  auto found = table.find(key);
  return found == table.end() ? nullptr : &found->second;
}

// The plan of the choice for a problem's class; without one,
// by_default(target).
template <typename Plan>
Plan chosen(const Target& device, const Planned& p, auto by_default) {
  State& s = state_of(device);
  auto* choice = choice_of(s, p);
  return choice ? std::get<Plan>(named_plan(s.target, p, choice->name()))
                : by_default(s.target);
}

} // namespace

std::optional<QuantPlan> tuned_plan(const Target& device, const QuantShape& s) {
  return chosen<std::optional<QuantPlan>>(
      device, s, [&](auto& gpu) { return plan_or_dequantize(gpu, s); });
}

GemmPlan tuned_plan(const Target& device, const GemmProblem& p) {
  return chosen<GemmPlan>(
      device, p, [&](auto& gpu) { return plan_gemm(gpu, p); });
}

NormVariant tuned_plan(const Target& device, const NormProblem& p) {
  return chosen<NormVariant>(device, p, [&](auto&) { return plan_norm(p); });
}

DecodePlan tuned_decode(const Target& device, const AttentionProblem& p) {
  return chosen<DecodePlan>(
      device, p, [&](auto& gpu) { return plan_decode(gpu, p, splits_keys()); });
}

PrefillPlan tuned_prefill(const Target& device, const AttentionProblem& p) {
  return chosen<PrefillPlan>(
      device, p, [&](auto& gpu) { return plan_prefill(gpu, p); });
}

const Target& planned_target() {
  State* s = state_.load();
  if (!s) {
    throw std::runtime_error("The device has not planned anything yet.");
  }
  return s->target;
}

void use_choices(const std::vector<Choice>& choices) {
  planned_target();
  state_.load()->use(choices);
}

void record_problems(bool on) {
  planned_target();
  State& s = *state_.load();
  std::lock_guard lock(s.mutex);
  s.recorded.clear();
  s.recording = on;
  s.update();
}

std::vector<Recorded> recorded_problems() {
  planned_target();
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

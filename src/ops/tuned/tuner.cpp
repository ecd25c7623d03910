// What `mlx-vulkan tune` asks of the library: one function that takes a request
// and gives an answer, both JSON.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "ops/tuned/tuned.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

using nlohmann::json;

json classes() {
  json found = json::array();
  for (auto& r : recorded_problems()) {
    json c{
        {"problem", text_of(r.problem)},
        {"kind", r.problem.index()},
        {"calls", r.calls}};
    for (auto& [name, value] : members_of(r.problem)) {
      c["members"][std::string(name)] = value;
    }
    if (auto* attention = std::get_if<AttentionProblem>(&r.problem)) {
      c["most_keys"] = last_of_bucket(attention->keys);
    }
    for (auto& one : candidates(planned_target(), r.problem)) {
      c["candidates"].push_back(
          {{"variant", one.name}, {"kernel", one.kernel}});
    }
    found.push_back(std::move(c));
  }
  return found;
}

// Builds kernels of the candidates of each recorded problem, together. One that
// cannot be built says so when it is used.
void prepare(Device& d) {
  std::vector<const Kernel*> kernels;
  for (auto& r : recorded_problems()) {
    for (auto& one : candidates(planned_target(), r.problem)) {
      each_variant(one.plan, [&](auto& v) {
        try {
          kernels.push_back(&d.pipelines().get(v));
        } catch (const std::exception&) { // it failed before
        }
      });
    }
  }
  for (auto* kernel : kernels) {
    d.pipelines().start(*kernel);
  }
  for (auto* kernel : kernels) {
    try {
      d.pipelines().finish(*kernel);
    } catch (const std::exception&) {
    }
  }
}

json table_of(const Caps& caps) {
  auto text = tuned_text(caps);
  auto table = json::parse(text, nullptr, false);
  return text.empty() || table.is_discarded() ? json() : table;
}

// Choices of the chip's rows, as in a table.
json rows(const Caps& caps) {
  json found = json::array();
  for (auto& text : rows_of(caps)) {
    if (choices_in(text)) {
      auto choices = json::parse(text).at("choices");
      found.insert(found.end(), choices.begin(), choices.end());
    }
  }
  return found;
}

// The head of a table of this device.
json head(const Caps& caps) {
  return {
      {"device", caps.name},
      {"class", policy_of(caps).name},
      {"uuid", caps.uuid},
      {"driver", caps.driver}};
}

// The device in use, which need not be started for that.
json table_in_use() {
  auto& p = probe();
  const Caps* caps = p.chosen < 0 ? nullptr : &p.devices[p.chosen];
  return {
      {"disabled", config().disabled("tuned")},
      {"rows", caps ? rows(*caps) : json::array()},
      {"table", caps ? table_of(*caps) : json()}};
}

json answer(const json& request) {
  auto task = request.at("do").get<std::string>();
  if (task == "table") {
    return table_in_use();
  }
  Device& d = device();
  load_choices(d.target());
  if (task == "status") {
    json found = head(d.caps());
    found["disabled"] = config().disabled("tuned");
    found["timestamps"] = d.caps().timestamps;
    found["table"] = table_of(d.caps());
    found["rows"] = rows(d.caps());
    return found;
  }
  if (task == "record") {
    record_problems(request.at("on"));
  } else if (task == "prepare") {
    prepare(d);
  } else if (task == "classes") {
    return classes();
  } else if (task == "use") {
    json table{{"choices", request.at("choices")}};
    use_choices(choices_in(table.dump()).value_or(std::vector<Choice>()));
  } else if (task == "store") {
    json table = request.at("table");
    table.update(head(d.caps()));
    return store_tuned_text(d.caps(), table.dump());
  } else if (task == "spans") {
    d.finish_submitted();
    d.profiler().measure_spans(request.at("on"));
  } else if (task == "busy") {
    d.finish_submitted();
    return d.profiler().busy();
  } else {
    throw std::invalid_argument("The tuner does not know " + task + ".");
  }
  return true;
}

} // namespace

} // namespace mlx::core::vulkan

// Valid until the next call from the same thread. Never throws; an error is an
// object with the member "error".
extern "C" __attribute__((visibility("default"))) const char* mlx_vulkan_tuner(
    const char* request) {
  static thread_local std::string text;
  try {
    text = mlx::core::vulkan::answer(nlohmann::json::parse(request)).dump();
  } catch (const std::exception& e) {
    text = nlohmann::json{{"error", e.what()}}.dump();
  }
  return text.c_str();
}

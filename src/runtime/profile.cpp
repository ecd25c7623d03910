#include "runtime/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/batch.h"
#include "runtime/rewrite_log.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {
double seconds() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}
constexpr size_t max_events = 2'000'000;

// Prints how often rules joined a record that they saw, and why they did not.
void print_rewrites() {
  for (size_t rule = 0; rule < rule_names.count; ++rule) {
    auto& row = rewrite_counters().rules[rule];
    std::string misses;
    for (size_t why = 0; why < size_t(Miss::Count); ++why) {
      if (uint64_t n = row.missed[why].load()) {
        misses += std::string(misses.empty() ? "; not: " : ", ") +
            std::to_string(n) + " " + name_of(Miss(why));
      }
    }
    auto fired = static_cast<unsigned long long>(row.fired.load());
    if (fired == 0 && misses.empty()) {
      continue;
    }
    std::fprintf(
        stderr,
        "rewrites: %s %llu%s\n",
        name_of(Rule(rule)),
        fired,
        misses.c_str());
  }
}
} // namespace

Counters& counters() {
  static auto* c = new Counters; // leaked: read at exit
  return *c;
}

Profiler::Profiler() {
  on_ = timing_ = !config().profile.empty();
  trace_ = on_ && config().profile != "1";
  seconds();
}

double Profiler::now() const {
  return on_ ? seconds() : 0;
}

void Profiler::measure_spans(bool on) {
  std::lock_guard lock(mutex_);
  spans_ = on && !timing_;
  busy_seconds_ = busy_until_ = 0;
}

// The spans of batches in flight may overlap.
void Profiler::busy(double begin, double end) {
  std::lock_guard lock(mutex_);
  busy_seconds_ += std::max(0.0, end - std::max(begin, busy_until_));
  busy_until_ = std::max(busy_until_, end);
}

double Profiler::busy() {
  std::lock_guard lock(mutex_);
  return busy_seconds_;
}

void Profiler::encoded(const Batch& batch) {
  if (!trace_) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (events_.size() < max_events) {
    events_.push_back(
        {{"encode " + std::to_string(batch.records.size())},
         0,
         batch.encode_begin,
         seconds()});
  }
}

void Profiler::recorded(double begin, double end, size_t records) {
  if (!on_) {
    return;
  }
  std::lock_guard lock(mutex_);
  record_seconds_ += end - begin;
  if (trace_ && events_.size() < max_events) {
    events_.push_back({{"record " + std::to_string(records)}, 1, begin, end});
  }
}

void Profiler::kernel(Profiled record, double begin, double end) {
  std::lock_guard lock(mutex_);
  auto& row = rows_[record.name];
  row.calls++;
  row.bytes += record.bytes;
  row.seconds += end - begin;
  if (trace_ && events_.size() < max_events) {
    if (gpu_epoch_ < 0) {
      gpu_epoch_ = begin - seconds(); // the clocks differ by a constant
    }
    events_.push_back(
        {std::move(record), 2, begin - gpu_epoch_, end - gpu_epoch_});
  }
}

void Profiler::write_trace() const {
  nlohmann::json trace = nlohmann::json::array();
  const char* tracks[] = {"encode (CPU)", "record (CPU)", "GPU"};
  for (int t = 0; t < 3; ++t) {
    trace.push_back(
        {{"name", "thread_name"},
         {"ph", "M"},
         {"pid", 1},
         {"tid", t},
         {"args", {{"name", tracks[t]}}}});
  }
  for (const auto& e : events_) {
    trace.push_back(
        {{"name", e.record.name},
         {"ph", "X"},
         {"pid", 1},
         {"tid", e.track},
         {"ts", e.begin * 1e6},
         {"dur", (e.end - e.begin) * 1e6},
         {"args",
          {{"bytes", e.record.bytes},
           {"flops", e.record.flops},
           {"matrix_units", e.record.matrix_units}}}});
  }
  std::ofstream file(config().profile);
  file << nlohmann::json{{"traceEvents", std::move(trace)}};
  if (!file.flush()) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] The trace cannot be written to MLX_VK_PROFILE=%s.\n",
        config().profile.c_str());
  }
}

void Profiler::report(
    const std::string& device,
    uint64_t uploaded,
    uint64_t downloaded) {
  if (!on_) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (trace_) {
    write_trace();
    return;
  }
  std::vector<std::pair<std::string, Row>> rows(rows_.begin(), rows_.end());
  std::sort(rows.begin(), rows.end(), [](auto& a, auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  double total = 0;
  for (auto& [name, row] : rows) {
    total += row.seconds;
  }
  auto& c = counters();
  std::fprintf(stderr, "\n[mlx-vulkan] profile on %s\n", device.c_str());
  std::fprintf(
      stderr,
      "%10s %8s %10s %8s  %s\n",
      "GPU ms",
      "calls",
      "us/call",
      "GB/s",
      "kernel");
  for (auto& [name, row] : rows) {
    std::fprintf(
        stderr,
        "%10.3f %8llu %10.2f %8.1f  %s\n",
        row.seconds * 1e3,
        static_cast<unsigned long long>(row.calls),
        row.seconds * 1e6 / row.calls,
        row.seconds > 0 ? row.bytes / row.seconds * 1e-9 : 0.0,
        name.c_str());
  }
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string counts = "batches " + text(c.batches) + ", submissions " +
      text(c.submissions) + ", dispatches " + text(c.dispatches) +
      ", of them split " + text(c.splits) + ", copies " + text(c.copies) +
      ", barriers " + text(c.barriers) + ", host waits " + text(c.host_waits) +
      ", decompositions " + text(c.decompositions) + "; uploaded " +
      text(uploaded) + ", downloaded " + text(downloaded) + " bytes";
  std::fprintf(
      stderr,
      "total GPU %.3f ms; recording %.3f ms of CPU; %s\n",
      total * 1e3,
      record_seconds_ * 1e3,
      counts.c_str());
  print_rewrites();
}

} // namespace mlx::core::vulkan

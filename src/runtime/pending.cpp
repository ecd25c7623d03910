#include "runtime/pending.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t none = ~0u;

struct Held {
  uint32_t record = none; // the batch is held before it; none: it can start
  const Hold* hold = nullptr; // that record's
};

Held first_held(const Batch& batch) {
  size_t may_start = batch.gate->may_start(batch.holds);
  if (may_start == batch.holds.size()) {
    return {};
  }
  auto& records = batch.records;
  auto at = std::find_if(records.begin(), records.end(), [&](auto& r) {
    return r.hold == may_start + 1;
  });
  return {
      static_cast<uint32_t>(at - records.begin()),
      batch.holds[may_start].get()};
}

// The index of the record at which the batch is cut: the held record, or the
// one after the end of a submission.
uint32_t cut_of(const Batch& batch) {
  auto& records = batch.records;
  uint32_t held = first_held(batch).record;
  for (uint32_t i = 0; i + 1 < records.size() && i < held; ++i) {
    uint32_t hold = records[i].hold;
    if (hold && batch.holds[hold - 1]->ends_submission) {
      return i + 1;
    }
  }
  return held;
}

} // namespace

void PendingQueue::push(std::unique_ptr<Batch> batch) {
  std::lock_guard lock(mutex_);
  auto& stream = streams_[batch->stream_id];
  stream.push_back({pushed_++, std::move(batch), {}});
}

bool PendingQueue::over(const Batch& batch) {
  return std::all_of(batch.waits.begin(), batch.waits.end(), [](auto& point) {
    return point.submitted();
  });
}

bool PendingQueue::ready(const Pending& pending) {
  auto& batch = *pending.batch;
  if (!over(batch)) {
    return false;
  }
  if (batch.holds.empty() || !batch.gate->error().empty()) {
    return true;
  }
  auto held = first_held(batch);
  if (held.record == none || held.record == 0) {
    return held.record == none;
  }
  return held.hold->announced_before == 0 ||
      (pending.wait && Clock::now() - pending.wait->since >= patience_);
}

bool PendingQueue::ready() {
  std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(), [&](auto& stream) {
    auto& first = *stream.second.front().batch;
    return first.holds.empty() && over(first);
  });
}

std::vector<PendingQueue::Unprepared> PendingQueue::unprepared() {
  auto is_started = [](auto& pending) {
    return pending.batch->rewritten || pending.batch->awaits;
  };
  std::lock_guard lock(mutex_);
  std::vector<Unprepared> all;
  for (auto& [id, stream] : streams_) {
    auto& first = *stream.front().batch;
    auto next = std::find_if(stream.rbegin(), stream.rend(), is_started).base();
    if (!first.prepared && over(first)) {
      all.push_back({&first, true});
      next += next == stream.begin();
    }
    for (; next != stream.end(); ++next) {
      all.push_back({next->batch.get(), false});
    }
  }
  return all;
}

std::optional<std::chrono::steady_clock::time_point>
PendingQueue::held_since() {
  std::lock_guard lock(mutex_);
  std::optional<Clock::time_point> first;
  for (auto& [id, stream] : streams_) {
    auto& wait = stream.front().wait;
    if (wait && (!first || wait->since < *first)) {
      first = wait->since;
    }
  }
  return first;
}

// Expected run time of other streams' ready batches, which are submitted first.
double PendingQueue::ready_seconds(uint32_t stream_id) {
  double seconds = 0;
  for (auto& [id, stream] : streams_) {
    auto& first = stream.front();
    if (id != stream_id && first.batch->prepared && ready(first)) {
      seconds += first.batch->seconds();
    }
  }
  return seconds;
}

// Announces the records that could start here: those which the device reaches
// soon, in batches that nothing but the gate holds.
void PendingQueue::announce(double queued) {
  std::vector<const Hold*> holds;
  Gate* gate = nullptr;
  for (auto& [id, stream] : streams_) {
    auto& batch = *stream.front().batch;
    if (batch.holds.empty() || !batch.prepared || !over(batch)) {
      continue;
    }
    gate = batch.gate.get();
    double before = queued + ready_seconds(id);
    for (const auto& r : batch.records) {
      if (r.hold) {
        auto& hold = *batch.holds[r.hold - 1];
        if (before > hold.announced_before || hold.announced_before == 0) {
          break;
        }
        holds.push_back(&hold);
      }
      before += r.seconds;
    }
  }
  if (gate) {
    gate->announce(std::move(holds));
  }
}

// Checks of a wait that lasts: processes that have ended, and the time limit.
void PendingQueue::look_for_trouble(Pending& pending) {
  auto now = Clock::now();
  auto& wait = *pending.wait;
  auto waited = now - wait.since;
  if (waited < std::chrono::milliseconds(20) ||
      now - wait.looked < std::chrono::milliseconds(20)) {
    return;
  }
  wait.looked = now;
  auto& gate = *pending.batch->gate;
  auto* hold = first_held(*pending.batch).hold;
  if (!hold) {
    return;
  }
  gate.look_for_ended(*hold);
  auto limit = std::chrono::seconds(config().timeout_s);
  if (limit.count() != 0 && waited > limit && !wait.told) {
    wait.told = true;
    auto text = gate.waits_for(*hold);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

// Takes the batch, or the records before its cut.
std::unique_ptr<Batch> PendingQueue::cut(Pending& pending, bool whole) {
  auto& batch = pending.batch;
  if (batch->holds.empty()) {
    return std::move(batch);
  }
  uint32_t record = whole ? none : cut_of(*batch);
  auto front = record == none ? std::move(batch) : split(*batch, record);
  if (!whole) {
    for (const auto& hold : front->holds) {
      front->gate->start(*hold);
    }
  }
  return front;
}

std::unique_ptr<Batch> PendingQueue::take(bool regardless, double queued) {
  std::lock_guard lock(mutex_);
  announce(queued);
  auto best = streams_.end();
  for (auto it = streams_.begin(); it != streams_.end(); ++it) {
    auto& first = it->second.front();
    if (regardless || (first.batch->prepared && ready(first))) {
      if (best == streams_.end() ||
          first.number < best->second.front().number) {
        best = it;
      }
    } else if (!first.batch->holds.empty() && over(*first.batch)) {
      first.wait = first.wait ? first.wait : Wait{};
      look_for_trouble(first);
    }
  }
  if (best == streams_.end()) {
    return nullptr;
  }
  auto& first = best->second.front();
  bool whole = regardless ||
      (!first.batch->holds.empty() && !first.batch->gate->error().empty());
  auto batch = cut(first, whole);
  if (first.batch) {
    first.wait = {}; // its next record may be held, or not
    return batch;
  }
  best->second.pop_front();
  if (best->second.empty()) {
    streams_.erase(best);
  }
  return batch;
}

} // namespace mlx::core::vulkan

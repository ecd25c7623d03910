#include "runtime/pending.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// A rendezvous is offered when the device is expected to be there in less: then
// other ranks' devices may wait for it, which they do for a second at most.
constexpr double near_seconds = 0.1;

constexpr uint32_t none = ~0u;

struct Held {
  uint32_t record = none; // before which the batch is held; none: it can go
  const Rendezvous* rendezvous = nullptr; // that record's
  bool patient() const { // what comes before it may wait a little, too
    return rendezvous->act == Act::Meet;
  }
};

Held first_held(const Batch& batch) {
  auto& group = *batch.group;
  auto next = group.next_rendezvous();
  for (const auto& m : batch.rendezvous) {
    if (!group.may_start(m, next)) {
      auto index = static_cast<uint32_t>(&m - batch.rendezvous.data()) + 1;
      auto at = std::find_if(
          batch.records.begin(), batch.records.end(), [&](auto& r) {
            return r.rendezvous == index;
          });
      return {static_cast<uint32_t>(at - batch.records.begin()), &m};
    }
    next.started(m);
  }
  return {};
}

// The record before which the batch is cut: the one that it is held for, or the
// one after what it gives, as others are told of that when it is retired.
uint32_t cut_of(const Batch& batch) {
  auto& records = batch.records;
  uint32_t held = first_held(batch).record;
  for (uint32_t i = 0; i + 1 < records.size() && i < held; ++i) {
    uint32_t rendezvous = records[i].rendezvous;
    if (rendezvous && batch.rendezvous[rendezvous - 1].act == Act::Give) {
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
  if (batch.rendezvous.empty() || !batch.group->error().empty()) {
    return true;
  }
  auto held = first_held(batch);
  if (held.record == none || held.record == 0) {
    return held.record == none;
  }
  return !held.patient() ||
      (pending.hold && Clock::now() - pending.hold->since >= patience_);
}

bool PendingQueue::ready() {
  std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(), [&](auto& stream) {
    return ready(stream.second.front());
  });
}

std::vector<Batch*> PendingQueue::unprepared() {
  std::lock_guard lock(mutex_);
  std::vector<Batch*> all;
  for (auto& [id, stream] : streams_) {
    auto& batch = *stream.front().batch;
    if (!batch.prepared && over(batch)) {
      all.push_back(&batch);
    }
  }
  return all;
}

std::optional<std::chrono::steady_clock::time_point>
PendingQueue::held_since() {
  std::lock_guard lock(mutex_);
  std::optional<Clock::time_point> first;
  for (auto& [id, stream] : streams_) {
    auto& hold = stream.front().hold;
    if (hold && (!first || hold->since < *first)) {
      first = hold->since;
    }
  }
  return first;
}

// Expected run time of other streams' ready batches, which are submitted first.
double PendingQueue::ready_seconds(uint32_t stream_id, bool prepared) {
  double seconds = 0;
  for (auto& [id, stream] : streams_) {
    auto& first = stream.front();
    if (id != stream_id && (first.batch->prepared || !prepared) &&
        ready(first)) {
      seconds += first.batch->seconds();
    }
  }
  return seconds;
}

// Tells other processes which rendezvous could start here: those that are next,
// one after the other, in batches that nothing else holds.
void PendingQueue::offer(bool prepared, double queued) {
  std::vector<const Rendezvous*> ours;
  HostGroup* group = nullptr;
  for (auto& [id, stream] : streams_) {
    auto& batch = *stream.front().batch;
    if (batch.rendezvous.empty() || !batch.prepared || !over(batch)) {
      continue;
    }
    group = batch.group.get();
    double before = queued + ready_seconds(id, prepared);
    for (const auto& r : batch.records) {
      if (r.rendezvous) {
        auto& m = batch.rendezvous[r.rendezvous - 1];
        if (m.act != Act::Meet || before > near_seconds) {
          break;
        }
        ours.push_back(&m);
      }
      before += r.seconds;
    }
  }
  if (!group) {
    return;
  }
  std::sort(ours.begin(), ours.end(), [](auto* a, auto* b) {
    return a->number < b->number;
  });
  uint64_t next = group->next_rendezvous().ends;
  for (auto* m : ours) {
    if (m->number != next || !group->offer(*m)) {
      break;
    }
    next++;
  }
}

// What only a wait that lasts makes worth looking at.
void PendingQueue::look_for_trouble(Pending& pending) {
  auto now = Clock::now();
  auto& hold = *pending.hold;
  auto held = now - hold.since;
  if (held < std::chrono::milliseconds(20) ||
      now - hold.looked < std::chrono::milliseconds(20)) {
    return;
  }
  hold.looked = now;
  auto& group = *pending.batch->group;
  auto* rendezvous = first_held(*pending.batch).rendezvous;
  if (!rendezvous) {
    return;
  }
  group.look_for_ended(*rendezvous);
  auto limit = std::chrono::seconds(config().timeout_s);
  if (limit.count() != 0 && held > limit && !hold.told) {
    hold.told = true;
    auto text = group.waits_for(*rendezvous);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

// The batch, or its first records.
std::unique_ptr<Batch> PendingQueue::cut(Pending& pending, bool whole) {
  auto& batch = pending.batch;
  if (batch->rendezvous.empty()) {
    return std::move(batch);
  }
  uint32_t record = whole ? none : cut_of(*batch);
  auto front = record == none ? std::move(batch) : split(*batch, record);
  if (!whole) {
    for (const auto& m : front->rendezvous) {
      front->group->pass(m);
    }
  }
  return front;
}

std::unique_ptr<Batch>
PendingQueue::take(bool regardless, bool prepared, double queued) {
  std::lock_guard lock(mutex_);
  offer(prepared, queued);
  auto best = streams_.end();
  for (auto it = streams_.begin(); it != streams_.end(); ++it) {
    auto& first = it->second.front();
    bool compiles = prepared && !first.batch->prepared;
    if (regardless || (!compiles && ready(first))) {
      if (best == streams_.end() ||
          first.number < best->second.front().number) {
        best = it;
      }
    } else if (!first.batch->rendezvous.empty() && over(*first.batch)) {
      first.hold = first.hold ? first.hold : Hold{};
      look_for_trouble(first);
    }
  }
  if (best == streams_.end()) {
    return nullptr;
  }
  auto& first = best->second.front();
  bool whole = regardless ||
      (!first.batch->rendezvous.empty() &&
       !first.batch->group->error().empty());
  auto batch = cut(first, whole);
  if (first.batch) {
    first.hold = {}; // held again, or not, before its next rendezvous
    return batch;
  }
  best->second.pop_front();
  if (best->second.empty()) {
    streams_.erase(best);
  }
  return batch;
}

} // namespace mlx::core::vulkan

#include "runtime/pending.h"

#include <algorithm>

namespace mlx::core::vulkan {

void PendingQueue::push(std::unique_ptr<Batch> batch) {
  std::lock_guard lock(mutex_);
  auto& stream = streams_[batch->stream_id];
  stream.push_back({pushed_++, std::move(batch)});
}

bool PendingQueue::ready(const Batch& batch) {
  return std::all_of(batch.waits.begin(), batch.waits.end(), [](auto& point) {
    return point.submitted();
  });
}

bool PendingQueue::ready() {
  std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(), [](auto& stream) {
    return ready(*stream.second.front().batch);
  });
}

std::unique_ptr<Batch> PendingQueue::take(bool regardless) {
  std::lock_guard lock(mutex_);
  auto best = streams_.end();
  for (auto it = streams_.begin(); it != streams_.end(); ++it) {
    auto& first = it->second.front();
    if ((regardless || ready(*first.batch)) &&
        (best == streams_.end() ||
         first.number < best->second.front().number)) {
      best = it;
    }
  }
  if (best == streams_.end()) {
    return nullptr;
  }
  auto batch = std::move(best->second.front().batch);
  best->second.pop_front();
  if (best->second.empty()) {
    streams_.erase(best);
  }
  return batch;
}

} // namespace mlx::core::vulkan

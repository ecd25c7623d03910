#include "runtime/batch.h"

namespace mlx::core::vulkan {

std::unique_ptr<Batch> BatchPool::take(uint32_t stream_id) {
  auto batch = std::make_unique<Batch>(stream_id);
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto& vectors = free_.back();
      batch->records = std::move(vectors.records);
      batch->accesses = std::move(vectors.accesses);
      batch->keeper.use(std::move(vectors.kept));
      free_.pop_back();
    }
  }
  batch->records.reserve(128);
  batch->accesses.reserve(512);
  return batch;
}

void BatchPool::give_back(std::unique_ptr<Batch> batch) {
  Vectors vectors{
      std::move(batch->records),
      std::move(batch->accesses),
      batch->keeper.release()};
  batch.reset();
  vectors.records.clear();
  vectors.accesses.clear();
  if (vectors.records.capacity() > most_records) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (free_.size() < most) {
    free_.push_back(std::move(vectors));
  }
}

} // namespace mlx::core::vulkan

#include "runtime/batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mlx::core::vulkan {

Grid linear(uint64_t groups) {
  constexpr uint64_t most = 65535;
  if (groups <= most) {
    return {static_cast<uint32_t>(groups), 1, 1};
  }
  // Short rows: what a long dispatch is cut into (runtime/work.h).
  constexpr uint64_t row = 1024;
  uint64_t x = groups <= row * most ? row : most;
  uint64_t y = ceil_div(groups, x);
  uint64_t z = 1;
  if (y > most) {
    z = ceil_div(y, most);
    y = ceil_div(y, z);
  }
  return {
      static_cast<uint32_t>(x),
      static_cast<uint32_t>(y),
      static_cast<uint32_t>(z)};
}

std::byte* room_for_args(std::vector<std::byte>& arguments, Record& r) {
  if (!r.args_in_memory) {
    return r.pushed;
  }
  r.args_offset = static_cast<uint32_t>(arguments.size());
  arguments.resize(round_up(arguments.size() + r.args_size, 16));
  return arguments.data() + r.args_offset;
}

double Batch::seconds() const {
  double all = 0;
  for (const auto& r : records) {
    all += r.seconds;
  }
  return all;
}

std::unique_ptr<Batch> split(Batch& batch, uint32_t record) {
  auto front = std::make_unique<Batch>(batch.stream_id);
  front->completion = batch.completion->of_part();
  front->gate = batch.gate;
  front->rewritten = batch.rewritten;
  front->prepared = batch.prepared;
  front->encode_begin = batch.encode_begin;
  front->waits = std::move(batch.waits);
  front->follows = std::exchange(batch.follows, front->completion);
  front->host_copies = std::move(batch.host_copies);
  front->flushes = std::move(batch.flushes);
  batch.waits.clear();
  batch.host_copies.clear();
  batch.flushes.clear();
  auto& records = batch.records;
  auto begin = records.begin(), cut = begin + record;
  front->records.assign(begin, cut);
  records.erase(begin, cut);
  uint32_t held = 0;
  for (auto& r : front->records) {
    held = std::max(held, r.hold);
    // Rewrites append accesses, so that those of a record are anywhere.
    auto access = batch.accesses.begin() + r.first_access;
    r.first_access = static_cast<uint32_t>(front->accesses.size());
    front->accesses.insert(
        front->accesses.end(), access, access + r.access_count);
    if (r.args_in_memory) {
      auto* args = batch.arguments.data() + r.args_offset;
      std::memcpy(room_for_args(front->arguments, r), args, r.args_size);
    }
  }
  auto& holds = batch.holds;
  front->holds.assign(holds.begin(), holds.begin() + held);
  holds.erase(holds.begin(), holds.begin() + held);
  for (auto& r : records) {
    r.hold -= r.hold ? held : 0;
  }
  return front;
}

std::unique_ptr<Batch> BatchPool::take(uint32_t stream_id) {
  auto batch = std::make_unique<Batch>(stream_id);
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto& vectors = free_.back();
      batch->records = std::move(vectors.records);
      batch->accesses = std::move(vectors.accesses);
      batch->arguments = std::move(vectors.arguments);
      batch->pins.use(std::move(vectors.kept));
      free_.pop_back();
    }
  }
  batch->records.reserve(128);
  batch->accesses.reserve(512);
  batch->arguments.reserve(16384);
  return batch;
}

void BatchPool::give_back(std::unique_ptr<Batch> batch) {
  Vectors vectors{
      std::move(batch->records),
      std::move(batch->accesses),
      std::move(batch->arguments),
      batch->pins.release()};
  batch.reset();
  vectors.records.clear();
  vectors.accesses.clear();
  vectors.arguments.clear();
  if (vectors.records.capacity() > most_records) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (free_.size() < most) {
    free_.push_back(std::move(vectors));
  }
}

} // namespace mlx::core::vulkan

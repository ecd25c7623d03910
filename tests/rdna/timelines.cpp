#include "timelines.h"

#include <algorithm>

namespace rdna {

uint32_t Timelines::create(bool signaled) {
  std::lock_guard guard(lock_);
  timelines_[next_] = {signaled, signaled, {}};
  return next_++;
}

void Timelines::destroy(uint32_t handle) {
  std::lock_guard guard(lock_);
  timelines_.erase(handle);
}

void Timelines::promise(Point point) {
  std::lock_guard guard(lock_);
  auto& promised = timelines_[point.handle].promised;
  promised = std::max(promised, point.value);
  changed_.notify_all();
}

void Timelines::signal(Point point) {
  std::lock_guard guard(lock_);
  signal_locked(point);
  changed_.notify_all();
}

void Timelines::signal_locked(Point point) {
  auto& line = timelines_[point.handle];
  line.promised = std::max(line.promised, point.value);
  line.signaled = std::max(line.signaled, point.value);
  while (!line.transfers.empty() &&
         line.transfers.begin()->first <= line.signaled) {
    Point to = line.transfers.begin()->second;
    line.transfers.erase(line.transfers.begin());
    signal_locked(to);
  }
}

void Timelines::reset(uint32_t handle) {
  std::lock_guard guard(lock_);
  timelines_[handle] = {};
}

bool Timelines::transfer(Point from, Point to) {
  std::lock_guard guard(lock_);
  auto& line = timelines_[from.handle];
  if (line.promised < from.value) {
    return false;
  }
  auto& promised = timelines_[to.handle].promised;
  promised = std::max(promised, to.value);
  if (line.signaled >= from.value) {
    signal_locked(to);
  } else {
    line.transfers.emplace(from.value, to);
  }
  changed_.notify_all();
  return true;
}

std::optional<uint64_t> Timelines::value(uint32_t handle, bool promised) {
  std::lock_guard guard(lock_);
  auto found = timelines_.find(handle);
  if (found == timelines_.end()) {
    return std::nullopt;
  }
  return promised ? found->second.promised : found->second.signaled;
}

std::optional<uint32_t> Timelines::wait(
    std::span<const Point> points,
    bool all,
    For what,
    int64_t deadline) {
  std::unique_lock guard(lock_);
  uint32_t first = 0;
  auto reached = [&] {
    uint32_t count = 0;
    for (uint32_t i = uint32_t(points.size()); i-- > 0;) {
      auto& line = timelines_[points[i].handle];
      auto value = what == For::Promise ? line.promised : line.signaled;
      if (value >= points[i].value) {
        ++count;
        first = i;
      }
    }
    return all ? count == points.size() : count > 0;
  };
  // steady_clock is CLOCK_MONOTONIC. A deadline without end overflows it.
  constexpr int64_t hour = 3'600'000'000'000;
  auto now = std::chrono::steady_clock::now();
  int64_t left = deadline - now.time_since_epoch().count();
  while (!reached()) {
    if (left <= 0) {
      return std::nullopt;
    }
    auto pause = std::chrono::nanoseconds(std::min(left, hour));
    changed_.wait_until(guard, now + pause);
    now = std::chrono::steady_clock::now();
    left = deadline - now.time_since_epoch().count();
  }
  return first;
}

} // namespace rdna

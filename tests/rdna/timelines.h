// Synchronization objects of the kernel driver (syncobjs). Each is a timeline
// of points: the last that a submission will signal, and the last that was
// signaled. A binary object is a timeline of which only point 1 is used.
//
// Threads: all members may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace rdna {

struct Point {
  uint32_t handle = 0;
  uint64_t value = 1;
};

class Timelines {
 public:
  uint32_t create(bool signaled);
  void destroy(uint32_t handle);

  // A submission will signal the point.
  void promise(Point point);
  void signal(Point point);
  // As if it was new: nothing is promised.
  void reset(uint32_t handle);
  // Signals `to` once `from` is signaled, which must have been promised.
  bool transfer(Point from, Point to);

  // The last signaled point, or the last promised one.
  std::optional<uint64_t> value(uint32_t handle, bool promised);

  enum class For : uint8_t { Promise, Signal };
  // Waits for all points, or for any; the index of the first that was reached.
  // `deadline`: nanoseconds of CLOCK_MONOTONIC. Nothing if it passes.
  std::optional<uint32_t>
  wait(std::span<const Point> points, bool all, For what, int64_t deadline);

 private:
  struct Timeline {
    uint64_t promised = 0, signaled = 0;
    std::multimap<uint64_t, Point> transfers; // by the point that starts them
  };

  void signal_locked(Point point);

  std::mutex lock_;
  std::condition_variable changed_;
  std::map<uint32_t, Timeline> timelines_;
  uint32_t next_ = 1;
};

} // namespace rdna

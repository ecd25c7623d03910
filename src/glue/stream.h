// MLX's streams over the runtime: one Encoder per stream and thread, plus a
// process-wide map for streams made to be used from any thread.
#pragma once

#include "mlx/stream.h"
#include "ops/launch.h"
#include "runtime/memory.h"

namespace mlx::core::vulkan {

// Where allocator::malloc puts new arrays on this thread: host memory, except
// inside gpu::eval. Nests.
class PlacementScope {
 public:
  explicit PlacementScope(Placement p);
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;

 private:
  Placement before_;
};
Placement current_placement();

// Submits all open batches of this thread and waits until the work of `s` is
// done and retired. Throws std::runtime_error with the stream's error.
void synchronize_for_host(Stream s);

// Submits all open batches of this thread.
void submit_thread_batches();

// Every CPU stream that works beside the GPU is waited for at exit.
void note_cpu_stream(Stream s);

} // namespace mlx::core::vulkan

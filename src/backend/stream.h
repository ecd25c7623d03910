// MLX's streams over the runtime: where new arrays live, and what exit waits
// for. stream_encoder.h has their encoders.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/stream.h"
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

// The allocator's thread ends (deferred_free.h), at exit.
void stop_deferred_free();

// Every CPU stream that works beside the GPU is waited for at exit.
void note_cpu_stream(Stream s);

} // namespace mlx::core::vulkan

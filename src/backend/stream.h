// MLX's streams over the runtime: where new arrays live, how one is evaluated,
// and what exit waits for. stream_encoder.h has their encoders.
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

// Before an array that reads `in`, which has an event: throws its producer's
// error, and lets the host's side be the valid one where that is a CPU stream.
void follow(const array& in, StreamEncoder& encoder);
// Encodes the primitive of arr and its siblings on the stream of `encoder`, and
// closes the batch when that is due. The caller has waited for events of the
// inputs, has followed these, and holds a PlacementScope.
void evaluate(array& arr, StreamEncoder& encoder);
// Encodes a primitive whose arrays belong to no graph.
void evaluate(
    Primitive& primitive,
    std::vector<array>& inputs,
    std::vector<array>& outputs,
    StreamEncoder& encoder);
// Whether `p`, which makes `arr`, begins a half of a transformer's layer or of
// a similar block, so that rewrite.h joins no records across it. Norms of
// heads, which have one axis more, lie within a half.
bool behind_seam(const Primitive& p, const array& arr);
// How many operations evaluating the primitive encodes: those of a traced step,
// 0 for an output of one, 1 for any other.
uint32_t operations_of(const Primitive& primitive);
// The arrays that an eval of `outputs` would encode, in its order, one of each
// group of siblings. Empty if the graph does not belong to `stream` alone.
std::vector<array> eval_order(std::vector<array> outputs, Stream stream);
// As MLX's eval: waits while too many batches or bytes are under way.
void wait_for_room(Stream stream);

// Ends the allocator's thread at exit (memory_cache.h).
void stop_memory_cache();

// Waits at exit for all CPU streams that work beside the GPU.
void note_cpu_stream(Stream s);

} // namespace mlx::core::vulkan

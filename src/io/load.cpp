// Load on a GPU stream. A file's bytes go to the device through a few blocks of
// host memory (runtime/staging.h), so that weights are held once and none are
// left to upload when the first token is due. MLX's threads for files fill the
// blocks while the caller encodes; each is copied by a batch of its own, which
// starts once the block is full. An error of the file fails the batch.
#include "io/load.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "backend/stream.h"
#include "backend/weights.h"
#include "mlx/allocator.h"
#include "mlx/io/load.h"
#include "mlx/primitives.h"
#include "ops/quant/expert_cache.h"
#include "runtime/device.h"
#include "runtime/staging.h"

namespace mlx::core {

namespace {

// Python's file objects have one position.
bool in_parallel(const io::Reader& reader) {
  return dynamic_cast<const io::ParallelFileReader*>(&reader) ||
      dynamic_cast<const vulkan::ParallelReader*>(&reader);
}

// Reverses the bytes of each item.
void swap_bytes(char* data, size_t size, size_t itemsize) {
  for (size_t i = 0; i < size; i += itemsize) {
    std::reverse(data + i, data + i + itemsize);
  }
}

} // namespace

void Load::eval_gpu(const std::vector<array>&, array& out) {
  using vulkan::Staging;
  auto& enc = vulkan::encoder(stream()).raw();
  auto place = vulkan::place_weight(out);
  {
    vulkan::PlacementScope placement(place.placement);
    out.set_data(allocator::malloc(out.nbytes()));
  }
  auto& buffer = *vulkan::buffer_of(out);
  if (place.slots > 0) {
    vulkan::cache_experts(out, place.slots);
  }
  for (size_t begin = 0; begin < out.nbytes(); begin += Staging::block_size) {
    size_t size = std::min(Staging::block_size, out.nbytes() - begin);
    auto block = enc.device().staging().take();
    auto full = std::make_shared<vulkan::EventState>();
    auto read = [=,
                 reader = reader_,
                 offset = offset_ + begin,
                 swapped = swap_endianness_ ? out.itemsize() : 0] {
      auto* data = static_cast<char*>(block->mapped);
      std::string error;
      try {
        reader->read(data, size, offset);
      } catch (const std::exception& e) {
        error = e.what();
      }
      if (swapped) {
        swap_bytes(data, size, swapped);
      }
      full->signal_host(1, error);
    };
    io::thread_pool().enqueue(std::move(read));
    if (!in_parallel(*reader_)) {
      full->wait(1);
    }
    enc.fill(buffer, begin, size, std::move(block), {full, 1, nullptr});
    enc.keep(buffer, out.data_shared_ptr());
    enc.close_and_go_on({});
  }
}

} // namespace mlx::core

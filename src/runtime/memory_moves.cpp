// Arrays that move from a full card to the host's memory, where kernels read
// them in place: docs/dev/memory.md, "Larger than the card".
//
// Other threads encode meanwhile. Buffer::use() records the serial number of
// the latest batch that uses the buffer, before settled() is looked at; the
// mover clears settled() and then looks at the number, so that one of them sees
// the other. Only buffers whose number is below that of every unfinished batch
// are copied, and whoever uses, frees or reads one cancels its move. Weights
// stay: every step would read them over the bus. A KV cache that grows returns
// to the card, since MLX-LM makes a new array each time.
#include <algorithm>
#include <utility>

#include "runtime/device.h"
#include "runtime/mirror.h"

namespace mlx::core::vulkan {

namespace {

// Bytes of a turn, and the number of later batches after which an array counts
// as idle. A decode step is a few batches, a chunk of a prompt some dozen.
constexpr uint64_t turn_bytes = 64 << 20;
constexpr uint64_t idle_batches = 256;

// Also a batch that was never closed, whose stream is gone.
bool is_over(const std::pair<uint64_t, std::shared_ptr<Completion>>& batch) {
  return batch.second->retired() || batch.second.use_count() == 1;
}

} // namespace

struct Memory::Move {
  Buffer* buffer; // lives as long as mirror->moving
  std::shared_ptr<Buffer::Mirror> mirror;
  Allocation host;
  uint32_t stream;
};

uint64_t Memory::begin_batch(const std::shared_ptr<Completion>& batch) {
  if (types_.in_place.empty()) {
    return 0;
  }
  std::lock_guard lock(batches_mutex_);
  std::erase_if(unfinished_, is_over);
  unfinished_.emplace_back(++last_serial_, batch);
  return last_serial_;
}

std::vector<Memory::Move> Memory::begin_moves(Batch& batch, uint64_t bytes) {
  std::vector<Move> moves;
  std::lock_guard lock(mirror_mutex_);
  uint64_t before;
  {
    std::lock_guard batches(batches_mutex_);
    before = last_serial_ - std::min(last_serial_, idle_batches);
    std::erase_if(unfinished_, is_over);
    for (auto& batch : unfinished_) {
      before = std::min(before, batch.first);
    }
  }
  std::vector<std::pair<uint64_t, Buffer*>> idle;
  for (auto* b : movable_) {
    auto& m = *b->mirror_;
    uint64_t used = b->used_;
    if (used < before && m.moving == 0 && m.device_valid && !m.host_valid &&
        !m.host.buffer && !m.cpu_writer.event &&
        b->kind == BufferKind::DeviceBorn) {
      idle.emplace_back(used, b);
    }
  }
  std::sort(idle.begin(), idle.end());
  uint64_t moved = 0;
  for (auto [used, b] : idle) {
    if (moved >= bytes || !may_spill(moved + b->size)) {
      break;
    }
    // Whoever has called use() since is seen; later ones see this.
    b->settled_ = false;
    if (b->used_ != used) {
      continue;
    }
    Move move{b, b->mirror_, {}, batch.stream_id};
    try {
      move.host =
          allocations_.create(b->size, types_.in_place, HostUse::Array, false);
    } catch (const OutOfMemory&) {
      break;
    }
    auto& rates = device_.work_limit().rates;
    append_copy(batch, b->device_, move.host, b->size, rates);
    move.mirror->moving = move.stream;
    moved += b->size;
    moves.push_back(std::move(move));
  }
  return moves;
}

// Under mirror_mutex_.
void Memory::end_move(Move& move, bool copied) {
  auto& m = *move.mirror;
  if (m.moving == move.stream && copied) {
    auto& b = *move.buffer;
    std::swap(b.device_, move.host);
    b.kind = BufferKind::Shared;
    spilled(b);
  }
  m.moving = m.moving == move.stream ? 0 : m.moving;
  if (!device_.timeline().runs_unwatched()) { // else both may be in use
    free(move.host);
    free(m.orphan);
  }
}

bool Memory::move_idle(uint64_t bytes) {
  auto batch = std::make_unique<Batch>(next_own_stream());
  auto moves = begin_moves(*batch, std::max(bytes, turn_bytes));
  if (moves.empty()) {
    return false;
  }
  auto done = device_.submit(std::move(batch));
  done->wait();
  bool good = done->error().empty();
  std::lock_guard lock(mirror_mutex_);
  for (auto& move : moves) {
    end_move(move, good);
  }
  return good;
}

} // namespace mlx::core::vulkan

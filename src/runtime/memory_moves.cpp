// Arrays that move from a full card to the host's memory, where kernels read
// them in place: docs/dev/memory.md, "Larger than the card".
//
// Other threads encode meanwhile. Buffer::use() records the serial number of
// the latest batch that uses the buffer, before settled() is looked at; the
// mover clears settled() and then looks at the number, so that one of them sees
// the other. Only buffers whose number is below that of every unfinished batch
// are copied, and whoever uses, frees or reads one cancels its move. Weights
// move last, since every step reads them, but once: a prompt reads and writes
// what it makes many times.
//
// What moved returns while the card has more room than steps are left beside
// weights. Its memory in the host then becomes the host side of its mirror,
// from which each batch uploads it until one is on the queue, and which is
// freed after that.
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "runtime/device.h"
#include "runtime/mirror.h"

namespace mlx::core::vulkan {

namespace {

// Bytes of a turn, and the number of later batches after which an array counts
// as idle. A decode step is a few batches, a chunk of a prompt some dozen. A
// card that was full is soon full again: nothing returns for some seconds.
constexpr uint64_t turn_bytes = 64 << 20;
constexpr uint64_t idle_batches = 64, return_batches = 256;
constexpr uint64_t least_weight = 4 << 20; // products copy no scales first
// The part of the budget that what returns leaves free: most of what weights
// leave to steps.
constexpr uint64_t kept_free_part = 8;

} // namespace

struct Memory::Move {
  Buffer* buffer; // lives as long as mirror->moving
  std::shared_ptr<Buffer::Mirror> mirror;
  Allocation host;
  uint32_t stream;
  Spill how;
};

void Memory::begin_batch(Batch& batch) {
  if (!types_.in_place.empty()) {
    std::lock_guard lock(batches_mutex_);
    std::erase_if(unfinished_, std::mem_fn(&Unfinished::is_over));
    batch.serial = ++last_serial_;
    unfinished_.push_back({batch.serial, batch.stream_id, batch.completion});
  }
}

std::vector<Memory::Move>
Memory::begin_moves(Batch& batch, uint64_t bytes, Spill how) {
  bool lately = how == Spill::Lately;
  std::vector<Move> moves;
  std::lock_guard lock(mirror_mutex_);
  uint64_t begun, recent; // all batches before `begun` are finished
  {
    std::lock_guard batches(batches_mutex_);
    begun = last_serial_ + 1;
    recent = last_serial_ - std::min(last_serial_, idle_batches);
    std::erase_if(unfinished_, std::mem_fn(&Unfinished::is_over));
    for (auto& batch : unfinished_) {
      begun = std::min(begun, batch.serial);
    }
    recent = lately ? begun : recent;
  }
  std::vector<std::tuple<bool, uint64_t, Buffer*>> idle;
  for (auto* b : movable_) {
    auto& m = *b->mirror_;
    uint64_t used = b->used_;
    bool rests =
        used < begun && (b->weight_ ? b->size >= least_weight : used < recent);
    if (rests && m.moving == 0 && m.sides == Sides::Device && !m.host.buffer &&
        !m.cpu_writer.event && b->kind == BufferKind::DeviceBorn) {
      idle.emplace_back(b->weight_, used, b);
    }
    bool counts = lately
        ? b->spill_ == Spill::Made && b->size <= room_to_spill(how)
        : b->spill_ != Spill::No;
    if (counts && !b->weight_ && used < recent) { // it rests where it is
      end_spill(*b);
      b->spill_ = how;
      spilled_[size_t(how)] += b->size;
    }
  }
  std::sort(idle.begin(), idle.end());
  uint64_t moved = 0, weights = 0;
  uint64_t room = room_to_spill();
  uint64_t room_idle = lately ? room_to_spill(how) : room_for_idle();
  for (auto [weight, used, b] : idle) {
    uint64_t least = weight ? bytes : std::max(bytes, turn_bytes);
    uint64_t after = (weight ? weights : moved) + b->size;
    if (moved >= least || after > (weight ? room : room_idle)) {
      continue;
    }
    // Whoever has called use() since is seen; later ones see this.
    b->settled_ = false;
    if (b->used_ != used) {
      continue;
    }
    auto spill = weight ? Spill::Made : how;
    Move move{b, b->mirror_, {}, batch.stream_id, spill};
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
    weights += weight ? b->size : 0;
    moves.push_back(std::move(move));
  }
  return moves;
}

uint64_t Memory::room_for_idle() {
  uint64_t most = budget_in_place() / 2;
  uint64_t all = 0;
  for (auto& bytes : spilled_) {
    all += bytes;
  }
  return most - std::min(most, all);
}

void Memory::spilled(Buffer& b, Spill how) {
  std::lock_guard lock(batches_mutex_);
  returns_from_ = last_serial_ + return_batches;
  b.spill_ = how;
  spilled_[size_t(how)] += b.size;
  in_place_bytes += b.size;
}

void Memory::end_spill(Buffer& b) {
  auto how = std::exchange(b.spill_, Spill::No);
  spilled_[size_t(how)] -= how == Spill::No ? 0 : b.size;
}

void Memory::end_move(Move& move, bool copied) {
  auto& m = *move.mirror;
  if (m.moving == move.stream && copied) {
    auto& b = *move.buffer;
    std::swap(b.device_, move.host);
    b.kind = BufferKind::Shared;
    spilled(b, move.how);
  }
  m.moving = m.moving == move.stream ? 0 : m.moving;
  if (!device_.timeline().runs_unwatched()) { // else both may be in use
    free(move.host);
    if (m.moving == Buffer::Mirror::freed) {
      free(m.host);
    }
  }
}

void Memory::bring_back(Batch& batch, Buffer& b) {
  auto& m = *b.mirror_;
  if (!b.listed_ || m.sides != Sides::Device || m.touched || m.pointers > 0 ||
      !m.arrived() || m.cpu_writer.event || batch.serial < returns_from_ ||
      (m.last_write && !m.last_write->reached())) {
    return;
  }
  if (batch.serial != returns_in_) {
    returns_in_ = batch.serial;
    returned_ = 0;
  }
  if (returned_ > 0 && returned_ + b.size > turn_bytes) {
    return;
  }
  {
    // Batches of other streams that are not on the queue yet may use the old
    // memory; those of this stream are submitted before this batch.
    std::lock_guard batches(batches_mutex_);
    std::erase_if(unfinished_, std::mem_fn(&Unfinished::is_over));
    for (auto& other : unfinished_) {
      if (other.stream_id != batch.stream_id &&
          !other.completion->submitted()) {
        return;
      }
    }
  }
  Allocation side;
  try {
    uint64_t spare = budget() / kept_free_part;
    if (allocations_.room(types_.device) >= b.size + spare) {
      side = allocations_.create(b.size, types_.device, HostUse::None, false);
    }
  } catch (const OutOfMemory&) { // the driver's budget is no promise
  }
  if (!side.buffer) {
    returns_from_ = batch.serial + return_batches;
    return;
  }
  m.host = std::exchange(b.device_, side);
  b.kind = BufferKind::DeviceBorn;
  end_spill(b);
  in_place_bytes -= b.size;
  returned_ += b.size;
  m.sides = transition(m.sides, Use::Return).next;
  append_upload(batch, b, false);
  m.uploads = {batch.completion};
}

bool Memory::move_arrays(uint64_t bytes, Spill how) {
  auto batch = std::make_unique<Batch>(next_own_stream());
  auto moves = begin_moves(*batch, bytes, how);
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

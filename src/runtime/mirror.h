// The mirror of a buffer: its host side, and which sides are valid. Free of
// MLX.
#pragma once

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "runtime/batch.h"
#include "runtime/memory.h"
#include "runtime/work.h"

namespace mlx::core::vulkan {

// Which sides of a buffer are valid in program order, that is once all batches
// that were encoded so far are done.
enum class Sides : uint8_t {
  Neither, // it is new
  Host,
  Both,
  Device,
  Coming, // Device, and an open or submitted batch downloads it
  Returned, // Both, but the host's caches have not seen what the device wrote
};
constexpr size_t mirror_states = 6;

enum class Use : uint8_t {
  Host, // the host asks for a pointer, through which it may write
  Read, // a batch reads it, or writes a part
  ReadCopy, // the same while the host cannot have changed what is downloaded
  Write, // a batch writes it; for a part, after Read
  Download, // a fence makes it available to a CPU stream
  Uploaded, // batches that uploaded it are retired, and nobody uses its host
            // side
  Return, // the card has room again for what moved to the host's memory
  FetchFailed, // the copy that the host waited for
};
constexpr size_t mirror_uses = 8;

enum class Act : uint8_t {
  Never, // this use cannot happen in this state
  None,
  Upload, // to the device side, in this batch
  UploadAgain, // unless such a batch is on the queue or this one does it
  Fetch, // to the host side, which waits for it
  Download, // to the host side, in this batch
  DownloadAgain, // unless such a batch is on the queue or this one does it
  Invalidate, // the host's caches
  FreeHost,
};

struct Transition {
  Act act = Act::Never;
  Sides next = Sides::Neither;
};

// One memory for both sides takes the same steps: there uploads are flushes and
// downloads invalidations.
// clang-format off
constexpr auto mirror_table = [] {
  using enum Sides;
  using enum Act;
  constexpr Transition never;
  return std::array<std::array<Transition, mirror_uses>, mirror_states>{{
  // Use::Host            Read                     ReadCopy         Write           Download                   Uploaded            Return              FetchFailed
  {{{None, Host},       {None, Neither},         never,           {None, Device}, {None, Neither},           never,              never,              never}}, // Neither
  {{{None, Host},       {Upload, Both},          {None, Both},    {None, Device}, {None, Host},              {None, Host},       never,              {None, Device}}}, // Host
  {{{None, Host},       {UploadAgain, Both},     {None, Both},    {None, Device}, {None, Both},              {FreeHost, Device}, never,              {None, Device}}}, // Both
  {{{Fetch, Host},      {None, Device},          {None, Device},  {None, Device}, {Download, Coming},        {FreeHost, Device}, {Upload, Returned}, {None, Device}}}, // Device
  {{{None, Host},       {None, Coming},          {None, Coming},  {None, Device}, {DownloadAgain, Coming},   {None, Coming},     never,              {None, Coming}}}, // Coming
  {{{Invalidate, Host}, {UploadAgain, Returned}, never,           {None, Device}, {Invalidate, Both},        {FreeHost, Device}, never,              {None, Device}}}, // Returned
  }};
}();
// clang-format on

inline Transition transition(Sides sides, Use use) {
  auto step = mirror_table[size_t(sides)][size_t(use)];
  if (step.act == Act::Never) {
    throw std::logic_error(
        "[vulkan] An array in state " + std::to_string(int(sides)) +
        " cannot have use " + std::to_string(int(use)) + " (mirror.h).");
  }
  return step;
}

// Under mirror_mutex_.
struct Buffer::Mirror {
  Sides sides = Sides::Neither;
  // The host's cache may hold lines that it wrote and that were not flushed.
  bool touched = false;
  Allocation host; // mapped; or only `heap` below
  void* heap = nullptr; // malloc'ed before the device started
  // Pointers given to the host; from kept_pointers on its side is kept.
  uint32_t pointers = 0;
  // The number of unretired batches that read a host side which is then freed:
  // with one memory, or of an array that has returned to the card.
  uint32_t uploading = 0;
  // Batches that upload the buffer and may not be on the queue yet.
  std::vector<std::shared_ptr<Completion>> uploads;
  std::shared_ptr<Completion> last_write;
  std::shared_ptr<Completion> download; // the batch of the last one
  // A download outside of any stream that a host reader has to wait for.
  std::shared_ptr<Completion> fetch;
  // Signalled when a CPU stream has written the host side. Until then its
  // worker may ask for the pointer at any time.
  EventPoint cpu_writer;
  // The stream of a copy to the host's memory, which becomes the array's unless
  // somebody uses it meanwhile: then 0. If the buffer is freed, `host` has its
  // device side, which the copy reads.
  uint32_t moving = 0;
  static constexpr uint32_t freed = ~0u;

  bool host_valid() const {
    return sides == Sides::Host || sides == Sides::Both ||
        sides == Sides::Returned;
  }
  bool device_valid() const {
    return sides != Sides::Neither && sides != Sides::Host;
  }
  // Returns false while a download to the host side is under way, and after one
  // has failed.
  bool arrived() const {
    return !download || (download->reached() && download->error().empty());
  }
};

// Copies the first bytes of `src` to those from `begin` of `dst`.
void append_copy(
    Batch& batch,
    const Allocation& src,
    const Allocation& dst,
    size_t size,
    const Rates& rates,
    size_t begin = 0);

// For a copy that belongs to no stream.
inline uint32_t next_own_stream() {
  static std::atomic<uint32_t> next{0x80000000u};
  return next++;
}

// Smaller arrays of the device do not move to the host's memory.
constexpr size_t least_moved = 1 << 20; // bytes

} // namespace mlx::core::vulkan

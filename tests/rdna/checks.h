// The memory that waves reach, and what no GPU reports about its use: accesses
// outside of GEM objects and of a workgroup's shared memory, and races, within
// a workgroup and between dispatches that no barrier separates.
//
// Threads: one at a time, which holds GpuMemory::in_use().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_memory.h"
#include "memory.h"
#include "races.h"

namespace rdna {

class Counts;

class Checks : public Memory {
 public:
  Checks();

  // All earlier work of the queue ended.
  void barrier();
  // Later accesses belong to another dispatch; `name` is for messages.
  void begin_dispatch(std::string name);
  // An access of a copy: throws Fault if it is outside, or a race with an
  // earlier dispatch. The processor has waits of its own for copies, so that no
  // later dispatch races with one.
  void copy(Act act, uint64_t address, uint64_t bytes);

  // Another workgroup, whose shared memory is poisoned.
  void begin_group(uint32_t shared_bytes);
  // All its waves met.
  void group_barrier() {
    shared_races_.barrier();
  }

  void resolve(const Access& access, uint8_t** host) override;

 private:
  void resolve_shared(const Access& access, uint8_t** host);
  void resolve_global(const Access& access, uint8_t** host);
  [[noreturn]] void race(Act act, const Races::Conflict& conflict);

  GpuMemory& memory_ = gpu_memory();
  Counts* counts_;
  std::vector<uint8_t> shared_;
  Races shared_races_, global_races_;
  std::vector<std::string> dispatches_; // since the last barrier
};

} // namespace rdna

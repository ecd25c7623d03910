// A wave: its registers, and how the dispatcher starts and runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory.h"

namespace rdna {

class Program;

// Scalar registers with a meaning, by the number that encodes them as operands
// (RDNA3 ISA, "Scalar ALU Operands").
enum : uint16_t {
  kFlatScratch = 102, // of gfx9
  kVcc = 106,
  kTtmp = 108,
  kNull = 124,
  kM0 = 125,
  kExec = 126,
  kVccz = 251,
  kExecz = 252,
  kScc = 253,
};

constexpr uint32_t kMaxLanes = 64;
constexpr uint32_t kVectorRegisters = 256;
constexpr uint32_t kHiddenRegisters = 3; // of SDWA

// What registers hold before they are written: a NaN, and no valid address.
constexpr uint32_t kPoison = 0x7fc0dead;

// Why a wave stopped.
enum class Stop : uint8_t {
  Running,
  Ended, // s_endpgm
  Barrier, // s_barrier, or s_barrier_wait of gfx12
  Paused, // the budget is used up, or s_sleep: other waves may run
};

struct Wave {
  alignas(64) uint32_t v[kVectorRegisters + kHiddenRegisters][kMaxLanes];
  alignas(64) uint32_t active[kMaxLanes]; // EXEC, all ones or 0 per lane
  uint32_t s[256];
  bool scc;
  bool all_active; // EXEC has every lane
  bool signalled; // gfx12: arrived at the barrier, has not waited yet
  bool ended;
  Stop stop; // of run()
  uint32_t lanes = 64; // 32 or 64
  uint32_t gfx = 11; // 9, 10, 11, 12
  uint32_t pc; // index of the next instruction in its Program
  uint32_t id; // number in its workgroup
  // MODE: rounding [3:0] and denormals [7:4], as RSRC1[19:12] (FLOAT_MODE).
  uint32_t mode;
  // gfx10, wave64: from this vector register on, both halves of the wave have
  // one set of 32 lanes (RDNA2 ISA, "Shared VGPRs"). start() sets none.
  uint32_t first_shared = kVectorRegisters;
  std::vector<uint8_t> scratch; // lanes * scratch_bytes, lane after lane
  uint32_t scratch_bytes = 0; // per lane
  uint64_t code; // GPU address of the program, set by run()
  Memory* memory = nullptr;

  // Poisons all registers; EXEC has the first `count` lanes. The dispatcher
  // then sets user SGPRs, VGPRs, mode and scratch.
  void start(uint32_t wave_lanes, uint32_t count);

  uint64_t exec() const {
    return lanes == 64 ? pair(kExec) : s[kExec];
  }
  void set_exec(uint64_t mask);
  // Call after writing s[kExec] or s[kExec + 1] directly.
  void exec_changed();

  // Gives the host's floating-point unit the rounding and the denormals of
  // `mode`. Throws Fault for modes of 16-bit and 64-bit floats that are not
  // rounding to nearest even with denormals.
  void mode_changed() const;

  uint64_t vcc() const {
    return lanes == 64 ? pair(kVcc) : s[kVcc];
  }
  uint64_t pair(uint32_t index) const {
    return s[index] | uint64_t(s[index + 1]) << 32;
  }
};

// Runs a wave until it ends, waits or has executed `budget` instructions, which
// is reduced by what was executed. Throws Fault with the instruction's text,
// its byte offset and the wave. Not reentrant: one thread at a time.
Stop run(Wave& wave, const Program& program, uint64_t& budget);

} // namespace rdna

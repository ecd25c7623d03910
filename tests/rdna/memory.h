// The memory that instructions reach: the interface between the interpreter
// and whoever owns and checks the memory.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace rdna {

struct Instruction;
struct Wave;

// A fault of the program under test or a limit of the interpreter. run() adds
// the instruction and the wave to the message; the dispatcher adds the kernel
// and the workgroup.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Space : uint8_t {
  Global, // vector loads, stores and atomics; addresses are GPU addresses
  Scalar, // scalar loads (one lane, bit 0); addresses are GPU addresses
  Shared, // LDS; addresses are bytes from the workgroup's first
};

enum class Act : uint8_t { Load, Store, Atomic };

// One access of a wave: `bytes` at an address per lane.
struct Access {
  const Wave& wave;
  const Instruction& instruction;
  Space space;
  Act act;
  uint32_t bytes; // contiguous, per lane: 1, 2, 4, ..., 64
  uint64_t lanes; // bit l: lane l takes part
  const uint64_t* addresses; // [64]; only those of `lanes` mean anything
};

class Memory {
 public:
  virtual ~Memory() = default;

  // Checks an access and stores in host[l], for each lane of `lanes`, where
  // its bytes lie. The interpreter then reads or writes them, lanes in
  // ascending order. Throws Fault for an access that is not allowed.
  virtual void resolve(const Access& access, uint8_t** host) = 0;
};

} // namespace rdna

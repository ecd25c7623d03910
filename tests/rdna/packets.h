// The command processor: reads the packets (PM4) of indirect buffers. Packets
// of a queue run in order, each to its end; what their order would allow to
// overlap is left to the checks.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "checks.h"
#include "dispatch.h"

namespace rdna {

class CommandProcessor {
 public:
  // Runs an indirect buffer and those that it chains to. Faults are reported
  // and end it.
  void run(uint64_t address, uint32_t words);
  // What follows waits for all that ran.
  void end_submission();

 private:
  using Payload = std::span<const uint32_t>; // of a packet

  struct Buffer {
    uint64_t address = 0;
    uint32_t words = 0;
  };

  Buffer run_to_chain(Buffer buffer);
  void packet(uint32_t code, Payload p);
  void set_registers(uint32_t code, Payload p);
  void dispatch(const uint32_t* counts, uint32_t initiator);
  void dispatch_indirect(Payload p);
  void write_data(Payload p);
  void copy_data(Payload p);
  void release(Payload p);
  void copy_memory(Payload p);
  void event(Payload p);

  uint32_t& sh(uint32_t address) {
    return registers_[(address - 0xb000) / 4 % registers_.size()];
  }

  std::array<uint32_t, 0x400> registers_{}; // SH, from address 0xb000
  uint64_t indirect_base_ = 0;
  uint64_t submission_ = 1, dispatch_ = 0;
  Checks checks_;
  Dispatcher dispatcher_{checks_};
};

} // namespace rdna

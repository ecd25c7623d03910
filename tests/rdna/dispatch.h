// Workgroups: what a dispatch packet starts.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "checks.h"
#include "program.h"
#include "wave.h"

namespace rdna {

// A dispatch as the registers COMPUTE_* and its packet describe it.
struct Dispatch {
  uint64_t code; // GPU address
  uint32_t rsrc1, rsrc2; // COMPUTE_PGM_RSRC1, 2
  uint32_t scratch_bytes; // of a wave
  uint32_t user[16]; // COMPUTE_USER_DATA: the first scalar registers
  uint32_t first[3], end[3]; // workgroups
  uint32_t threads[3]; // of a workgroup
  uint32_t last_threads[3]; // of the last workgroup in that dimension
  uint32_t lanes; // of a wave, 32 or 64
  bool internal; // RADV's own fills and copies
  std::string name; // "dispatch 3 of submission 7"

  uint64_t groups() const;
  uint32_t registers() const; // vector registers of a lane
  uint32_t shared_bytes() const;
};

class Dispatcher {
 public:
  explicit Dispatcher(Checks& checks);

  // Runs all workgroups, in an order that the seed chooses. A fault ends the
  // dispatch and is reported.
  void run(const Dispatch& d);

 private:
  struct Group;

  void run_group(const Dispatch& d, const Program& program, Group& group);
  void start_wave(const Dispatch& d, const Group& group, uint32_t number);
  void run_wave(const Program& program, Group& group, uint32_t number);
  void meet(const Program& program, Group& group);
  void report_fault(
      const Dispatch& d,
      const Program* program,
      const Group* group,
      const std::string& what);

  Checks& checks_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Wave>> waves_; // kept for later workgroups
};

} // namespace rdna

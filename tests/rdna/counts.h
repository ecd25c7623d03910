// What kernels execute, counted if RDNA_COUNTS names a folder:
//
//   dispatches-<process>   a line of JSON for each dispatch, in their order
//   <hash>.txt             the code of a shader, with the counts of its last
//                          dispatch beside each instruction
//
// Threads: one at a time, as Checks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "dispatch.h"
#include "memory.h"
#include "program.h"

namespace rdna {

class Counts {
 public:
  explicit Counts(std::string folder);
  ~Counts();
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

  void begin(const Program& program);
  void access(const Access& access);
  void end(const Dispatch& dispatch, uint32_t hash);

 private:
  // The sums over all accesses of one instruction.
  struct Tally {
    uint64_t lanes = 0, bytes = 0;
    uint64_t lines = 0; // of 128 bytes, distinct ones of each access
    uint64_t least = 0; // lines, were the bytes side by side
    uint64_t uniform = 0; // accesses of several lanes to the same bytes
    uint64_t conflicts = 0; // cycles beyond those of an access without
  };

  void write_code(uint32_t hash) const;

  std::string folder_;
  std::FILE* out_;
  const Program* program_ = nullptr;
  std::vector<uint64_t> before_; // executions of each instruction
  std::vector<Tally> tallies_;
};

// Null if nothing is counted.
Counts* counts();

} // namespace rdna

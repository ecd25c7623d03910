// Runs single instructions: what the tests of instructions share.
#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "../arithmetic.h"
#include "../program.h"
#include "../wave.h"

namespace rdna {

// The targets that instructions are tested on.
inline const Target kGfx11{"gfx1100", 11, 32};
inline const Target kGfx11Wave64{"gfx1100", 11, 64};
inline const Target kGfx115{"gfx1151", 11, 32};
inline const Target kGfx12{"gfx1201", 12, 32};
inline const Target kGfx12Wave64{"gfx1201", 12, 64};

// Global memory and LDS of some bytes each, bounds checked.
class TestMemory : public Memory {
 public:
  static constexpr uint64_t kBase = 0x7fff00001000;
  static constexpr size_t kBytes = 8192;

  TestMemory() : global(kBytes), shared(kBytes) {}
  void resolve(const Access& access, uint8_t** host) override;

  std::vector<uint8_t> global, shared;
  std::vector<Access> accesses; // all so far; their lanes are gone
};

// A wave with memory. Vector registers v0 to v15 start as their number times
// 0x01010101 in all lanes, scalar ones poisoned.
class Machine {
 public:
  explicit Machine(Target target, uint32_t active = ~0u);

  // Assembles and runs instructions to their end; branches allowed.
  Stop operator()(const std::string& text);

  void set(uint32_t index, u32 value) { // v[index], all lanes
    std::fill_n(wave.v[index], kMaxLanes, value);
  }
  void set64(uint32_t index, u64 value) {
    set(index, u32(value));
    set(index + 1, u32(value >> 32));
  }

  Target target;
  TestMemory memory;
  Wave wave;
};

// Rows of the tables that some test has run.
std::set<std::string_view>& tested_rows();
// Rows of the tables that none has; one line each.
std::vector<std::string> untested_rows();

// Known answers --------------------------------------------------------------

// An instruction of v0 (the result, first 0xdeadbeef) or v[0:1] and sources
// v1, v2, v3 (64 bits: v[2:3], v[4:5], v[6:7]) and its result.
struct Answer {
  const char* text;
  std::vector<u32> sources; // v1, v2, ...
  u32 result;
};
// Runs it with all lanes and with every third lane, in wave32 and wave64;
// checks that inactive lanes keep their value. `mode` is Wave::mode.
void check(const Target& target, const Answer& answer, uint32_t mode = 0xf0);
void check(
    const std::vector<Target>& targets,
    const std::vector<Answer>& answers,
    uint32_t mode = 0xf0);

// The same of s0 and s1, s2, s3, and SCC before and after.
struct ScalarAnswer {
  const char* text;
  std::vector<u32> sources; // s1, s2, ...
  u32 result;
  int scc = -1; // after; -1: as before
  bool scc_before = false;
};
void check(
    const std::vector<Target>& targets,
    const std::vector<ScalarAnswer>& answers,
    uint32_t mode = 0xf0);

inline std::vector<Target> everywhere() {
  return {kGfx11, kGfx11Wave64, kGfx12, kGfx12Wave64};
}
inline std::vector<Target> gfx11() {
  return {kGfx11, kGfx11Wave64};
}
inline std::vector<Target> gfx12() {
  return {kGfx12, kGfx12Wave64};
}

} // namespace rdna

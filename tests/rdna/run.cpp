#include <cstdio>
#include <cstring>

#include "operands.h"
#include "program.h"

namespace rdna {

void Wave::start(uint32_t wave_lanes, uint32_t count) {
  lanes = wave_lanes;
  std::fill_n(&v[0][0], kVectorRegisters * kMaxLanes, kPoison);
  std::fill(std::begin(s), std::end(s), kPoison);
  scc = signalled = ended = false;
  stop = Stop::Running;
  first_shared = kVectorRegisters;
  pc = 0;
  mode = 0xc0; // 32-bit denormals flushed, others kept; to nearest even
  set_exec(ones64(count));
}

void Wave::set_exec(uint64_t mask) {
  s[kExec] = u32(mask);
  if (lanes == 64)
    s[kExec + 1] = u32(mask >> 32);
  exec_changed();
}

void Wave::exec_changed() {
  u64 mask = exec();
  all_active = mask == ones64(lanes);
  for (u32 base = 0; base < lanes; base += 32) {
    u32 part = u32(mask >> base);
    for (u32 l = 0; l < 32; ++l)
      active[base + l] = part & (1u << l) ? ~0u : 0;
  }
}

// MODE (RDNA3 ISA, "Mode register"): rounding of binary32 [1:0]: nearest, up,
// down, toward zero; of others [3:2]; denormals of binary32 [5:4]: bit 0 allows
// those of sources, bit 1 those of results; of others [7:6].
void Wave::mode_changed() const {
  if ((mode & 0xcc) != 0xc0)
    throw Fault("a rounding or denormal mode of 16-bit floats");
  constexpr u32 rounding[] = {
      _MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
  constexpr u32 kSourceDenormalsAreZeros = 0x0040;
  u32 csr = _MM_MASK_MASK | rounding[mode & 3];
  if (!(mode & 0x10))
    csr |= kSourceDenormalsAreZeros;
  if (!(mode & 0x20))
    csr |= _MM_FLUSH_ZERO_ON;
  _mm_setcsr(csr);
}

namespace {

class HostMode {
 public:
  HostMode() : saved_(_mm_getcsr()) {}
  ~HostMode() {
    _mm_setcsr(saved_);
  }
  HostMode(const HostMode&) = delete;
  HostMode& operator=(const HostMode&) = delete;

 private:
  u32 saved_;
};

// Both halves read before either writes.
void run_pair(Wave& w, const Instruction& i) {
  u32* result = w.v[i.operands[0].index];
  Lanes<u32> before, after;
  std::memcpy(before.x, result, sizeof before.x);
  i.run(w, i);
  std::memcpy(after.x, result, sizeof after.x);
  std::memcpy(result, before.x, sizeof before.x);
  i.second->run(w, *i.second);
  std::memcpy(result, after.x, sizeof after.x);
}

} // namespace

Stop run(Wave& w, const Program& program, uint64_t& budget) {
  HostMode host;
  w.code = program.address;
  w.stop = Stop::Running;
  const Instruction* i = program.code.data();
  try {
    w.mode_changed();
    for (; w.stop == Stop::Running; --budget) {
      if (budget == 0)
        return w.stop = Stop::Paused;
      i = &program.code[w.pc];
      ++program.runs[w.pc++];
      if (i->second)
        run_pair(w, *i);
      else
        i->run(w, *i);
    }
  } catch (const Fault& fault) {
    char place[64];
    std::snprintf(place, sizeof place, "wave %u, +0x%x ", w.id, i->pc);
    throw Fault(place + i->text + ": " + fault.what());
  }
  return w.stop;
}

} // namespace rdna

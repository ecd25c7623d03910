// Branches, barriers, MODE, and instructions that have no effect here (RDNA3
// ISA and RDNA4 ISA, "SOPP", "SOPK").
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

template <auto Taken>
void branch(Wave& w, const Instruction& i) {
  if (Taken(w))
    w.pc = i.target;
}

void s_endpgm(Wave& w, const Instruction&) {
  w.ended = true;
  w.stop = Stop::Ended;
}
void s_barrier(Wave& w, const Instruction&) {
  w.stop = Stop::Barrier;
}
// gfx12 splits the barrier; -1 is the workgroup's.
void s_barrier_signal(Wave& w, const Instruction& i) {
  if (i.operands[0].value != ~0u)
    throw Fault("a named barrier");
  if (w.signalled)
    throw Fault("signals a barrier twice");
  w.signalled = true;
}
void s_barrier_wait(Wave& w, const Instruction&) {
  if (!w.signalled)
    throw Fault("waits for a barrier that it has not signalled");
  w.signalled = false;
  w.stop = Stop::Barrier;
}
void s_sleep(Wave& w, const Instruction&) {
  w.stop = Stop::Paused;
}

void s_round_mode(Wave& w, const Instruction& i) {
  w.mode = (w.mode & ~15u) | (i.operands[0].value & 15);
  w.mode_changed();
}
void s_denorm_mode(Wave& w, const Instruction& i) {
  w.mode = (w.mode & ~0xf0u) | (i.operands[0].value & 15) << 4;
  w.mode_changed();
}
// hwreg: number [5:0], first bit [10:6], bits less one [15:11].
void s_setreg(Wave& w, const Instruction& i) {
  constexpr u32 kMode = 1, kSchedulingMode = 26;
  u32 hwreg = i.operands[0].value, number = hwreg & 63;
  if (number == kSchedulingMode)
    return;
  if (number != kMode)
    throw Fault("writes hardware register " + std::to_string(number));
  u32 first = hwreg >> 6 & 31, mask = ones((hwreg >> 11 & 31) + 1) << first;
  u32 value = scalar(w, i.operands[1]) << first;
  w.mode = (w.mode & ~mask) | (value & mask);
  w.mode_changed();
}

void nothing(Wave&, const Instruction&) {}

constexpr std::string_view without_effect[] = {
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_waitcnt",
    "s_waitcnt_depctr",
    "s_waitcnt_vscnt",
    "s_waitcnt_vmcnt",
    "s_waitcnt_expcnt",
    "s_waitcnt_lgkmcnt",
    "s_wait_alu",
    "s_wait_event",
    "s_wait_expcnt",
    "s_wait_idle",
    "s_wait_loadcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_samplecnt",
    "s_wait_storecnt",
    "s_wait_storecnt_dscnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_set_inst_prefetch_distance",
    "s_icache_inv",
    "s_dcache_inv",
    "s_gl1_inv",
    "s_prefetch_data",
    "s_prefetch_inst",
    "s_prefetch_inst_pc_rel",
    "s_sendmsg",
    "s_setprio",
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "buffer_wbinvl1",
    "buffer_wbinvl1_vol",
    "global_inv",
    "global_wb",
    "global_wbinv",
};

constexpr size_t kWithout = std::size(without_effect);
constexpr Row with_effect[] = {
    {"s_endpgm", s_endpgm, kNoOperands},
    {"s_barrier", s_barrier, kNoOperands},
    {"s_barrier_signal", s_barrier_signal, kPlain},
    {"s_barrier_wait", s_barrier_wait, kNoOperands},
    {"s_sleep", s_sleep, kNoOperands},
    {"s_round_mode", s_round_mode, kPlain},
    {"s_denorm_mode", s_denorm_mode, kPlain},
    {"s_setreg_b32", s_setreg, kPlain},
    {"s_setreg_imm32_b32", s_setreg, kPlain},
    {"s_branch", branch<[](Wave&) { return true; }>, kPlain},
    {"s_cbranch_scc0", branch<[](Wave& w) { return !w.scc; }>, kPlain},
    {"s_cbranch_scc1", branch<[](Wave& w) { return w.scc; }>, kPlain},
    {"s_cbranch_vccz", branch<[](Wave& w) { return w.vcc() == 0; }>, kPlain},
    {"s_cbranch_vccnz", branch<[](Wave& w) { return w.vcc() != 0; }>, kPlain},
    {"s_cbranch_execz", branch<[](Wave& w) { return w.exec() == 0; }>, kPlain},
    {"s_cbranch_execnz", branch<[](Wave& w) { return w.exec() != 0; }>, kPlain},
};

constexpr auto rows = [] {
  std::array<Row, std::size(with_effect) + kWithout> all{};
  std::copy(std::begin(with_effect), std::end(with_effect), all.begin());
  for (size_t k = 0; k < kWithout; ++k)
    all[std::size(with_effect) + k] = {without_effect[k], nothing, kNoOperands};
  return all;
}();

} // namespace

Table control_table() {
  return rows;
}

} // namespace rdna

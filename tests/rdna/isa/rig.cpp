#include "rig.h"

#include <doctest/doctest.h>

#include "../table.h"
#include "assembler.h"

namespace rdna {

void TestMemory::resolve(const Access& access, uint8_t** host) {
  auto& bytes = access.space == Space::Shared ? shared : global;
  uint64_t base = access.space == Space::Shared ? 0 : kBase;
  accesses.push_back(access);
  for (uint32_t l = 0; l < kMaxLanes; ++l) {
    if (!(access.lanes >> l & 1))
      continue;
    uint64_t at = access.addresses[l] - base;
    if (at >= kBytes || at + access.bytes > kBytes)
      throw Fault("outside");
    host[l] = bytes.data() + at;
  }
}

Machine::Machine(Target t, uint32_t active) : target(std::move(t)) {
  wave.gfx = target.gfx;
  wave.id = 0;
  wave.memory = &memory;
  wave.start(target.lanes, target.lanes);
  wave.mode = 0xf0;
  u64 mask = active | u64(active) << 32;
  wave.set_exec(target.lanes == 64 ? mask : u32(mask));
  for (u32 k = 0; k < 16; ++k)
    set(k, k * 0x01010101);
}

Stop Machine::operator()(const std::string& text) {
  auto code = assemble(target, text + "\ns_endpgm");
  const Program& program = decode(target, 0x1000, code);
  for (const Instruction& i : program.code)
    for (const Instruction* half : {&i, i.second})
      if (half)
        tested_rows().insert(row_of(*half)->name);
  wave.pc = 0;
  uint64_t budget = 1000;
  return run(wave, program, budget);
}

std::set<std::string_view>& tested_rows() {
  static std::set<std::string_view> rows;
  return rows;
}

std::vector<std::string> untested_rows() {
  std::vector<std::string> names;
  for (const Row* row : all_rows())
    if (!tested_rows().contains(row->name))
      names.emplace_back(row->name);
  return names;
}

namespace {

constexpr u32 kBefore = 0xdeadbeef;

struct Context {
  const Target& target;
  const char* text;
  const std::vector<u32>& sources;

  std::string str() const {
    std::string line = target.cpu + " wave" + std::to_string(target.lanes) +
        " " + text + " of";
    char word[16];
    for (u32 x : sources) {
      snprintf(word, sizeof word, " %08x", x);
      line += word;
    }
    return line;
  }
};

std::string hex(u32 x) {
  char word[16];
  snprintf(word, sizeof word, "%08x", x);
  return word;
}

} // namespace

void check(const Target& target, const Answer& a, uint32_t mode) {
  for (u32 active : {~0u, 0x49249249u}) {
    Machine m(target, active);
    m.wave.mode = mode;
    m.set(0, kBefore);
    for (u32 k = 0; k < a.sources.size(); ++k)
      m.set(1 + k, a.sources[k]);
    INFO(Context{target, a.text, a.sources}.str());
    REQUIRE_NOTHROW(m(a.text));
    for (u32 l = 0; l < target.lanes; ++l) {
      bool on = active >> l % 32 & 1;
      CAPTURE(l);
      REQUIRE_EQ(hex(m.wave.v[0][l]), hex(on ? a.result : kBefore));
    }
  }
}

void check(
    const std::vector<Target>& targets,
    const std::vector<Answer>& answers,
    uint32_t mode) {
  for (const Target& target : targets)
    for (const Answer& answer : answers)
      check(target, answer, mode);
}

void check(
    const std::vector<Target>& targets,
    const std::vector<ScalarAnswer>& answers,
    uint32_t mode) {
  for (const Target& target : targets)
    for (const ScalarAnswer& a : answers) {
      Machine m(target);
      m.wave.mode = mode;
      m.wave.s[0] = kBefore;
      for (u32 k = 0; k < a.sources.size(); ++k)
        m.wave.s[1 + k] = a.sources[k];
      m.wave.scc = a.scc_before;
      INFO(Context{target, a.text, a.sources}.str());
      REQUIRE_NOTHROW(m(a.text));
      CHECK_EQ(hex(m.wave.s[0]), hex(a.result));
      CHECK_EQ(m.wave.scc, a.scc < 0 ? a.scc_before : a.scc);
    }
}

} // namespace rdna

#include "dispatch.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>

#include "counts.h"
#include "gpu_memory.h"
#include "settings.h"

namespace rdna {

namespace {

// Instructions after which a wave that has not ended never will: ten times what
// any kernel of the tests executes.
constexpr uint64_t endless = 20'000'000;
constexpr uint32_t most_code = 1 << 20; // bytes of a shader

// Fields of COMPUTE_PGM_RSRC1 and 2 (RDNA3 ISA, "Initial Wave State").
uint32_t field(uint32_t value, int first, int bits) {
  return value >> first & ((1u << bits) - 1);
}
uint32_t mode_of(const Dispatch& d) {
  return field(d.rsrc1, 12, 8);
}
bool has_scratch(const Dispatch& d) {
  return field(d.rsrc2, 0, 1);
}
uint32_t user_registers(const Dispatch& d) {
  return field(d.rsrc2, 1, 5);
}
bool wants_group_id(const Dispatch& d, int dimension) {
  return field(d.rsrc2, 7 + dimension, 1);
}
bool wants_group_size(const Dispatch& d) {
  return field(d.rsrc2, 10, 1);
}

std::string triple(const uint32_t* v) {
  char text[48];
  std::snprintf(text, sizeof(text), "%u x %u x %u", v[0], v[1], v[2]);
  return text;
}

// The bytes from an address to the end of what is mapped.
std::span<const uint8_t> code_at(uint64_t address) {
  auto& memory = gpu_memory();
  uint64_t end = address / GpuMemory::page * GpuMemory::page;
  while (end < address + most_code && memory.mapped(end, GpuMemory::page)) {
    end += GpuMemory::page;
  }
  if (end <= address) {
    throw Fault("the shader's code " + memory.place(address));
  }
  return {memory.host(address), size_t(end - address)};
}

// FNV-1a of the shader's code, by which people find it in a second run.
uint32_t hash_of(const Program& program, uint64_t address) {
  uint32_t h = 2166136261;
  if (!program.code.empty()) {
    auto& last = program.code.back();
    auto* bytes = gpu_memory().host(address);
    for (uint32_t i = 0; i < last.pc + last.size; ++i) {
      h = (h ^ bytes[i]) * 16777619;
    }
  }
  return h;
}

// Instructions around the one at an index, which is marked.
std::string listing(const Program& program, size_t index) {
  std::string text;
  size_t begin = index > 6 ? index - 6 : 0;
  size_t end = std::min(index + 4, program.code.size());
  for (size_t i = begin; i < end; ++i) {
    auto& instruction = program.code[i];
    char offset[24];
    std::snprintf(offset, sizeof(offset), "0x%04x  ", instruction.pc);
    text += std::string(i == index ? "\n  > " : "\n    ") + offset;
    text += instruction.text;
  }
  return text;
}

} // namespace

uint64_t Dispatch::groups() const {
  uint64_t total = 1;
  for (int i = 0; i < 3; ++i) {
    total *= end[i] - first[i];
  }
  return total;
}

uint32_t Dispatch::registers() const {
  return (lanes == 64 ? 4 : 8) * (field(rsrc1, 0, 6) + 1);
}

uint32_t Dispatch::shared_bytes() const {
  return field(rsrc2, 15, 9) * 512;
}

struct Dispatcher::Group {
  enum class State : uint8_t { Ready, Waiting, Ended };

  uint32_t id[3];
  uint32_t threads[3];
  std::vector<State> states; // by wave
  std::vector<uint64_t> executed;
  uint32_t current = 0; // wave

  uint32_t count(State s) const {
    return uint32_t(std::ranges::count(states, s));
  }
  uint32_t size() const {
    return threads[0] * threads[1] * threads[2];
  }
};

Dispatcher::Dispatcher(Checks& checks)
    : checks_(checks), random_(settings().seed) {}

void Dispatcher::run(const Dispatch& d) {
  const Program* program = nullptr;
  Group group;
  bool running = false;
  try {
    Target target{settings().processor, settings().gfx, d.lanes};
    uint64_t sizes[3], total = d.groups();
    for (int i = 0; i < 3; ++i) {
      sizes[i] = d.end[i] - d.first[i];
    }
    if (!total) {
      return;
    }
    {
      auto guard = gpu_memory().in_use();
      program = &decode(target, d.code, code_at(d.code));
    }
    if (counts()) {
      counts()->begin(*program);
    }
    // i -> (step * i + first) modulo total is a permutation.
    uint64_t step = random_() % total, first = random_() % total;
    while (std::gcd(step, total) != 1) {
      ++step;
    }
    for (uint64_t i = 0; i < total; ++i) {
      uint64_t n = uint64_t((__uint128_t(step) * i + first) % total);
      for (int k = 0; k < 3; ++k) {
        group.id[k] = d.first[k] + uint32_t(n % sizes[k]);
        bool last = group.id[k] == d.end[k] - 1;
        group.threads[k] = last ? d.last_threads[k] : d.threads[k];
        n /= sizes[k];
      }
      auto guard = gpu_memory().in_use();
      running = true;
      run_group(d, *program, group);
    }
    if (counts()) {
      counts()->end(d, hash_of(*program, d.code));
    }
  } catch (const Fault& fault) {
    report_fault(d, program, running ? &group : nullptr, fault.what());
  }
}

void Dispatcher::run_group(
    const Dispatch& d,
    const Program& program,
    Group& group) {
  using enum Group::State;
  uint32_t count = (group.size() + d.lanes - 1) / d.lanes;
  while (waves_.size() < count) {
    waves_.push_back(std::make_unique<Wave>());
  }
  group.states.assign(count, Ready);
  group.executed.assign(count, 0);
  checks_.begin_group(d.shared_bytes());
  for (uint32_t i = 0; i < count; ++i) {
    start_wave(d, group, i);
  }
  std::vector<uint32_t> ready;
  while (group.count(Ended) < count) {
    ready.clear();
    for (uint32_t i = 0; i < count; ++i) {
      if (group.states[i] == Ready) {
        ready.push_back(i);
      }
    }
    if (ready.empty()) {
      meet(program, group);
    } else {
      run_wave(program, group, ready[random_() % ready.size()]);
    }
  }
}

// Lets a wave run for a while.
void Dispatcher::run_wave(
    const Program& program,
    Group& group,
    uint32_t number) {
  group.current = number;
  uint64_t slice = uint64_t(64) << random_() % 8, left = slice;
  Stop stop = rdna::run(*waves_[number], program, left);
  group.executed[number] += slice - left;
  if (stop == Stop::Ended) {
    group.states[number] = Group::State::Ended;
  } else if (stop == Stop::Barrier) {
    group.states[number] = Group::State::Waiting;
  } else if (group.executed[number] > endless) {
    throw Fault(
        "wave " + std::to_string(number) + " has executed " +
        std::to_string(endless) +
        " instructions: its loop has no end, or it waits for another workgroup");
  }
}

// All waves that have not ended wait at a barrier.
void Dispatcher::meet(const Program& program, Group& group) {
  using enum Group::State;
  uint32_t first = 0;
  while (group.states[first] != Waiting) {
    ++first;
  }
  group.current = first;
  std::string who = "wave " + std::to_string(first) + " waits at a barrier";
  for (uint32_t i = 0; i < group.states.size(); ++i) {
    auto other = "wave " + std::to_string(i);
    if (group.states[i] == Ended) {
      throw Fault(who + " for ever: " + other + " ended without reaching it");
    }
    if (waves_[i]->pc != waves_[first]->pc) {
      auto pc = program.code[waves_[i]->pc - 1].pc;
      char place[16];
      std::snprintf(place, sizeof(place), "0x%04x", pc);
      throw Fault(who + ", and " + other + " at another one, at " + place);
    }
  }
  std::ranges::fill(group.states, Ready);
  checks_.group_barrier();
}

void Dispatcher::start_wave(
    const Dispatch& d,
    const Group& group,
    uint32_t number) {
  Wave& w = *waves_[number];
  uint32_t gfx = settings().gfx, first = number * d.lanes;
  w.id = number;
  w.gfx = gfx;
  w.memory = &checks_;
  w.start(d.lanes, std::min(d.lanes, group.size() - first));
  w.s[kM0] = 0; // RADV's ds_append, which works on cards, relies on it
  w.mode = mode_of(d);
  if (gfx == 10 && d.lanes == 64) {
    w.first_shared = d.registers();
  }
  w.scratch_bytes = has_scratch(d) ? d.scratch_bytes / d.lanes : 0;
  w.scratch.assign(size_t(w.scratch_bytes) * d.lanes, 0xff);
  uint32_t next = user_registers(d);
  std::copy_n(d.user, std::min(next, 16u), w.s);
  if (gfx >= 12) {
    w.s[kTtmp + 9] = group.id[0];
    w.s[kTtmp + 7] = group.id[1] | group.id[2] << 16;
    w.s[kTtmp + 8] = number << 25;
  } else {
    for (int i = 0; i < 3; ++i) {
      if (wants_group_id(d, i)) {
        w.s[next++] = group.id[i];
      }
    }
  }
  if (wants_group_size(d)) {
    uint32_t count = uint32_t(group.states.size());
    // The wave's number is in bits 24:20, and in 11:6 before gfx10.3.
    w.s[next++] = count | number << 6 | number << 20;
  }
  if (has_scratch(d) && gfx < 11) {
    w.s[next++] = 0; // offset of its scratch, which the wave has for itself
  }
  for (uint32_t lane = 0; lane < d.lanes; ++lane) {
    uint32_t t = first + lane;
    uint32_t x = t % group.threads[0], yz = t / group.threads[0];
    uint32_t y = yz % group.threads[1], z = yz / group.threads[1];
    if (gfx >= 11) {
      w.v[0][lane] = x | y << 10 | z << 20;
    } else {
      w.v[0][lane] = x;
      w.v[1][lane] = y;
      w.v[2][lane] = z;
    }
  }
}

void Dispatcher::report_fault(
    const Dispatch& d,
    const Program* program,
    const Group* group,
    const std::string& what) {
  char text[200];
  std::string message = what + "\n  in " + d.name;
  uint32_t counts[3];
  for (int i = 0; i < 3; ++i) {
    counts[i] = d.end[i] - d.first[i];
  }
  message += ", " + triple(counts) + " workgroups of " + triple(d.threads);
  if (group) {
    std::snprintf(
        text,
        sizeof(text),
        ", workgroup (%u, %u, %u), wave %u",
        group->id[0],
        group->id[1],
        group->id[2],
        group->current);
    message += text;
  }
  std::snprintf(
      text, sizeof(text), ", code at 0x%llx", (unsigned long long)d.code);
  message += text;
  if (program) {
    std::snprintf(text, sizeof(text), ", hash %08x", hash_of(*program, d.code));
    message += text;
    if (group) {
      auto pc = waves_[group->current]->pc;
      message += listing(*program, pc ? pc - 1 : 0);
    }
  }
  std::snprintf(
      text,
      sizeof(text),
      "\n  RDNA_SEED=%llu",
      (unsigned long long)settings().seed);
  report(message + text);
}

} // namespace rdna

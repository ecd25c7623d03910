#include "packets.h"

#include <chrono>
#include <cstdio>
#include <cstring>

#include "gpu_memory.h"
#include "settings.h"

namespace rdna {

namespace {

// Codes of type 3 packets (Linux, drivers/gpu/drm/amd/amdgpu/nvd.h).
enum Code : uint32_t {
  kNop = 0x10,
  kSetBase = 0x11,
  kClearState = 0x12,
  kDispatchDirect = 0x15,
  kDispatchIndirect = 0x16,
  kContextControl = 0x28,
  kWriteData = 0x37,
  kWaitRegMem = 0x3c,
  kIndirectBuffer = 0x3f,
  kCopyData = 0x40,
  kPfpSyncMe = 0x42,
  kEventWrite = 0x46,
  kReleaseMem = 0x49,
  kDmaData = 0x50,
  kAcquireMem = 0x58,
  kSetConfigReg = 0x68,
  kSetContextReg = 0x69,
  kSetShReg = 0x76,
  kSetUconfigReg = 0x79,
  kSetUconfigRegIndex = 0x7a,
  kSetShRegIndex = 0x9b,
  kSetContextRegPairs = 0xb8,
  kSetContextRegPairsPacked = 0xb9,
  kSetShRegPairs = 0xba,
  kSetShRegPairsPacked = 0xbb,
  kSetShRegPairsPackedN = 0xbd,
  kSetUconfigRegPairs = 0xbe,
};

// Compute registers (the same file's gc_*_offset.h), by byte address.
enum Register : uint32_t {
  kStartX = 0xb810,
  kNumThreadX = 0xb81c,
  kPgmLo = 0xb830,
  kPgmHi = 0xb834,
  kRsrc1 = 0xb848,
  kRsrc2 = 0xb84c,
  kTmpRingSize = 0xb860,
  kUserData0 = 0xb900,
};

uint64_t wide(uint32_t low, uint32_t high) {
  return low | uint64_t(high) << 32;
}

// Ticks of the GPU's clock, 100 MHz.
uint64_t ticks() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count() / 10;
}

// Where the processor itself reads and writes: no race, since what it accesses
// (fences, timestamps) is ordered by the packets.
uint8_t* place(uint64_t address, uint64_t bytes) {
  auto& memory = gpu_memory();
  if (!memory.all_mapped(address, bytes)) {
    char text[80];
    std::snprintf(
        text,
        sizeof(text),
        "a packet's address 0x%llx ",
        (unsigned long long)address);
    throw Fault(text + memory.place(address));
  }
  return memory.host(address);
}

} // namespace

void CommandProcessor::run(uint64_t address, uint32_t words) {
  try {
    Buffer next{address, words};
    while (next.words) {
      next = run_to_chain(next);
    }
  } catch (const Fault& fault) {
    report(
        std::string(fault.what()) + "\n  in packets of submission " +
        std::to_string(submission_));
  }
}

void CommandProcessor::end_submission() {
  checks_.barrier();
  ++submission_;
  dispatch_ = 0;
}

// Runs packets until the buffer ends or continues in another one, which is
// returned.
CommandProcessor::Buffer CommandProcessor::run_to_chain(Buffer buffer) {
  constexpr uint32_t filler = 0xffff1000; // a packet of one word
  auto* words = reinterpret_cast<const uint32_t*>(
      place(buffer.address, uint64_t(buffer.words) * 4));
  for (uint32_t i = 0; i < buffer.words;) {
    uint32_t header = words[i++], type = header >> 30;
    if (type == 2 || header == filler) {
      continue;
    }
    uint32_t count = (header >> 16 & 0x3fff) + 1;
    if (type != 3 || count > buffer.words - i) {
      throw Fault("word " + std::to_string(i - 1) + " is no packet");
    }
    Payload p(words + i, count);
    i += count;
    uint32_t code = header >> 8 & 0xff;
    if (code != kIndirectBuffer) {
      packet(code, p);
      continue;
    }
    Buffer other{wide(p[0], p[1]), p[2] & 0xfffff};
    bool chain = p[2] >> 20 & 1;
    if (chain) {
      return other;
    }
    run(other.address, other.words);
  }
  return {};
}

void CommandProcessor::packet(uint32_t code, Payload p) {
  switch (code) {
    case kDispatchDirect:
      return dispatch(p.data(), p[3]);
    case kDispatchIndirect:
      return dispatch_indirect(p);
    case kSetBase:
      if (p[0] == 1) { // of indirect dispatches
        indirect_base_ = wide(p[1], p[2]);
      }
      return;
    case kSetShReg:
    case kSetShRegIndex:
    case kSetShRegPairs:
    case kSetShRegPairsPacked:
    case kSetShRegPairsPackedN:
      return set_registers(code, p);
    case kWriteData:
      return write_data(p);
    case kCopyData:
      return copy_data(p);
    case kReleaseMem:
      return release(p);
    case kDmaData:
      return copy_memory(p);
    case kEventWrite:
      return event(p);
    // Caches, which do not exist; waits, since all that was before has ended;
    // state of graphics.
    case kNop:
    case kClearState:
    case kContextControl:
    case kWaitRegMem:
    case kPfpSyncMe:
    case kAcquireMem:
    case kSetConfigReg:
    case kSetContextReg:
    case kSetContextRegPairs:
    case kSetContextRegPairsPacked:
    case kSetUconfigReg:
    case kSetUconfigRegIndex:
    case kSetUconfigRegPairs:
      return;
  }
  char text[48];
  std::snprintf(text, sizeof(text), "unknown packet 0x%02x", code);
  throw Fault(text);
}

void CommandProcessor::set_registers(uint32_t code, Payload p) {
  auto set = [&](uint32_t number, uint32_t value) {
    sh(0xb000 + 4 * (number & 0xffff)) = value;
  };
  if (code == kSetShReg || code == kSetShRegIndex) {
    for (uint32_t i = 1; i < p.size(); ++i) {
      set((p[0] & 0xffff) + i - 1, p[i]);
    }
  } else if (code == kSetShRegPairs) {
    for (uint32_t i = 0; i + 1 < p.size(); i += 2) {
      set(p[i], p[i + 1]);
    }
  } else { // packed: a count, then two numbers in a word and their values
    for (uint32_t i = 1; i + 2 < p.size(); i += 3) {
      set(p[i], p[i + 1]);
      set(p[i] >> 16, p[i + 2]);
    }
  }
}

void CommandProcessor::dispatch(const uint32_t* counts, uint32_t initiator) {
  // Bits of COMPUTE_DISPATCH_INITIATOR.
  bool partial = initiator >> 1 & 1, from_zero = initiator >> 2 & 1;
  Dispatch d{};
  d.code = wide(sh(kPgmLo), sh(kPgmHi) & 0xff) << 8;
  if (d.code >> 47 & 1) { // addresses have 48 bits, sign-extended
    d.code |= 0xffff000000000000;
  }
  d.rsrc1 = sh(kRsrc1);
  d.rsrc2 = sh(kRsrc2);
  d.lanes = initiator >> 15 & 1 ? 32 : 64;
  // WAVESIZE counts units of 256 bytes, and of 1024 before gfx11.
  d.scratch_bytes =
      (sh(kTmpRingSize) >> 12 & 0x3ffff) * (settings().gfx < 11 ? 1024 : 256);
  for (uint32_t i = 0; i < 16; ++i) {
    d.user[i] = sh(kUserData0 + 4 * i);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t threads = sh(kNumThreadX + 4 * i);
    d.threads[i] = threads & 0xffff;
    d.last_threads[i] = partial && threads >> 16 ? threads >> 16 : d.threads[i];
    d.first[i] = from_zero ? 0 : sh(kStartX + 4 * i);
    d.end[i] = counts[i];
  }
  d.internal = partial;
  d.name = "dispatch " + std::to_string(dispatch_++) + " of submission " +
      std::to_string(submission_);
  checks_.begin_dispatch(d.name);
  dispatcher_.run(d);
}

void CommandProcessor::dispatch_indirect(Payload p) {
  bool has_address = p.size() == 3; // on compute queues
  uint64_t from = has_address ? wide(p[0], p[1]) : indirect_base_ + p[0];
  uint32_t counts[3];
  std::memcpy(counts, place(from, sizeof(counts)), sizeof(counts));
  dispatch(counts, p.back());
}

void CommandProcessor::write_data(Payload p) {
  uint32_t target = p[0] >> 8 & 15;
  bool to_memory = target == 1 || target == 2 || target == 5;
  if (to_memory) {
    uint64_t bytes = (p.size() - 3) * 4;
    std::memcpy(place(wide(p[1], p[2]), bytes), &p[3], bytes);
  }
}

void CommandProcessor::copy_data(Payload p) {
  enum { kMemory = 1, kL2 = 2, kImmediate = 5, kTimestamp = 9 };
  uint32_t source = p[0] & 15, target = p[0] >> 8 & 15;
  uint64_t bytes = p[0] >> 16 & 1 ? 8 : 4, value = wide(p[1], p[2]);
  if (source == kMemory || source == kL2) {
    value = 0;
    std::memcpy(&value, place(wide(p[1], p[2]), bytes), bytes);
  } else if (source == kTimestamp) {
    value = ticks();
  } else if (source != kImmediate) {
    return; // registers of hardware that does not exist
  }
  bool to_memory = target == 1 || target == 2 || target == 5;
  if (to_memory) {
    std::memcpy(place(wide(p[3], p[4]), bytes), &value, bytes);
  }
}

// Writes a fence or a timestamp when all that was before has ended.
void CommandProcessor::release(Payload p) {
  enum { kNothing, kData32, kData64, kTimestamp };
  uint32_t what = p[1] >> 29 & 7;
  uint64_t to = wide(p[2], p[3]), value = wide(p[4], p[5]);
  if (what == kNothing || !to) {
    return;
  }
  value = what == kTimestamp ? ticks() : value;
  uint64_t bytes = what == kData32 ? 4 : 8;
  std::memcpy(place(to, bytes), &value, bytes);
}

// DMA_DATA: vkCmdCopyBuffer and vkCmdFillBuffer of few bytes.
void CommandProcessor::copy_memory(Payload p) {
  enum { kNowhere = 2, kImmediate = 2 };
  uint32_t source = p[0] >> 29 & 3, target = p[0] >> 20 & 3;
  uint64_t bytes = p[5] & 0x3ffffff;
  if (!bytes || target == kNowhere) { // a prefetch
    return;
  }
  uint64_t from = wide(p[1], p[2]), to = wide(p[3], p[4]);
  auto guard = gpu_memory().in_use();
  if (source == kImmediate) {
    checks_.copy(Act::Store, to, bytes);
    for (uint64_t i = 0; i < bytes; i += 4) {
      std::memcpy(gpu_memory().host(to + i), &p[1], 4);
    }
    return;
  }
  checks_.copy(Act::Load, from, bytes);
  checks_.copy(Act::Store, to, bytes);
  std::memmove(gpu_memory().host(to), gpu_memory().host(from), bytes);
}

// A wait for the end of all dispatches is what a pipeline barrier becomes.
void CommandProcessor::event(Payload p) {
  constexpr uint32_t cs_partial_flush = 7;
  if ((p[0] & 0x3f) == cs_partial_flush) {
    checks_.barrier();
  }
}

} // namespace rdna

#include "checks.h"

#include <bit>
#include <cstdio>

#include "counts.h"
#include "wave.h"

namespace rdna {

namespace {

const char* verb(Act act) {
  return act == Act::Load ? "a load"
      : act == Act::Store ? "a store"
                          : "an atomic";
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
  return text;
}

std::string outside(const Access& a, uint32_t lane) {
  return std::string(verb(a.act)) + " of " + std::to_string(a.bytes) +
      " bytes by lane " + std::to_string(lane);
}

template <class Body>
void each_lane(uint64_t lanes, Body body) {
  for (; lanes; lanes &= lanes - 1) {
    body(uint32_t(std::countr_zero(lanes)));
  }
}

} // namespace

Checks::Checks() : counts_(counts()) {}

void Checks::barrier() {
  global_races_.barrier();
  dispatches_.clear();
}

void Checks::begin_dispatch(std::string name) {
  if (dispatches_.size() == Races::last_user) {
    barrier(); // more than are told apart
  }
  dispatches_.push_back(std::move(name));
}

void Checks::copy(Act act, uint64_t address, uint64_t bytes) {
  if (!memory_.all_mapped(address, bytes)) {
    throw Fault(
        std::string(verb(act)) + " of " + std::to_string(bytes) + " bytes at " +
        hex(address) + ", which " + memory_.place(address));
  }
  if (auto c = global_races_.touch(Races::nobody, act, address, bytes)) {
    race(act, *c);
  }
}

void Checks::begin_group(uint32_t shared_bytes) {
  // A NaN as a float of 16 or 32 bits, and an index that is outside.
  static constexpr uint8_t poison[] = {0xff, 0x7f};
  shared_.resize(shared_bytes);
  for (size_t i = 0; i < shared_.size(); ++i) {
    shared_[i] = poison[i % 2];
  }
  shared_races_.barrier();
}

void Checks::resolve(const Access& access, uint8_t** host) {
  if (counts_) {
    counts_->access(access);
  }
  if (access.space == Space::Shared) {
    resolve_shared(access, host);
  } else {
    resolve_global(access, host);
  }
}

void Checks::resolve_shared(const Access& a, uint8_t** host) {
  auto user = Races::User(a.wave.id + 1);
  each_lane(a.lanes, [&](uint32_t lane) {
    uint64_t address = a.addresses[lane];
    if (address > shared_.size() || a.bytes > shared_.size() - address) {
      throw Fault(
          outside(a, lane) + " at byte " + std::to_string(address) +
          " of shared memory, which has " + std::to_string(shared_.size()));
    }
    host[lane] = &shared_[address];
    if (auto c = shared_races_.touch(user, a.act, address, a.bytes)) {
      throw Fault(
          "a race in shared memory: " + outside(a, lane) + " meets " +
          verb(c->act) + " of " +
          (c->other == Races::several
               ? "several waves"
               : "wave " + std::to_string(c->other - 1)) +
          " in byte " + std::to_string(c->address) +
          ", without a barrier between them");
    }
  });
}

void Checks::resolve_global(const Access& a, uint8_t** host) {
  auto user = Races::User(dispatches_.size());
  each_lane(a.lanes, [&](uint32_t lane) {
    uint64_t address = a.addresses[lane];
    if (!memory_.mapped(address, a.bytes)) {
      throw Fault(
          outside(a, lane) + " at " + hex(address) + ", which " +
          memory_.place(address));
    }
    host[lane] = memory_.host(address);
    if (auto c = global_races_.touch(user, a.act, address, a.bytes)) {
      race(a.act, *c);
    }
  });
}

void Checks::race(Act act, const Races::Conflict& c) {
  std::string other = c.other == Races::several ? "several dispatches"
                                                : dispatches_[c.other - 1];
  throw Fault(
      "a race between dispatches: " + std::string(verb(act)) + " meets " +
      verb(c.act) + " of " + other + " at " + hex(c.address) +
      ", without a barrier between them");
}

} // namespace rdna

// Who accessed which bytes since the last barrier: finds two users, at least
// one of which writes, without a barrier between them. Users are the waves of a
// workgroup for its shared memory, and dispatches for the GPU's memory. Atomics
// do not race with each other.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "memory.h"

namespace rdna {

class Races {
 public:
  using User = uint8_t; // from 1 on
  static constexpr User nobody = 0;
  static constexpr User last_user = 254;
  static constexpr User several = 255; // users; the first of them is forgotten

  struct Conflict {
    uint64_t address; // of the byte
    User other;
    Act act; // what the other did
  };

  // What was accessed before does not race with what follows.
  void barrier() {
    ++epoch_;
  }

  // An access of a user; the first conflict that it makes. One by `nobody` is
  // not remembered, so that nothing races with it later.
  std::optional<Conflict>
  touch(User user, Act act, uint64_t address, uint64_t bytes) {
    std::optional<Conflict> found;
    while (bytes && !found) {
      uint64_t at = address % page_bytes;
      uint64_t count = std::min(bytes, page_bytes - at);
      Page& page = page_of(address / page_bytes);
      if (!free_of_others(page, user, act, at, count)) {
        found = conflict(page, user, act, at, count);
        if (found) {
          found->address += address - at;
        }
      }
      if (user != nobody) {
        mark(page, user, act, at, count);
      }
      address += count;
      bytes -= count;
    }
    return found;
  }

 private:
  static constexpr uint64_t page_bytes = 4096;
  using Users = std::array<User, page_bytes>;

  // The last user of each byte that did each act; 0: nobody.
  struct Page {
    uint64_t epoch = 0;
    bool atomics = false; // there are any
    std::array<Users, 3> users; // by act
  };

  Page& page_of(uint64_t number) {
    if (number != last_number_) {
      auto& page = pages_[number];
      if (!page) {
        page = std::make_unique<Page>();
      }
      last_number_ = number;
      last_page_ = page.get();
    }
    if (last_page_->epoch != epoch_) {
      clear(*last_page_);
    }
    return *last_page_;
  }

  static bool only(const Users& users, User user, uint64_t at, uint64_t count) {
    uint8_t others = 0;
    for (uint64_t i = at; i < at + count; ++i) {
      others |= users[i] && users[i] != user;
    }
    return !others;
  }
  static bool free_of_others(
      const Page& page,
      User user,
      Act act,
      uint64_t at,
      uint64_t count) {
    return only(page.users[int(Act::Store)], user, at, count) &&
        (act == Act::Load ||
         only(page.users[int(Act::Load)], user, at, count)) &&
        (act == Act::Atomic || !page.atomics ||
         only(page.users[int(Act::Atomic)], user, at, count));
  }
  static std::optional<Conflict>
  conflict(const Page& page, User user, Act act, uint64_t at, uint64_t count);

  static void
  mark(Page& page, User user, Act act, uint64_t at, uint64_t count) {
    page.atomics |= act == Act::Atomic;
    auto& users = page.users[int(act)];
    for (uint64_t i = at; i < at + count; ++i) {
      users[i] = users[i] && users[i] != user ? several : user;
    }
  }
  void clear(Page& page) {
    page.users[int(Act::Load)].fill(0);
    page.users[int(Act::Store)].fill(0);
    if (page.atomics) {
      page.users[int(Act::Atomic)].fill(0);
    }
    page.atomics = false;
    page.epoch = epoch_;
  }

  uint64_t epoch_ = 1;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  uint64_t last_number_ = ~uint64_t(0);
  Page* last_page_ = nullptr;
};

} // namespace rdna

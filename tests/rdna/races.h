// Who accessed which bytes since the last barrier: finds two users, at least
// one of which writes, without a barrier between them. Users are the waves of a
// workgroup for its shared memory, and dispatches for the GPU's memory. Atomics
// do not race with each other.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
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
    uint64_t at = address % page_bytes;
    if (at + bytes <= page_bytes && user != nobody) {
      Page& page = page_of(address / page_bytes);
      bool done = bytes == 4 ? usual<uint32_t>(page, user, act, at)
          : bytes == 2       ? usual<uint16_t>(page, user, act, at)
          : bytes == 8       ? usual<uint64_t>(page, user, act, at)
          : bytes == 16      ? usual<uint64_t>(page, user, act, at) &&
              usual<uint64_t>(page, user, act, at + 8)
                        : false;
      if (done) {
        return std::nullopt;
      }
    }
    return touch_bytes(user, act, address, bytes);
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
  // Pages that were used last, by the end of their number.
  struct Recent {
    uint64_t number = ~uint64_t(0);
    Page* page = nullptr;
  };

  Page& page_of(uint64_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number) {
      recent = {number, find(number)};
    }
    if (recent.page->epoch != epoch_) {
      clear(*recent.page);
    }
    return *recent.page;
  }
  Page* find(uint64_t number);
  void clear(Page& page);

  // Remembers an access to the bytes of a Word if it is of the usual kind: no
  // atomic, all bytes had the same users before, and none makes a conflict.
  template <class Word>
  static bool usual(Page& page, User user, Act act, uint64_t at) {
    constexpr auto ones = Word(Word(~Word(0)) / 255); // 0x0101...
    const Word self = Word(ones * user), many = Word(ones * several);
    Word users[3];
    for (int a = 0; a < 3; ++a) {
      std::memcpy(&users[a], &page.users[a][at], sizeof(Word));
    }
    auto& [loads, stores, atomics] = users;
    bool own = (stores == 0 || stores == self) && atomics == 0;
    bool known = act == Act::Load && loads == many;
    if (!own || act == Act::Atomic || !(loads == 0 || loads == self || known)) {
      return false;
    }
    std::memcpy(&page.users[int(act)][at], known ? &many : &self, sizeof(Word));
    return true;
  }
  std::optional<Conflict>
  touch_bytes(User user, Act act, uint64_t address, uint64_t bytes);

  uint64_t epoch_ = 1;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, 64> recent_;
};

} // namespace rdna

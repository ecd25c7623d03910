#include "races.h"

namespace rdna {

Races::Page* Races::find(uint64_t number) {
  auto& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
  }
  return page.get();
}

void Races::clear(Page& page) {
  page.users[int(Act::Load)].fill(0);
  page.users[int(Act::Store)].fill(0);
  if (page.atomics) {
    page.users[int(Act::Atomic)].fill(0);
  }
  page.atomics = false;
  page.epoch = epoch_;
}

std::optional<Races::Conflict>
Races::touch_bytes(User user, Act act, uint64_t address, uint64_t bytes) {
  for (uint64_t a = address; a < address + bytes; ++a) {
    Page& page = page_of(a / page_bytes);
    for (Act other : {Act::Store, Act::Load, Act::Atomic}) {
      User who = page.users[int(other)][a % page_bytes];
      bool harmless = other == act && act != Act::Store;
      if (who != nobody && who != user && !harmless) {
        return Conflict{a, who, other};
      }
    }
    if (user != nobody) {
      page.atomics |= act == Act::Atomic;
      User& last = page.users[int(act)][a % page_bytes];
      last = last == nobody || last == user ? user : several;
    }
  }
  return std::nullopt;
}

} // namespace rdna

#include "races.h"

namespace rdna {

std::optional<Races::Conflict> Races::conflict(
    const Page& page,
    User user,
    Act act,
    uint64_t at,
    uint64_t count) {
  for (uint64_t i = at; i < at + count; ++i) {
    for (Act other : {Act::Store, Act::Load, Act::Atomic}) {
      User who = page.users[int(other)][i];
      bool harmless = other == act && act != Act::Store;
      if (who && who != user && !harmless) {
        return Conflict{i, who, other};
      }
    }
  }
  return std::nullopt;
}

} // namespace rdna

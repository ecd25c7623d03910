#include "ranks/handshake.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "runtime/device.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

std::string cannot(size_t rank, const char* why) {
  return "rank " + std::to_string(rank) + " cannot: " + why;
}

} // namespace

void assign(char* to, size_t size, const std::string& text) {
  size_t used = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), used);
  to[used] = 0;
}

// A slot holds a piece of a large array. Exchanging a piece takes longer than
// announcing it, and much less than exchanging the array. Slots of software
// devices are small, so that tests see several pieces.
HostGroupSizes sizes_of(int rank, int ranks, bool software) {
  HostGroupSizes s;
  s.rank = static_cast<uint32_t>(rank);
  s.ranks = static_cast<uint32_t>(ranks);
  // 8 MiB of items and their stamps.
  constexpr uint64_t most = 8800u << 10, all = 176u << 20;
  s.slot = software ? 48u << 10
                    : std::min(most, all / (HostGroup::generations * s.ranks));
  s.slot &= ~uint64_t(0xfff);
  s.channel = software ? 64u << 10 : (ranks > 4 ? 1u << 20 : 4u << 20);
  return s;
}

Hello hello_of(int ranks, bool (*has_device)()) {
  Hello h{};
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  assign(h.host, id);
  h.process = getpid();
  h.wants = config().host_group;
  if (!h.wants) {
    return h; // without starting the device
  }
  if (id.empty()) {
    assign(h.why, "its system has no /proc");
  } else if (ranks > static_cast<int>(most_host_ranks)) {
    assign(
        h.why,
        "the job has more than " + std::to_string(most_host_ranks) + " ranks");
  } else if (config().off || !has_device()) {
    assign(h.why, "it has no Vulkan device");
  } else {
    try {
      auto& caps = device().caps();
      assign(h.device, caps.name);
      assign(h.uuid, caps.uuid);
      h.software = caps.software();
      h.alone = config().disabled("meet");
      if (!caps.external_memory_host) {
        assign(h.why, caps.name + " has no VK_EXT_external_memory_host");
      }
    } catch (const std::exception& e) {
      assign(h.why, e.what());
    }
  }
  return h;
}

std::string against(const std::vector<Hello>& all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (std::strcmp(all[r].host, all[0].host) != 0) {
      return "ranks 0 and " + std::to_string(r) + " are on different hosts";
    }
  }
  for (size_t r = 0; r < all.size(); ++r) {
    if (!all[r].wants) {
      return "MLX_VK_HOST_GROUP=1 is not set for rank " + std::to_string(r);
    }
    if (all[r].why[0]) {
      return cannot(r, all[r].why);
    }
    if (all[r].software != all[0].software) {
      return "some ranks have software devices";
    }
  }
  return {};
}

std::string against(const std::vector<Outcome>& all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].why[0]) {
      return cannot(r, all[r].why);
    }
  }
  return {};
}

bool can_meet(const std::vector<Hello>& all) {
  for (size_t a = 0; a < all.size(); ++a) {
    if (all[a].software || all[a].alone) {
      return false;
    }
    for (size_t b = 0; b < a; ++b) {
      if (std::strcmp(all[a].uuid, all[b].uuid) == 0) {
        return false;
      }
    }
  }
  return true;
}

} // namespace mlx::core::vulkan

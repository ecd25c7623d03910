#include "backend/host_ranks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <vector>

#include "backend/stream_encoder.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/stream.h"
#include "runtime/device.h"
#include "versions/data.h"
#include "vk/config.h"
#include "vk/launcher.h"

namespace mlx::core::vulkan {

namespace {

std::mutex state_mutex;
std::string state;

// What the ranks tell each other, through the ring.
struct Hello {
  char host[64]; // names this start of this machine
  char device[64], uuid[40];
  char memory[64]; // rank 0's, as a path
  char name[64]; // and what that leads to
  char why[256]; // why this rank cannot, or empty
  int32_t process;
  uint8_t software, wants, alone;
};
static_assert(std::is_trivially_copyable_v<Hello>);

template <size_t n>
void assign(char (&to)[n], const std::string& text) {
  size_t size = std::min(text.size(), n - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

// One of each rank, in their order.
template <typename T>
std::vector<T> gather(const HostRanks::Ring& ring, const T& mine) {
  auto cpu = default_stream(mlx::core::Device::cpu);
  int ranks = ring->size(), size = sizeof(T);
  array in({size}, uint8, nullptr, {});
  array out({size * ranks}, uint8, nullptr, {});
  in.set_data(allocator::malloc(in.nbytes()));
  out.set_data(allocator::malloc(out.nbytes()));
  std::memcpy(in.data<char>(), &mine, sizeof(T));
  ring->all_gather(in, out, cpu);
  synchronize(cpu);
  std::vector<T> all(ranks);
  std::memcpy(all.data(), out.data<char>(), out.nbytes());
  return all;
}

// Memory that other processes of this user can open by a path while `file` is.
struct SharedMemory {
  void* data = nullptr;
  uint64_t size = 0;
  int file = -1;

  void create(uint64_t bytes) {
    size = bytes;
    std::random_device random;
    auto name = "mlx-vulkan-" + std::to_string(random()) + "-" +
        std::to_string(random());
    file = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
      map();
    }
  }
  // In another container the path may lead to something else.
  void open(const char* path, const char* name, uint64_t bytes) {
    size = bytes;
    file = name_of(path) == name ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
      map();
    }
  }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  }
  static std::string name_of(const std::string& path) {
    std::error_code error; // then it has none
    return std::filesystem::read_symlink(path, error).string();
  }
  void close_file() {
    if (file >= 0) {
      close(file);
      file = -1;
    }
  }
  void unmap() {
    if (data) {
      munmap(data, size);
      data = nullptr;
    }
  }

 private:
  void map() {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    data = p == MAP_FAILED ? nullptr : p;
  }
};

// A slot holds a piece of a large array: it takes longer than to tell others of
// it, and is short against the array. Those of software devices are small, so
// that tests see several.
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

Hello hello_of(int ranks) {
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
  } else if (config().off || !gpu::is_available()) {
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

// Why ranks stay with the ring; empty: nothing is against it.
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
      return "rank " + std::to_string(r) + " cannot: " + all[r].why;
    }
    if (all[r].software != all[0].software) {
      return "some ranks have software devices";
    }
  }
  return {};
}

// Whether every rank has a chip of its own, which may wait for the others'.
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

void say(int rank, const std::string& text, bool aloud) {
  {
    std::lock_guard lock(state_mutex);
    state = text;
  }
  if (aloud && rank == 0) {
    std::fprintf(stderr, "[mlx-vulkan] %s\n", text.c_str());
  }
}

// What each rank found when it mapped and imported the memory.
struct Outcome {
  char why[256];
};

Buffer* import(SharedMemory& memory, Outcome& outcome) {
  if (!memory.data) {
    assign(
        outcome.why,
        "the shared memory cannot be mapped (" +
            std::string(std::strerror(errno)) + ")");
    return nullptr;
  }
  try {
    return device().memory().import_host(memory.data, memory.size);
  } catch (const std::exception& e) {
    assign(outcome.why, e.what());
    return nullptr;
  }
}

array bytes_of(Buffer* buffer) {
  array a({static_cast<int>(buffer->size)}, uint8, nullptr, {});
  // Never freed, as the device may still use it when the process ends.
  set_borrowed(a, allocator::Buffer(buffer));
  return a;
}

// The group, which exchanges data in the fastest way that all of its ranks'
// devices can.
HostRanks::Ring settle(
    const HostRanks::Ring& ring,
    const std::shared_ptr<HostGroup>& group,
    array region,
    bool meets) {
  std::unique_ptr<Carrier> carrier;
  if (meets) {
    carrier = std::make_unique<Carrier>(group, buffer_of(region)->mapped());
  }
  auto ranks = std::make_shared<HostRanks>(
      ring, group, std::move(region), std::move(carrier));
  const char* how = "told by their processes.";
  if (meets) {
    bool sees = sees_in_time(*ranks, [&] { gather(ring, uint8_t(0)); });
    auto all = gather(ring, uint8_t(sees));
    if (std::count(all.begin(), all.end(), 0) == 0) {
      how = "small arrays while their GPUs wait for them.";
    } else {
      ranks->only_tell();
    }
  }
  say(ring->rank(),
      std::string("Ranks exchange data through shared memory, ") + how,
      false);
  return ranks;
}

// The group of these ranks, or the ring.
HostRanks::Ring take_over(const HostRanks::Ring& ring) {
  int rank = ring->rank(), ranks = ring->size();
  Hello mine = hello_of(ranks);
  auto sizes = sizes_of(rank, ranks, mine.software);
  SharedMemory memory;
  if (rank == 0 && mine.wants && !mine.why[0]) {
    memory.create(HostGroup::bytes(sizes));
    assign(mine.memory, memory.path());
    assign(mine.name, SharedMemory::name_of(mine.memory));
  }
  auto all = gather(ring, mine);
  auto why = against(all);
  if (why.empty()) {
    if (rank != 0) {
      memory.open(all[0].memory, all[0].name, HostGroup::bytes(sizes));
    }
    Outcome outcome{};
    Buffer* buffer = import(memory, outcome);
    auto outcomes = gather(ring, outcome);
    for (int r = 0; r < ranks && why.empty(); ++r) {
      if (outcomes[r].why[0]) {
        why = "rank " + std::to_string(r) + " cannot: " + outcomes[r].why;
      }
    }
    memory.close_file();
    if (why.empty()) {
      std::vector<int> processes;
      for (auto& h : all) {
        processes.push_back(h.process);
      }
      auto group = std::make_shared<HostGroup>(memory.data, sizes, processes);
      return settle(ring, group, bytes_of(buffer), can_meet(all));
    }
    // A device may keep what it imported: the mapping stays.
  } else {
    memory.unmap();
    memory.close_file();
  }
  bool same_host = std::strcmp(all.back().host, all[0].host) == 0;
  bool wanted =
      std::all_of(all.begin(), all.end(), [](auto& h) { return h.wants; });
  say(rank,
      "Ranks exchange data over TCP (MLX's ring), as " + why + ".",
      same_host && wanted);
  return ring;
}

bool ring_is_of_one_host() {
  std::ifstream in(config().hostfile, std::ios::binary);
  return on_one_host(std::string(std::istreambuf_iterator<char>(in), {}));
}

} // namespace

HostRanks::Ring group_of(HostRanks::Ring ring) {
  // Ranks of other hosts may have another backend, and not our questions.
  return ring && ring->size() > 1 && ring_is_of_one_host() ? take_over(ring)
                                                           : ring;
}

std::string distributed_state() {
  std::lock_guard lock(state_mutex);
  return state;
}

} // namespace mlx::core::vulkan

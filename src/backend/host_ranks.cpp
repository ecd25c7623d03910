#include "backend/host_ranks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <vector>

#include "backend/data.h"
#include "backend/stream_encoder.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/stream.h"
#include "ranks/handshake.h"
#include "ranks/shared_memory.h"
#include "runtime/device.h"
#include "vk/config.h"
#include "vk/launcher.h"

namespace mlx::core::vulkan {

namespace {

std::mutex state_mutex;
std::string state;

// The values of all ranks, in the order of ranks.
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

void say(int rank, const std::string& text, bool aloud) {
  {
    std::lock_guard lock(state_mutex);
    state = text;
  }
  if (aloud && rank == 0) {
    std::fprintf(stderr, "[mlx-vulkan] %s\n", text.c_str());
  }
}

Buffer* import(const SharedMemory& memory, Outcome& outcome) {
  if (!memory.data()) {
    assign(
        outcome.why,
        "the shared memory cannot be mapped (" +
            std::string(std::strerror(errno)) + ")");
    return nullptr;
  }
  try {
    return import_host(device(), memory.data(), memory.size());
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

// Makes the group exchange data in the fastest way of all its ranks' devices.
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

// The host group of the ranks, or `ring` if they cannot exchange data.
HostRanks::Ring take_over(const HostRanks::Ring& ring) {
  int rank = ring->rank(), ranks = ring->size();
  Hello mine = hello_of(ranks, gpu::is_available);
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
    why = against(gather(ring, outcome));
    memory.close_file();
    if (why.empty()) {
      std::vector<int> processes;
      for (auto& h : all) {
        processes.push_back(h.process);
      }
      auto group = std::make_shared<HostGroup>(memory.data(), sizes, processes);
      return settle(ring, group, bytes_of(buffer), can_meet(all));
    }
    // The mapping stays, because a device may have imported it.
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
  // Ranks on other hosts may have another backend, which takes no part in this.
  return ring && ring->size() > 1 && ring_is_of_one_host() ? take_over(ring)
                                                           : ring;
}

std::string distributed_state() {
  std::lock_guard lock(state_mutex);
  return state;
}

} // namespace mlx::core::vulkan

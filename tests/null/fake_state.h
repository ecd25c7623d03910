// Insides of the fake device: objects, its one state, the entry points.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "null/fake_vulkan.h"

namespace fake {

struct Range {
  uint64_t begin, end;
  bool write;
  bool copy = false; // by one, not by a kernel
  bool for_kernels = true; // unordered before kernels, not only before copies
};

struct Event {
  std::atomic<bool> set{false};
};

// Specialization constants 0 and 1, and 2, of kernels/common/loops.glsl.
struct LoopConstants {
  uint64_t address = 0;
  uint32_t kernel = 0;
};

struct Command {
  enum Kind { Dispatch, Copy, SetEvent, Barrier, Timestamp } kind;
  uint32_t program = 0;
  uint32_t base[3] = {}, groups[3] = {};
  std::vector<std::byte> push;
  LoopConstants loops;
  uint64_t from = 0, to = 0, size = 0; // Copy
  Event* event = nullptr; // SetEvent
  bool to_host = false, to_device = false; // Barrier
  bool kernels_only = false; // orders no copies
  uint64_t* query = nullptr; // Timestamp
  bool after_all = false; // that waits for what is before it
};

struct FakeBuffer;

struct Memory {
  std::byte* data;
  uint64_t size;
  VkMemoryType type;
  std::byte* host; // what the host sees: `data`, or its cache
  bool mapped = false;
  FakeBuffer* dedicated = nullptr; // the only buffer that it may have
};

constexpr uint64_t non_coherent_atom = 64;

struct FakeBuffer {
  uint64_t size = 0;
  Memory* memory = nullptr;
  uint64_t offset = 0;
  uint64_t address() const {
    return reinterpret_cast<uint64_t>(memory->data) + offset;
  }
};

struct Pipeline {
  uint32_t program;
  LoopConstants loops;
  bool takes_base;
};
struct Module {
  uint32_t program;
};
struct Queries {
  std::vector<uint64_t> values;
};

// Dispatchable handles begin with a word for the loader.
struct CommandBuffer {
  void* loader = nullptr;
  enum State { Initial, Recording, Executable } state = Initial;
  std::atomic<int> pending{0};
  uint32_t program = 0;
  LoopConstants loops;
  bool takes_base = false;
  int barriers = 0;
  std::vector<std::byte> push = std::vector<std::byte>(128);
  std::vector<Command> commands;
};

struct Pool {
  std::vector<CommandBuffer*> buffers;
};

struct Semaphore {
  uint64_t value = 0;
};

struct Submission {
  std::vector<CommandBuffer*> buffers;
  Semaphore* signal = nullptr;
  uint64_t value = 0;
  bool dropped = false;
};

struct State {
  std::mutex mutex;
  std::condition_variable cv;
  Settings settings;
  Statistics statistics;
  std::vector<std::string> errors;
  std::map<uint64_t, uint64_t> buffers; // address -> end, bound ones
  std::deque<Submission> queue;
  std::vector<Range> unordered; // accesses since the last barrier
  bool unflushed = false; // writes that no barrier shows to the host
  bool held = false, stop = false, lost = false;
  bool busy = false; // a submission is running
  int submits = 0, pipelines = 0;
  std::mt19937 random;
  std::thread thread;
};

State& state();
VkPhysicalDeviceMemoryProperties memory_properties();
void error(const std::string& text); // under the mutex
void queue_loop(); // the device's thread

template <typename Handle, typename T>
Handle handle(T* p) {
  return reinterpret_cast<Handle>(p);
}
template <typename T, typename Handle>
T* object(Handle h) {
  return reinterpret_cast<T*>(h);
}

// Instance, physical device, device and queue are one object each.
inline void* singletons[4];

// Entry points without their "vk", by file.
using Function = PFN_vkVoidFunction;
Function command_function(const char* name); // fake_commands.cpp
Function object_function(const char* name); // fake_objects.cpp

#define FAKE(f) \
  { "vk" #f, reinterpret_cast<PFN_vkVoidFunction>(f) }

} // namespace fake

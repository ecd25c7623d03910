// Compute pipelines by variant, compiled at first use and kept for the life of
// the device. All kernels share one pipeline layout: 128 bytes of push
// constants, no descriptors.
//
// A request only registers a kernel, because a rewrite may replace the record
// that refers to it. start() has it compiled by a worker thread, so that the
// kernels of many batches compile in parallel; finish() also waits.
//
// Ownership: the table owns its kernels; references stay valid until its
// destruction, when no work may be in flight. Threads: every member may be
// called from any thread; a hit takes no lock and does not allocate.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/disk_cache.h"
#include "pipeline/kernel_list.h"
#include "pipeline/key.h"
#include "pipeline/library.h"
#include "pipeline/variant.h"
#include "pipeline/workers.h"
#include "vk/caps.h"
#include "vk/vk.h"

namespace mlx::core::vulkan {

class KernelReports;

struct Kernel {
  std::string name; // "softmax{T=bf16}"
  bool always_in_memory = false; // arguments are in memory at any size
  bool matrix_units = false; // uses cooperative matrices
  bool shows_cut_loops = false; // pipeline/cut_loops.h
  mutable std::atomic<bool> used{false}; // was in a batch; set by the recorder

  // Valid once the kernel is built.
  VkPipeline pipeline = VK_NULL_HANDLE;
  uint32_t local_size[3] = {1, 1, 1};
  uint32_t args_size = 0; // without trailing padding

  bool built() const {
    return state() == State::Built;
  }
  bool failed() const {
    return state() == State::Failed;
  }
  // Whether its compilation has ended, successfully or not.
  bool settled() const {
    return state() >= State::Failed;
  }
  // Whether arguments of this size are in memory; their address is then pushed.
  bool args_in_memory(size_t host_bytes) const {
    return always_in_memory || host_bytes > max_push_args;
  }
  // Throws std::runtime_error unless the sizes of the host's and the shader's
  // argument blocks agree; trailing padding of a C struct to 8 bytes is
  // allowed. The kernel must be built.
  void check_args(size_t host_bytes) const {
    if (host_bytes != args_size && host_bytes != (args_size + 7u) / 8 * 8) {
      bad_args(host_bytes);
    }
  }

 protected:
  friend class PipelineTable;
  enum class State : uint8_t {
    Registered,
    Queued, // for the workers, or compiled by one
    Compiling, // by the thread that requested it
    Failed,
    Built
  };
  State state() const {
    return state_.load(std::memory_order_acquire);
  }
  std::atomic<State> state_{State::Registered};

 private:
  [[noreturn]] void bad_args(size_t host_bytes) const;
};

// When a kernel is built: at the request, or by start() or finish().
enum class Build : uint8_t { Now, Later };

// The layout of all pipelines: max_push_args bytes of push constants.
VkPipelineLayout create_layout(const Vk& vk, VkDevice device);

// Creates a pipeline of `spirv`. `info` gives layout, flags and the stage
// without its module (the entry point defaults to "main"). Throws VkError, with
// `context` in its message.
VkPipeline create_pipeline(
    const Vk& vk,
    VkDevice device,
    VkPipelineCache cache,
    VkComputePipelineCreateInfo info,
    const std::vector<uint32_t>& spirv,
    const std::string& context);

// Requests subgroups of `wanted` lanes; with 0 any size is allowed. Without
// permission to vary, gl_SubgroupSize is the reported size even if the actual
// one differs (Intel: 32 reported, 8 or 16 actual; Adreno: 128 and 64).
// `local_size_x` is the workgroup's. `size` must outlive `stage`.
void ask_subgroups(
    const Caps& caps,
    uint32_t wanted,
    uint32_t local_size_x,
    VkPipelineShaderStageCreateInfo& stage,
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo& size);

class PipelineTable {
 public:
  PipelineTable(
      const Vk& vk,
      VkDevice device,
      const Caps& caps,
      DiskCache& cache = default_disk_cache(),
      size_t threads = compile_threads());
  ~PipelineTable();
  PipelineTable(const PipelineTable&) = delete;
  PipelineTable& operator=(const PipelineTable&) = delete;

  // The kernel src/kernels/<file>.comp, possibly not built yet. Arguments that
  // exceed the push constants are in memory, with `args_in_memory` in any case.
  // Throws std::invalid_argument for an unknown file, and the error of finish()
  // if a kernel that failed before fails again.
  const Kernel& get(
      std::string_view file,
      std::span<const Define> defines,
      bool args_in_memory = false) {
    KernelHash key = keyed(hash_of(file, defines, args_in_memory));
    if (auto* k = find(key)) {
      return *k;
    }
    return create(key, file, nullptr, defines, args_in_memory, Build::Later);
  }

  // The kernel of a typed variant (variant.h); usually only its values are
  // hashed per call.
  template <KernelVariant V>
  const Kernel& get(const V& variant) {
    if constexpr (requires { variant.words(); }) {
      static const Hasher names =
          hash_of_names(V::file, variant.defines(), false);
      if (auto* k = find(keyed(with_values(names, variant.words())))) {
        return *k;
      }
    }
    return get(V::file, std::span<const Define>(variant.defines()));
  }

  // The kernel of generated GLSL. The whole source is part of the key; keep the
  // result, because hashing a long source is slow. User-written GLSL is built
  // at once, so that its author sees the errors.
  const Kernel& get_source(
      std::string_view name,
      const std::string& source,
      std::span<const Define> defines = {},
      bool args_in_memory = false,
      Build build = Build::Now);

  // Lets a worker compile the kernel, unless that was started before.
  void start(const Kernel& kernel) {
    if (kernel.state() == Kernel::State::Registered) {
      enqueue(kernel);
    }
  }

  // Starts the kernel and blocks until it is built. Throws std::runtime_error
  // on failure: CompileError, VkError, or a missing device feature.
  void finish(const Kernel& kernel) {
    if (!kernel.built()) {
      wait_for(kernel);
    }
  }

  // Builds kernels that a program is expected to request, by workers that have
  // nothing else to do. Those with other globals, and those that fail, are left
  // to the request.
  void prepare(std::vector<ListedKernel> kernels);

  // The kernels of earlier processes on this device, at most `recent_limit`;
  // remember_recent() adds this process's, if any of them is new, in front.
  static constexpr size_t recent_limit = 200;
  std::vector<ListedKernel> recent();
  void remember_recent();

  // Prints that a kernel has been compiling for this long.
  void report_slow(const Kernel& kernel, std::chrono::seconds time) const;

  // `call` runs on the compiling thread after each compilation. Set it before
  // other threads use the table.
  void when_settled(std::function<void()> call) {
    when_settled_ = std::move(call);
  }

  // Stops the threads; kernels not yet built fail. Idempotent.
  void stop();

  // The kernel for vkCmdDispatchBase, with which a long dispatch runs in parts
  // (runtime/work.h). It is a separate pipeline, created on demand, so that
  // unsplit dispatches need not add a base.
  const Kernel& in_parts(const Kernel& kernel);

  // Adds a define to all kernels requested from now on.
  void add_global_define(std::string name, std::string value);

  // Makes kernels requested from now on write to `reports`
  // (pipeline/reports.h), which must outlive them. Call before other threads
  // use the table.
  void report(KernelReports& reports);

  VkPipelineLayout layout() const {
    return layout_;
  }

  // Pipelines created in this process.
  uint64_t size() const {
    return count_.load(std::memory_order_relaxed);
  }

  // Stores the driver's pipeline cache on disk if it has grown.
  void save_driver_cache();

 private:
  // Everything that a pipeline is created from.
  struct Request {
    KernelSource source;
    ListedKernel listed; // the same as text
    uint32_t subgroup = 0; // the define SG; 0: none
    // As in Kernel.
    bool always_in_memory = false, matrix_units = false;
    bool shows_cut_loops = false;
    bool in_parts = false;
  };
  struct Entry : Kernel {
    KernelHash key;
    std::shared_ptr<const Request> request; // kept for in_parts()
    std::exception_ptr error; // under mutex_; the reason of a failed build
    bool early = false; // under mutex_; built before it was requested
  };
  // Hash table with open addressing. Readers take no lock, so a table is
  // replaced instead of rehashed, and retired tables are kept.
  struct Slots {
    explicit Slots(size_t size) : mask(size - 1), entry(size) {}
    size_t mask;
    std::vector<std::atomic<const Entry*>> entry;
  };

  KernelHash keyed(KernelHash h) const {
    h.b ^= globals_hash_.load(std::memory_order_relaxed);
    return h;
  }
  const Kernel* find(const KernelHash& key) const {
    auto* slots = slots_.load(std::memory_order_acquire);
    for (size_t i = key.a;; ++i) {
      auto* e = slots->entry[i & slots->mask].load(std::memory_order_acquire);
      if (!e) {
        return nullptr;
      }
      if (e->key == key) {
        return e;
      }
    }
  }
  const Kernel& create(
      const KernelHash& key,
      std::string_view file,
      const std::string* source,
      std::span<const Define> defines,
      bool args_in_memory,
      Build when);
  // Returns the kernel; without one adds an entry of make_request()'s result.
  template <typename F>
  const Kernel& add(const KernelHash& key, Build when, F make_request);
  void enqueue(const Kernel& kernel);
  void build_early(const ListedKernel& kernel);
  void wait_for(const Kernel& kernel);
  // Compiles and notifies waiters; does not throw.
  void run(Entry& entry);
  void fail(Entry& entry, std::exception_ptr error);
  KernelCode build(Entry& entry);
  void check_device(const KernelCode& code) const;
  // Under mutex_: adds the entry to, or removes it from, the table of find().
  void publish(const Entry& entry);
  void remove(const Entry& entry);
  void load_driver_cache();
  // The cache stored on disk, owned by the caller; null if there is none
  // usable.
  VkPipelineCache stored_driver_cache();
  void store_driver_cache(VkPipelineCache from);

  const Vk& vk_;
  VkDevice device_;
  Caps caps_;
  DiskCache& cache_;
  KernelReports* reports_ = nullptr;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  std::string driver_cache_name_, recent_name_;

  std::atomic<const Slots*> slots_{nullptr};
  std::atomic<uint64_t> globals_hash_{0};
  std::atomic<uint64_t> count_{0};

  std::mutex mutex_; // guards all below
  std::condition_variable built_; // signals that a kernel was built or failed
  std::vector<KernelHash> failed_; // built at once if requested again
  std::deque<Entry> entries_;
  std::vector<std::unique_ptr<Slots>> tables_; // the last one is current
  size_t placed_ = 0; // entries in the current table
  NamedValues globals_;
  uint64_t unsaved_ = 0; // pipelines created since the last save

  std::function<void()> when_settled_ = [] {};
  Workers workers_; // last, because its threads use the other members
};

} // namespace mlx::core::vulkan

// Compute pipelines by variant: compiled at first use, kept for the life of
// the device. All kernels share one pipeline layout: 128 bytes of push
// constants, no descriptors.
//
// A kernel is compiled by threads of the table's own while its user goes on: a
// record may name it before it is built, and finish() is called before its
// commands are written. So the variants of a batch compile side by side.
//
// Ownership: the table owns its kernels; references stay valid until it is
// destroyed, when no work may be in flight. Threads: every member may be
// called from any thread; a hit takes no lock and does not allocate.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/disk_cache.h"
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
  bool always_in_memory = false; // arguments, whatever their size
  bool matrix_units = false; // uses cooperative matrices
  bool shows_cut_loops = false; // pipeline/cut_loops.h

  // Known once it is built.
  VkPipeline pipeline = VK_NULL_HANDLE;
  uint32_t local_size[3] = {1, 1, 1};
  uint32_t args_size = 0; // without padding at the end

  bool built() const {
    return built_.load(std::memory_order_acquire);
  }
  // Whether its compilation has ended, with or without an error.
  bool settled() const {
    return settled_.load(std::memory_order_acquire);
  }
  // Arguments of this size lie in memory, and their address is pushed.
  bool args_in_memory(size_t host_bytes) const {
    return always_in_memory || host_bytes > max_push_args;
  }
  // Throws std::runtime_error unless the host's argument block has the size
  // of the shader's. Padding to 8 bytes at the end of a C struct is allowed.
  // Of a kernel that is built.
  void check_args(size_t host_bytes) const {
    if (host_bytes != args_size && host_bytes != (args_size + 7u) / 8 * 8) {
      bad_args(host_bytes);
    }
  }

 protected:
  std::atomic<bool> built_{false}, settled_{false};

 private:
  [[noreturn]] void bad_args(size_t host_bytes) const;
};

// Who waits until a kernel is built: who asks for it, or who first needs it.
enum class Build : uint8_t { Now, Later };

// The layout of all pipelines: max_push_args bytes of push constants.
VkPipelineLayout create_layout(const Vk& vk, VkDevice device);

// A pipeline of `spirv`; `info` says the rest: layout, flags, and of its stage
// all but the module (its name is "main" if none is given). Throws VkError,
// with `context` in its text.
VkPipeline create_pipeline(
    const Vk& vk,
    VkDevice device,
    VkPipelineCache cache,
    VkComputePipelineCreateInfo info,
    const std::vector<uint32_t>& spirv,
    const std::string& context);

// Asks for subgroups of `wanted` lanes, for which a kernel is written; with 0
// it may run in any size: without leave to vary, gl_SubgroupSize is the
// reported size whatever runs, on Intel 32 where 8 or 16 lanes do, on Adreno
// 128 where 64 do. `local_size_x` is the workgroup's. `size` must live as long
// as `stage`.
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

  // The kernel src/kernels/<file>.comp, maybe not built yet. Arguments that do
  // not fit the push constants go to memory; `args_in_memory` puts them there
  // in any case. Throws std::invalid_argument for an unknown file, and what
  // finish() threw if the kernel has failed before and does so again.
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
  const Kernel& get(
      std::string_view file,
      std::initializer_list<Define> defines,
      bool args_in_memory = false) {
    return get(
        file, std::span(defines.begin(), defines.size()), args_in_memory);
  }

  // The same of a typed variant (variant.h); of most, only the values are
  // hashed at each call.
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

  // The same for GLSL made at run time. The whole source is part of the key;
  // hold on to the result, since hashing a long source is not free. A user's
  // GLSL is built at once, so that who wrote it is told of errors in it.
  const Kernel& get_source(
      std::string_view name,
      const std::string& source,
      std::span<const Define> defines = {},
      bool args_in_memory = false,
      Build build = Build::Now);

  // Blocks until the kernel is built. Throws std::runtime_error if it cannot
  // be: CompileError, VkError, or because the device lacks what it needs.
  void finish(const Kernel& kernel) {
    if (!kernel.built()) {
      wait_for(kernel);
    }
  }

  // Ends the threads; what is not built yet fails. Idempotent.
  void stop();

  // The same kernel for vkCmdDispatchBase, so that a long dispatch can run in
  // parts (runtime/work.h). A pipeline of its own, made when first asked for:
  // what is never split needs no base added to its workgroups' numbers.
  const Kernel& in_parts(const Kernel& kernel);

  // A define that all kernels asked for from now on see.
  void add_global_define(std::string name, std::string value);

  // Kernels asked for from now on report to it (pipeline/reports.h). It
  // outlives their use. Before any other thread knows the table.
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
  // What a pipeline is made of.
  struct Request {
    KernelSource source;
    uint32_t subgroup = 0; // the define SG, 0: none
    // As Kernel's.
    bool always_in_memory = false, matrix_units = false;
    bool shows_cut_loops = false;
    bool in_parts = false;
  };
  struct Entry : Kernel {
    KernelHash key;
    std::shared_ptr<const Request> request; // kept for in_parts()
    bool queued = false; // under mutex_
    std::exception_ptr error; // under mutex_; why it could not be built

    void set_built() {
      built_.store(true, std::memory_order_release);
      settled_.store(true, std::memory_order_release);
    }
    void set_error(std::exception_ptr e) {
      error = std::move(e);
      settled_.store(true, std::memory_order_release);
    }
  };
  // Open addressing. Readers see it without a lock, so that it is replaced,
  // never rehashed in place; retired tables are kept.
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
  // Under mutex_: a new entry, found from now on; it may turn `when` to Now.
  Entry& add(
      const KernelHash& key,
      std::shared_ptr<const Request> request,
      Build& when);
  const Kernel& start(Entry& entry, Build when);
  void wait_for(const Kernel& kernel);
  // Compiles and tells who waits; throws nothing.
  void run(Entry& entry);
  void fail(Entry& entry, std::exception_ptr error);
  KernelCode build(Entry& entry);
  void check_device(const KernelCode& code) const;
  // Under mutex_: find() sees it from now on, or no more.
  void publish(const Entry& entry);
  void remove(const Entry& entry);
  void load_driver_cache();
  // What is on disk, null if nothing of use; the caller's.
  VkPipelineCache stored_driver_cache();
  void store_driver_cache(VkPipelineCache from);

  const Vk& vk_;
  VkDevice device_;
  Caps caps_;
  DiskCache& cache_;
  KernelReports* reports_ = nullptr;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  std::string driver_cache_name_;

  std::atomic<const Slots*> slots_{nullptr};
  std::atomic<uint64_t> globals_hash_{0};
  std::atomic<uint64_t> count_{0};

  std::mutex mutex_; // all below
  std::condition_variable built_; // or failed
  std::vector<KernelHash> failed_; // asked for again, they are built at once
  std::deque<Entry> entries_;
  std::vector<std::unique_ptr<Slots>> tables_; // the last one is current
  size_t placed_ = 0; // in the current one
  NamedValues globals_;
  uint64_t unsaved_ = 0; // pipelines created since the last save

  Workers workers_; // last: its threads use the rest
};

} // namespace mlx::core::vulkan

#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <SPIRV/spirv.hpp11>

#include "pipeline/capabilities.h"
#include "pipeline/compiler.h"
#include "pipeline/hash.h"
#include "pipeline/reports.h"
#include "pipeline/sources.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Pipelines between saves; a save serializes the driver's whole cache.
constexpr uint64_t save_interval = 64;
constexpr size_t first_table_size = 1024;
// Distinguishes a kernel's pipeline for parts from its usual one.
constexpr uint64_t in_parts_hash = 0x9e3779b97f4a7c15ull;

constexpr char parts_entry[] = "part";

// Renames "main" to another four letters (SPIR-V 2.3 and OpEntryPoint).
void rename_entry_point(std::vector<uint32_t>& spirv, const char (&name)[5]) {
  for (size_t i = spirv_header; i < spirv.size(); i += spirv[i] >> 16) {
    if ((spirv[i] & 0xffff) == uint32_t(spv::Op::OpEntryPoint)) {
      std::memcpy(&spirv[i + 3], name, 4);
      return;
    }
  }
}

std::exception_ptr stopped_error() {
  return std::make_exception_ptr(std::runtime_error(
      "[vulkan] The device was shut down before this kernel was compiled."));
}

} // namespace

VkPipelineLayout create_layout(const Vk& vk, VkDevice device) {
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, max_push_args};
  VkPipelineLayoutCreateInfo info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  vk_check(
      vk.vkCreatePipelineLayout(device, &info, nullptr, &layout),
      "vkCreatePipelineLayout");
  return layout;
}

VkPipeline create_pipeline(
    const Vk& vk,
    VkDevice device,
    VkPipelineCache cache,
    VkComputePipelineCreateInfo info,
    const std::vector<uint32_t>& spirv,
    const std::string& context) {
  VkShaderModuleCreateInfo module_info{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = spirv.size() * 4;
  module_info.pCode = spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  vk_check(
      vk.vkCreateShaderModule(device, &module_info, nullptr, &module),
      "vkCreateShaderModule",
      context);
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  if (!info.stage.pName) {
    info.stage.pName = "main";
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkResult result =
      vk.vkCreateComputePipelines(device, cache, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device, module, nullptr);
  vk_check(result, "vkCreateComputePipelines", context);
  return pipeline;
}

void Kernel::bad_args(size_t host_bytes) const {
  throw std::runtime_error(
      "[vulkan] The kernel " + name + " takes " + std::to_string(args_size) +
      " bytes of arguments, but the host passed " + std::to_string(host_bytes) +
      ": addresses of inputs and outputs plus the parameter struct must equal "
      "the kernel's ARGS.");
}

void ask_subgroups(
    const Caps& caps,
    uint32_t wanted,
    uint32_t local_size_x,
    VkPipelineShaderStageCreateInfo& stage,
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo& size) {
  if (caps.min_subgroup_size == caps.max_subgroup_size) {
    return;
  }
  if (wanted && caps.required_subgroup_size) {
    size.requiredSubgroupSize = wanted;
    stage.pNext = &size;
    // Full subgroups may be required only if they fill the first axis.
    if (caps.full_subgroups && local_size_x % wanted == 0) {
      stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
  } else if (caps.subgroup_size_control) {
    stage.flags |=
        VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT;
  }
}

PipelineTable::PipelineTable(
    const Vk& vk,
    VkDevice device,
    const Caps& caps,
    DiskCache& cache,
    size_t threads)
    : vk_(vk),
      device_(device),
      caps_(caps),
      cache_(cache),
      driver_cache_name_(
          std::string(DiskCache::driver_prefix) + caps.uuid + '-' +
          std::to_string(caps.driver_version)),
      recent_name_("recent-" + caps.uuid),
      workers_(threads) {
  tables_.push_back(std::make_unique<Slots>(first_table_size));
  slots_ = tables_.back().get();
  layout_ = create_layout(vk_, device_);
  load_driver_cache();
}

PipelineTable::~PipelineTable() {
  stop();
  for (auto& e : entries_) {
    vk_.vkDestroyPipeline(device_, e.pipeline, nullptr);
  }
  vk_.vkDestroyPipelineCache(device_, driver_cache_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
}

const Kernel& PipelineTable::get_source(
    std::string_view name,
    const std::string& source,
    std::span<const Define> defines,
    bool args_in_memory,
    Build build) {
  // A define name with a space cannot collide with a kernel file's variants.
  std::vector<Define> all(defines.begin(), defines.end());
  all.emplace_back("run time", std::string_view(source));
  KernelHash key = keyed(hash_of(name, all, args_in_memory));
  auto* k = find(key);
  if (!k) {
    k = &create(key, name, &source, defines, args_in_memory, build);
  }
  if (build == Build::Now) {
    finish(*k);
  }
  return *k;
}

void PipelineTable::add_global_define(std::string name, std::string value) {
  std::lock_guard lock(mutex_);
  globals_.emplace_back(std::move(name), std::move(value));
  Hasher h;
  for (auto& [n, v] : globals_) {
    h.add(n);
    h.add(v);
  }
  globals_hash_ = h.a();
}

void PipelineTable::report(KernelReports& reports) {
  reports_ = &reports;
  if (reports.loops()) {
    add_global_define("LOOP_LIMIT", std::to_string(reports.limit()));
  }
  if (reports.bounds()) {
    add_global_define("BOUNDS_REPORT", "1");
  }
}

const Kernel& PipelineTable::create(
    const KernelHash& key,
    std::string_view file,
    const std::string* source,
    std::span<const Define> defines,
    bool args_in_memory,
    Build when) {
  return add(key, when, [&] {
    auto request = std::make_shared<Request>();
    request->source =
        kernel_source(file, defines, args_in_memory, globals_, source);
    request->listed = {
        globals_,
        std::string(file),
        named_values(defines),
        source ? *source : std::string(),
        args_in_memory};
    for (auto& d : defines) {
      if (d.name == "SG") {
        request->subgroup = static_cast<uint32_t>(d.value);
      }
      request->matrix_units |= d.name == "COOPMAT" && d.value;
    }
    request->always_in_memory = args_in_memory;
    request->shows_cut_loops =
        source && source->find("check_whole_loops(") != source->npos;
    return request;
  });
}

const Kernel& PipelineTable::in_parts(const Kernel& kernel) {
  auto& whole = static_cast<const Entry&>(kernel);
  if (whole.request->in_parts) {
    return kernel;
  }
  KernelHash key{whole.key.a, whole.key.b ^ in_parts_hash};
  return add(key, Build::Later, [&] {
    auto request = std::make_shared<Request>(*whole.request);
    request->in_parts = true;
    return request;
  });
}

template <typename F>
const Kernel&
PipelineTable::add(const KernelHash& key, Build when, F make_request) {
  Entry* entry;
  {
    std::lock_guard lock(mutex_);
    if (auto* k = find(key)) {
      return *k;
    }
    std::shared_ptr<const Request> request = make_request();
    entry = &entries_.emplace_back();
    entry->key = key;
    entry->name = request->source.name;
    entry->always_in_memory = request->always_in_memory;
    entry->shows_cut_loops = request->shows_cut_loops;
    entry->matrix_units = request->matrix_units;
    entry->request = std::move(request);
    // It may fail again. Built at once, it throws to the caller before anything
    // is recorded.
    if (std::erase(failed_, key)) {
      when = Build::Now;
    }
    if (when == Build::Now) {
      entry->state_ = Kernel::State::Compiling;
    }
    publish(*entry);
  }
  if (when == Build::Now) {
    run(*entry);
    finish(*entry);
  }
  return *entry;
}

void PipelineTable::enqueue(const Kernel& kernel) {
  auto& entry = const_cast<Entry&>(static_cast<const Entry&>(kernel));
  auto registered = Kernel::State::Registered;
  if (entry.state_.compare_exchange_strong(registered, Kernel::State::Queued) &&
      !workers_.add([this, &entry] { run(entry); })) {
    fail(entry, stopped_error());
  }
}

void PipelineTable::prepare(std::vector<ListedKernel> kernels) {
  for (auto& k : kernels) {
    workers_.add_idle([this, k = std::move(k)] { build_early(k); });
  }
}

void PipelineTable::build_early(const ListedKernel& k) {
  {
    std::lock_guard lock(mutex_);
    if (k.globals != globals_) {
      return;
    }
  }
  try {
    auto defines = to_defines(k.defines);
    auto& kernel = k.source.empty()
        ? get(k.file, defines, k.args_in_memory)
        : get_source(k.file, k.source, defines, k.args_in_memory, Build::Later);
    auto& entry = const_cast<Entry&>(static_cast<const Entry&>(kernel));
    auto registered = Kernel::State::Registered;
    if (entry.state_.compare_exchange_strong(
            registered, Kernel::State::Queued)) {
      {
        std::lock_guard lock(mutex_);
        entry.early = true;
      }
      run(entry);
    }
  } catch (const std::exception&) {
    // Another version of the library has no such kernel.
  }
}

std::vector<ListedKernel> PipelineTable::recent() {
  auto bytes = cache_.get(recent_name_).value_or(std::vector<std::byte>());
  std::string_view text(
      reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return kernels_in(text).value_or(std::vector<ListedKernel>());
}

void PipelineTable::remember_recent() {
  if (!cache_.enabled() || reports_) {
    return;
  }
  auto before = recent();
  std::vector<ListedKernel> all;
  bool changed = false;
  auto in = [](auto& list, auto& k) {
    return std::find(list.begin(), list.end(), k) != list.end();
  };
  {
    std::lock_guard lock(mutex_);
    for (auto& e : entries_) {
      if (e.built() && (e.used || !e.early) && !e.request->in_parts) {
        changed |= !in(before, e.request->listed);
        all.push_back(e.request->listed);
      }
    }
  }
  if (!changed) {
    return;
  }
  std::copy_if(
      before.begin(), before.end(), std::back_inserter(all), [&](auto& k) {
        return !in(all, k);
      });
  all.resize(std::min(all.size(), recent_limit));
  auto text = text_of(all);
  cache_.put(recent_name_, std::as_bytes(std::span(text)));
}

void PipelineTable::report_slow(const Kernel& kernel, std::chrono::seconds time)
    const {
  std::fprintf(
      stderr,
      "[mlx-vulkan] %s has been compiling the kernel %s for %lld s or more. "
      "What needs it waits on.\n",
      caps_.driver.c_str(),
      kernel.name.c_str(),
      static_cast<long long>(time.count()));
}

void PipelineTable::wait_for(const Kernel& kernel) {
  start(kernel);
  auto& entry = static_cast<const Entry&>(kernel);
  std::unique_lock lock(mutex_);
  auto settled = [&] { return entry.settled(); };
  // system_clock: the thread sanitizer does not know timed waits on the other.
  std::chrono::seconds limit(config().timeout_s);
  if (limit.count() != 0 &&
      !built_.wait_until(
          lock, std::chrono::system_clock::now() + limit, settled)) {
    report_slow(kernel, limit);
  }
  built_.wait(lock, settled);
  if (entry.error) {
    std::rethrow_exception(entry.error);
  }
}

void PipelineTable::run(Entry& entry) {
  try {
    auto code = build(entry);
    bool save = false;
    {
      std::lock_guard lock(mutex_);
      entry.state_ = Kernel::State::Built;
      ++count_;
      // The driver's cache has those of earlier processes.
      save = !entry.early && ++unsaved_ >= save_interval;
    }
    built_.notify_all();
    when_settled_();
    // Stored last, because nobody waits for the disk.
    store_code(cache_, code);
    if (save) {
      save_driver_cache();
      remember_recent();
    }
  } catch (...) {
    if (!entry.built()) {
      fail(entry, std::current_exception());
    }
  }
}

void PipelineTable::fail(Entry& entry, std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    entry.error = std::move(error);
    entry.state_ = Kernel::State::Failed;
    remove(entry);
    failed_.push_back(entry.key);
  }
  built_.notify_all();
  when_settled_();
}

void PipelineTable::stop() {
  workers_.stop();
  std::vector<Entry*> dropped;
  {
    std::lock_guard lock(mutex_);
    for (auto& e : entries_) {
      if (e.state() == Kernel::State::Queued) {
        dropped.push_back(&e);
      }
    }
  }
  for (auto* e : dropped) {
    fail(*e, stopped_error());
  }
}

KernelCode PipelineTable::build(Entry& entry) {
  const Request& request = *entry.request;
  auto code = load_or_compile(request.source, &cache_);
  check_device(code);

  VkComputePipelineCreateInfo info{};
  info.layout = layout_;
  info.flags = request.in_parts ? VK_PIPELINE_CREATE_DISPATCH_BASE_BIT : 0;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  ask_subgroups(
      caps_,
      request.subgroup,
      code.reflection.local_size[0],
      info.stage,
      subgroup);
  KernelReports::Constants report{};
  VkSpecializationInfo constants{};
  if (reports_) {
    report = reports_->add_kernel(
        code.name, request.source.file, request.source.text);
    constants = report.info();
    info.stage.pSpecializationInfo = &constants;
  }
  std::vector<uint32_t> renamed;
  if (request.in_parts) {
    // NVIDIA's driver ignores the flag and returns the code of the usual
    // pipeline, without a base, unless the name differs.
    renamed = code.spirv;
    rename_entry_point(renamed, parts_entry);
    info.stage.pName = parts_entry;
  }
  auto start = std::chrono::steady_clock::now();
  entry.pipeline = create_pipeline(
      vk_,
      device_,
      driver_cache_,
      info,
      request.in_parts ? renamed : code.spirv,
      " for the kernel " + code.name);
  compile_counters().pipeline_ns +=
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count();
  ++compile_counters().pipelines;
  std::copy_n(code.reflection.local_size, 3, entry.local_size);
  entry.args_size = code.reflection.args_size;
  return code;
}

void PipelineTable::check_device(const KernelCode& code) const {
  auto text = [](uint64_t n) { return std::to_string(n); };
  auto check = [&](uint64_t n, uint64_t most, std::string needs, auto unit) {
    if (most && n > most) {
      throw std::runtime_error(
          "[vulkan] The kernel " + code.name + needs + text(n) + unit + "; " +
          caps_.name + " allows " + text(most) + '.');
    }
  };
  for (uint32_t c : code.reflection.capabilities) {
    if (!offers(caps_, c)) {
      throw std::runtime_error(
          "[vulkan] The kernel " + code.name + " needs " + capability_name(c) +
          " of SPIR-V, which " + caps_.name +
          " does not offer or this backend does not enable.");
    }
  }
  auto& size = code.reflection.local_size;
  check(
      uint64_t(size[0]) * size[1] * size[2],
      caps_.max_workgroup_size,
      " has workgroups of ",
      " invocations");
  for (int axis = 0; axis < 3; ++axis) {
    check(
        size[axis],
        caps_.max_workgroup_axes[axis],
        " has workgroups of ",
        std::string(" invocations along ") + "xyz"[axis]);
  }
  check(
      code.reflection.shared_size,
      caps_.shared_memory,
      " needs ",
      " bytes of shared memory");
}

void PipelineTable::publish(const Entry& entry) {
  auto place = [](Slots& slots, const Entry& e) {
    size_t i = e.key.a & slots.mask;
    while (slots.entry[i].load(std::memory_order_relaxed)) {
      i = (i + 1) & slots.mask;
    }
    slots.entry[i].store(&e, std::memory_order_release);
  };
  auto& current = *tables_.back();
  if (++placed_ * 2 <= current.entry.size()) {
    place(current, entry);
    return;
  }
  auto larger = std::make_unique<Slots>(current.entry.size() * 4);
  placed_ = 0;
  for (auto& e : entries_) {
    if (!e.error) {
      place(*larger, e);
      ++placed_;
    }
  }
  slots_.store(larger.get(), std::memory_order_release);
  tables_.push_back(std::move(larger));
}

void PipelineTable::remove(const Entry& entry) {
  // The slot stays occupied, so that entries probed behind it are still found.
  static const Entry nobody;
  for (auto& slot : tables_.back()->entry) {
    if (slot.load(std::memory_order_relaxed) == &entry) {
      slot.store(&nobody, std::memory_order_release);
    }
  }
}

VkPipelineCache PipelineTable::stored_driver_cache() {
  auto blob = cache_.get(driver_cache_name_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache stored = VK_NULL_HANDLE;
  if (blob) {
    info.initialDataSize = blob->size();
    info.pInitialData = blob->data();
    // A driver may reject old data.
    if (vk_.vkCreatePipelineCache(device_, &info, nullptr, &stored) !=
        VK_SUCCESS) {
      return VK_NULL_HANDLE;
    }
  }
  return stored;
}

void PipelineTable::load_driver_cache() {
  driver_cache_ = stored_driver_cache();
  if (!driver_cache_) {
    // The first process on this device. The kernels that the library ships
    // would wait for an only thread.
    if (compile_threads() > 1) {
      workers_.add_idle(prepare_compiler);
    }
    VkPipelineCacheCreateInfo info{
        VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    vk_check(
        vk_.vkCreatePipelineCache(device_, &info, nullptr, &driver_cache_),
        "vkCreatePipelineCache");
  }
}

void PipelineTable::save_driver_cache() {
  {
    std::lock_guard lock(mutex_);
    // Reports have another address in each process.
    if (unsaved_ == 0 || !cache_.enabled() || reports_) {
      return;
    }
    unsaved_ = 0;
  }
  // Keeps what other processes have stored meanwhile. The destination of a
  // merge must not be in use by another thread, so it is a cache of its own.
  VkPipelineCache all = stored_driver_cache();
  if (all &&
      vk_.vkMergePipelineCaches(device_, all, 1, &driver_cache_) !=
          VK_SUCCESS) {
    vk_.vkDestroyPipelineCache(device_, all, nullptr);
    all = VK_NULL_HANDLE;
  }
  store_driver_cache(all ? all : driver_cache_);
  vk_.vkDestroyPipelineCache(device_, all, nullptr);
}

void PipelineTable::store_driver_cache(VkPipelineCache from) {
  size_t size = 0;
  if (vk_.vkGetPipelineCacheData(device_, from, &size, nullptr) != VK_SUCCESS) {
    return;
  }
  std::vector<std::byte> blob(size);
  // VK_INCOMPLETE, if it grew meanwhile, is still a valid cache.
  if (vk_.vkGetPipelineCacheData(device_, from, &size, blob.data()) >=
      VK_SUCCESS) {
    blob.resize(size);
    cache_.put(driver_cache_name_, blob);
  }
}

} // namespace mlx::core::vulkan

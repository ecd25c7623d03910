#include "pipeline/pipeline.h"

#include <algorithm>

#include "pipeline/hash.h"
#include "pipeline/loops.h"
#include "pipeline/sources.h"

namespace mlx::core::vulkan {

namespace {

// Saving serializes the driver's whole cache: not after each pipeline.
constexpr uint64_t save_interval = 64;
constexpr size_t first_table_size = 1024;

// SPIR-V capabilities that only some of our devices offer.
struct OptionalCapability {
  uint32_t capability;
  bool Caps::*offered;
  const char* feature;
};
constexpr OptionalCapability optional_capabilities[] = {
    {9, &Caps::shader_float16, "shaderFloat16"},
    {5116, &Caps::bfloat16, "VK_KHR_shader_bfloat16"},
    {5118, &Caps::bfloat16, "VK_KHR_shader_bfloat16"},
    {5345, &Caps::vulkan_memory_model, "vulkanMemoryModel"},
    {6019, &Caps::integer_dot_product, "shaderIntegerDotProduct"},
    {6022, &Caps::cooperative_matrix, "VK_KHR_cooperative_matrix"},
};

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
  info.stage.pName = "main";
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
    std::span<const Define> defines,
    VkPipelineShaderStageCreateInfo& stage,
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo& size) {
  if (caps.min_subgroup_size == caps.max_subgroup_size) {
    return;
  }
  for (auto& d : defines) {
    if (d.name == "SG" && caps.required_subgroup_size) {
      size.requiredSubgroupSize = static_cast<uint32_t>(d.value);
      stage.pNext = &size;
      if (caps.full_subgroups) {
        stage.flags |=
            VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
      }
      return;
    }
  }
  if (caps.subgroup_size_control) {
    stage.flags |=
        VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT;
  }
}

PipelineTable::PipelineTable(
    const Vk& vk,
    VkDevice device,
    const Caps& caps,
    DiskCache& cache)
    : vk_(vk),
      device_(device),
      caps_(caps),
      cache_(cache),
      driver_cache_name_(
          std::string(DiskCache::driver_prefix) + caps.uuid + '-' +
          std::to_string(caps.driver_version)) {
  tables_.push_back(std::make_unique<Slots>(first_table_size));
  slots_ = tables_.back().get();
  layout_ = create_layout(vk_, device_);
  load_driver_cache();
}

PipelineTable::~PipelineTable() {
  for (auto& e : entries_) {
    vk_.vkDestroyPipeline(device_, e.kernel.pipeline, nullptr);
  }
  vk_.vkDestroyPipelineCache(device_, driver_cache_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
}

const Kernel& PipelineTable::get_source(
    std::string_view name,
    const std::string& source,
    std::span<const Define> defines,
    bool args_in_memory) {
  // A define name with a space cannot collide with a kernel file's variants.
  std::vector<Define> all(defines.begin(), defines.end());
  all.emplace_back("run time", std::string_view(source));
  KernelHash key = keyed(hash_of(name, all, args_in_memory));
  if (auto* k = find(key)) {
    return *k;
  }
  return create(key, name, &source, defines, args_in_memory);
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

void PipelineTable::report_loops(LoopReport& report) {
  loop_report_ = &report;
  add_global_define("LOOP_LIMIT", std::to_string(report.limit()));
}

const Kernel& PipelineTable::create(
    const KernelHash& key,
    std::string_view file,
    const std::string* source,
    std::span<const Define> defines,
    bool args_in_memory) {
  NamedValues globals;
  {
    std::unique_lock lock(mutex_);
    auto compiling = [&] {
      return std::find(in_flight_.begin(), in_flight_.end(), key) !=
          in_flight_.end();
    };
    built_.wait(lock, [&] { return !compiling(); });
    if (auto* k = find(key)) {
      return *k;
    }
    in_flight_.push_back(key);
    globals = globals_;
  }
  // Other variants compile meanwhile in other threads.
  auto finish = [&] {
    std::erase(in_flight_, key);
    built_.notify_all();
  };
  try {
    Kernel kernel = build(file, source, defines, args_in_memory, globals);
    bool save = false;
    const Kernel* result;
    {
      std::lock_guard lock(mutex_);
      result = &insert(key, std::move(kernel));
      finish();
      save = ++unsaved_ >= save_interval;
    }
    if (save) {
      save_driver_cache();
    }
    return *result;
  } catch (...) {
    std::lock_guard lock(mutex_);
    finish();
    throw;
  }
}

Kernel PipelineTable::build(
    std::string_view file,
    const std::string* source,
    std::span<const Define> defines,
    bool args_in_memory,
    const NamedValues& globals) {
  auto code = source
      ? compile_source(file, *source, defines, args_in_memory, globals, &cache_)
      : compile_kernel(file, defines, args_in_memory, globals, &cache_);
  check_device(code);

  VkComputePipelineCreateInfo info{};
  info.layout = layout_;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  ask_subgroups(caps_, defines, info.stage, subgroup);
  LoopReport::Constants loops{};
  VkSpecializationInfo constants{};
  if (loop_report_) {
    loops = source
        ? loop_report_->add_kernel(code.name, std::string(file), *source)
        : loop_report_->add_kernel(
              code.name, source_name(file), *read_source(source_name(file)));
    constants = loops.info();
    info.stage.pSpecializationInfo = &constants;
  }
  Kernel k;
  k.pipeline = create_pipeline(
      vk_,
      device_,
      driver_cache_,
      info,
      code.spirv,
      " for the kernel " + code.name);
  std::copy_n(code.reflection.local_size, 3, k.local_size);
  k.args_size = code.reflection.args_size;
  k.args_in_memory = code.args_in_memory;
  k.name = std::move(code.name);
  return k;
}

void PipelineTable::check_device(const KernelCode& code) const {
  for (auto& o : optional_capabilities) {
    if (code.reflection.has_capability(o.capability) && !(caps_.*o.offered)) {
      throw std::runtime_error(
          "[vulkan] The kernel " + code.name + " needs " + o.feature +
          ", which " + caps_.name + " does not offer.");
    }
  }
  auto& size = code.reflection.local_size;
  if (uint64_t(size[0]) * size[1] * size[2] > caps_.max_workgroup_size &&
      caps_.max_workgroup_size) {
    throw std::runtime_error(
        "[vulkan] The kernel " + code.name + " has workgroups of " +
        std::to_string(uint64_t(size[0]) * size[1] * size[2]) +
        " invocations; " + caps_.name + " allows " +
        std::to_string(caps_.max_workgroup_size) + '.');
  }
  if (code.reflection.shared_size > caps_.shared_memory &&
      caps_.shared_memory) {
    throw std::runtime_error(
        "[vulkan] The kernel " + code.name + " needs " +
        std::to_string(code.reflection.shared_size) +
        " bytes of shared memory; " + caps_.name + " has " +
        std::to_string(caps_.shared_memory) + '.');
  }
}

const Kernel& PipelineTable::insert(const KernelHash& key, Kernel kernel) {
  entries_.push_back({key, std::move(kernel)});
  count_ = entries_.size();
  auto place = [](Slots& slots, const Entry& e) {
    size_t i = e.key.a & slots.mask;
    while (slots.entry[i].load(std::memory_order_relaxed)) {
      i = (i + 1) & slots.mask;
    }
    slots.entry[i].store(&e, std::memory_order_release);
  };
  auto& current = *tables_.back();
  if (entries_.size() * 2 <= current.entry.size()) {
    place(current, entries_.back());
  } else {
    auto larger = std::make_unique<Slots>(current.entry.size() * 4);
    for (auto& e : entries_) {
      place(*larger, e);
    }
    slots_.store(larger.get(), std::memory_order_release);
    tables_.push_back(std::move(larger));
  }
  return entries_.back().kernel;
}

VkPipelineCache PipelineTable::stored_driver_cache() {
  auto blob = cache_.get(driver_cache_name_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache stored = VK_NULL_HANDLE;
  if (blob) {
    info.initialDataSize = blob->size();
    info.pInitialData = blob->data();
    // A driver may refuse old data.
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
    // Loop reports have another address in each process.
    if (unsaved_ == 0 || !cache_.enabled() || loop_report_) {
      return;
    }
    unsaved_ = 0;
  }
  // What other processes have stored meanwhile is kept. The destination of a
  // merge must not be in use by another thread: it is one of its own.
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

// matrix_units FOLDER: what the matrix units of this machine's GPU reach, by
// VK_KHR_cooperative_matrix and VK_NV_cooperative_matrix2, tile by tile: the
// question of docs/lab/2026-11-22-matrix-units.md. FOLDER holds khr.comp and
// nv.comp. Prints a JSON line a shape and variant; results are checked.
// matrix_units FOLDER TEXT FILE: the rows that have TEXT in them alone, and the
// driver's code for them in FILE (a pipeline cache).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "pipeline/library.h"
#include "pipeline/pipeline.h"
#include "vk/features.h"
#include "vk/instance.h"

using namespace mlx::core::vulkan;
using Json = nlohmann::ordered_json;

namespace {

struct Shape {
  uint32_t m, n, k;
};

struct Variant {
  const char* kernel; // khr, nv
  uint32_t bm, bn, bk;
  uint32_t wm = 0, wn = 0, buffers = 0; // khr: subgroups per tile
  uint32_t wg = 0; // nv: invocations
  bool quant = false;
};

// Those that the library does not need.
#define MATRIX_UNITS_FUNCTIONS(X)  \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkBindBufferMemory)            \
  X(vkMapMemory)

struct MemoryFunctions {
#define MEMBER(name) PFN_##name name = nullptr;
  MATRIX_UNITS_FUNCTIONS(MEMBER)
#undef MEMBER
  void load(const Vk& vk, VkDevice device) {
#define LOAD(f) \
  f = reinterpret_cast<PFN_##f>(vk.vkGetDeviceProcAddr(device, #f));
    MATRIX_UNITS_FUNCTIONS(LOAD)
#undef LOAD
  }
};

struct Memory {
  VkBuffer buffer;
  VkDeviceMemory memory;
  VkDeviceAddress address;
  uint16_t* mapped;
};

uint16_t bits_of(float x, Type type) {
  // Small integers and their quarters: exact in both formats.
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if (type == Type::bf16) {
    return static_cast<uint16_t>(u >> 16);
  }
  if (x == 0) {
    return 0;
  }
  return static_cast<uint16_t>(
      (u >> 31) << 15 | (((u >> 23) & 255) - 112) << 10 | ((u >> 13) & 1023));
}

float value_of(uint16_t bits, Type type) {
  uint32_t u = uint32_t(bits) << 16;
  if (type == Type::f16) {
    if ((bits & 0x7fff) == 0) {
      return 0;
    }
    u = uint32_t(bits >> 15) << 31 | (((bits >> 10) & 31u) + 112) << 23 |
        (bits & 1023u) << 13;
  }
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// Mostly zeros, so that sums of any length stay exact in 16 bits.
float a_at(uint64_t i, uint64_t k) {
  return (i * 7 + k * 3) % 61 == 0 ? float(int((i + k) % 3) - 1) : 0;
}
int code_at(uint64_t j, uint64_t k) {
  return int((j * 5 + k * 11) % 16);
}
float b_at(uint64_t j, uint64_t k, bool quant) {
  return quant ? 0.25f * float(code_at(j, k)) - 2
               : float(int((j * 5 + k) % 5) - 2);
}

class Gpu {
 public:
  Gpu() {
    std::string why;
    instance_ = Instance::create(false, why);
    size_t index = 0;
    while (instance_ && index < instance_->caps.size() &&
           !instance_->caps[index].cooperative_matrix) {
      ++index;
    }
    if (!instance_ || index == instance_->caps.size()) {
      throw std::runtime_error("No device has cooperative matrices. " + why);
    }
    caps = instance_->caps[index];
    physical_ = instance_->physical[index];
    vk = instance_->vk;
    make_device();
  }

  ~Gpu() {
    for (auto p : pipelines_) {
      vk.vkDestroyPipeline(device, p, nullptr);
    }
    for (auto& m : memories_) {
      memory_.vkDestroyBuffer(device, m.buffer, nullptr);
      memory_.vkFreeMemory(device, m.memory, nullptr);
    }
    vk.vkDestroyQueryPool(device, queries, nullptr);
    vk.vkDestroyCommandPool(device, pool, nullptr);
    vk.vkDestroyPipelineLayout(device, layout, nullptr);
    vk.vkDestroyPipelineCache(device, cache_, nullptr);
    vk.vkDestroyDevice(device, nullptr);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void save_code(const char* file) {
    size_t size = 0;
    vk.vkGetPipelineCacheData(device, cache_, &size, nullptr);
    std::string data(size, 0);
    vk.vkGetPipelineCacheData(device, cache_, &size, data.data());
    std::ofstream(file, std::ios::binary).write(data.data(), size);
  }

  Memory allocate(size_t bytes) {
    Memory m{};
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    vk_check(
        memory_.vkCreateBuffer(device, &info, nullptr, &m.buffer), "buffer");
    VkMemoryRequirements need;
    memory_.vkGetBufferMemoryRequirements(device, m.buffer, &need);
    VkMemoryAllocateFlagsInfo flags{
        VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{
        VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
    allocate.allocationSize = need.size;
    constexpr auto wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    for (uint32_t i = 0; i < caps.memory.memoryTypeCount; ++i) {
      if ((need.memoryTypeBits >> i & 1) &&
          (caps.memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
        allocate.memoryTypeIndex = i;
      }
    }
    vk_check(
        memory_.vkAllocateMemory(device, &allocate, nullptr, &m.memory),
        "memory");
    vk_check(memory_.vkBindBufferMemory(device, m.buffer, m.memory, 0), "bind");
    void* mapped = nullptr;
    vk_check(
        memory_.vkMapMemory(device, m.memory, 0, VK_WHOLE_SIZE, 0, &mapped),
        "map");
    m.mapped = static_cast<uint16_t*>(mapped);
    VkBufferDeviceAddressInfo address{
        VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, m.buffer};
    m.address = vk.vkGetBufferDeviceAddress(device, &address);
    return memories_.emplace_back(m);
  }

  VkPipeline pipeline(const KernelCode& code) {
    VkComputePipelineCreateInfo info{};
    info.layout = layout;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    // Subgroups of 32, as both kernels count.
    ask_subgroups(caps, 32, code.reflection.local_size[0], info.stage, size);
    return pipelines_.emplace_back(
        create_pipeline(vk, device, cache_, info, code.spirv, ""));
  }

  // Seconds of one dispatch, the least of several.
  double time(VkPipeline p, const void* push, uint32_t size, uint32_t groups) {
    double best = 1e9;
    for (int round = 0; round < 4; ++round) {
      constexpr uint32_t times = 5;
      VkCommandBufferBeginInfo begin{
          VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
      vk_check(vk.vkBeginCommandBuffer(commands, &begin), "begin");
      vk.vkCmdResetQueryPool(commands, queries, 0, 2);
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p);
      vk.vkCmdPushConstants(
          commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, size, push);
      vk.vkCmdWriteTimestamp(
          commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries, 0);
      for (uint32_t i = 0; i < times; ++i) {
        vk.vkCmdDispatch(commands, groups, 1, 1);
        VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        b.srcAccessMask = b.dstAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
        vk.vkCmdPipelineBarrier(
            commands,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            0,
            1,
            &b,
            0,
            nullptr,
            0,
            nullptr);
      }
      vk.vkCmdWriteTimestamp(
          commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 1);
      vk_check(vk.vkEndCommandBuffer(commands), "end");
      VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
      submit.commandBufferCount = 1;
      submit.pCommandBuffers = &commands;
      vk_check(vk.vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), "submit");
      vk_check(vk.vkDeviceWaitIdle(device), "wait");
      uint64_t ticks[2];
      vk.vkGetQueryPoolResults(
          device, queries, 0, 2, 16, ticks, 8, VK_QUERY_RESULT_64_BIT);
      best = std::min(
          best,
          double(ticks[1] - ticks[0]) * caps.timestamp_period * 1e-9 / times);
    }
    return best;
  }

  Caps caps;
  Vk vk;
  VkDevice device = VK_NULL_HANDLE;
  bool nv = false;

 private:
  bool offers(const char* extension) const {
    uint32_t count = 0;
    vk.vkEnumerateDeviceExtensionProperties(
        physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> all(count);
    vk.vkEnumerateDeviceExtensionProperties(
        physical_, nullptr, &count, all.data());
    return std::any_of(all.begin(), all.end(), [&](auto& e) {
      return !std::strcmp(e.extensionName, extension);
    });
  }

  void make_device() {
    DeviceFeatures f(
        {.matrices = true,
         .bf16 = caps.bfloat16,
         .dot = false,
         .sizes = false});
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV nv2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
    std::vector<const char*> extensions;
    nv = offers(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    if (nv) {
      f.append(nv2);
      extensions.push_back(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    }
    vk.vkGetPhysicalDeviceFeatures2(physical_, &f.all);
    f.all.features.robustBufferAccess = VK_FALSE;
    device = create_device(vk, physical_, caps, f, extensions);
    std::string why;
    if (!vk.load_device(device, why)) {
      throw std::runtime_error(why);
    }
    memory_.load(vk, device);
    vk.vkGetDeviceQueue(device, caps.compute_queue_family, 0, &queue);
    layout = create_layout(vk, device);
    VkPipelineCacheCreateInfo cache_info{
        VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    vk_check(
        vk.vkCreatePipelineCache(device, &cache_info, nullptr, &cache_),
        "cache");
    VkCommandPoolCreateInfo pool_info{
        VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool_info.queueFamilyIndex = caps.compute_queue_family;
    vk_check(
        vk.vkCreateCommandPool(device, &pool_info, nullptr, &pool), "pool");
    VkCommandBufferAllocateInfo allocate{
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool;
    allocate.commandBufferCount = 1;
    vk_check(
        vk.vkAllocateCommandBuffers(device, &allocate, &commands), "commands");
    VkQueryPoolCreateInfo query_info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    query_info.queryCount = 2;
    vk_check(
        vk.vkCreateQueryPool(device, &query_info, nullptr, &queries),
        "queries");
  }

  std::unique_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  MemoryFunctions memory_;
  std::vector<Memory> memories_;
  std::vector<VkPipeline> pipelines_;
  VkQueryPool queries = VK_NULL_HANDLE;
};

struct Push {
  uint64_t a, b, y;
  uint32_t m, n, k, pad;
  uint64_t scales;
};

// The first wrong of some results, or an empty text.
std::string check(const Memory& y, const Shape& s, Type type, bool quant) {
  for (uint64_t c = 0; c < 97; ++c) {
    uint64_t i = c * 7919 % s.m, j = c * 104729 % s.n;
    double sum = 0;
    for (uint64_t k = 0; k < s.k; ++k) {
      sum += double(a_at(i, k)) * b_at(j, k, quant);
    }
    float got = value_of(y.mapped[i * s.n + j], type);
    if (std::abs(got - sum) > 0.01 * std::abs(sum)) {
      return "y[" + std::to_string(i) + "," + std::to_string(j) + "] is " +
          std::to_string(got) + ", not " + std::to_string(sum);
    }
  }
  return {};
}

constexpr Variant variants[] = {
    {"khr", 128, 128, 32, 4, 2, 1},
    {"khr", 128, 128, 32, 2, 2, 1},
    {"khr", 128, 128, 32, 2, 2, 2},
    {"khr", 128, 128, 64, 2, 2, 1},
    {"khr", 128, 256, 32, 2, 4, 1},
    {"khr", 128, 256, 16, 2, 4, 2},
    {"khr", 128, 128, 16, 2, 2, 2},
    {"khr", 256, 128, 16, 4, 2, 2},
    {"khr", 128, 128, 32, 4, 2, 2},
    {"khr", 128, 128, 32, 2, 4, 2},
    {"khr", 128, 64, 32, 2, 1, 2},
    {"khr", 64, 64, 32, 2, 2, 2},
    {"khr", 128, 64, 32, 2, 1, 1},
    {"khr", 64, 128, 32, 1, 2, 1},
    {"khr", 64, 64, 32, 1, 1, 1},
    {"khr", 64, 64, 64, 2, 2, 1},
    {"khr", 256, 256, 16, 4, 4, 1},
    {"khr", 256, 128, 32, 4, 2, 1},
    {"nv", 64, 64, 64, 0, 0, 0, 128},
    {"nv", 128, 128, 32, 0, 0, 0, 128},
    {"nv", 128, 128, 64, 0, 0, 0, 128},
    {"nv", 128, 128, 64, 0, 0, 0, 256},
    {"nv", 128, 256, 32, 0, 0, 0, 256},
    {"nv", 128, 256, 64, 0, 0, 0, 256},
    {"nv", 256, 128, 64, 0, 0, 0, 256},
    {"nv", 128, 128, 128, 0, 0, 0, 256},
    {"nv", 64, 64, 64, 0, 0, 0, 128, true},
    {"nv", 128, 128, 64, 0, 0, 0, 256, true},
    {"nv", 128, 256, 64, 0, 0, 0, 256, true},
};
constexpr Shape shapes[] = {
    {4096, 4096, 4096},
    {512, 12288, 4096},
    {64, 12288, 4096}};

struct Arrays {
  Memory a, b, y, scales;

  void fill(const Shape& s, Type type, bool quant) {
    std::vector<uint16_t> host(size_t(s.m) * s.k);
    for (uint64_t i = 0; i < s.m; ++i) {
      for (uint64_t k = 0; k < s.k; ++k) {
        host[i * s.k + k] = bits_of(a_at(i, k), type);
      }
    }
    std::memcpy(a.mapped, host.data(), host.size() * 2);
    uint32_t items = quant ? 4 : 1; // of k in 16 bits
    host.assign(size_t(s.n) * s.k / items, 0);
    for (uint64_t j = 0; j < s.n; ++j) {
      for (uint64_t k = 0; k < s.k; ++k) {
        host[(j * s.k + k) / items] |= quant
            ? uint16_t(code_at(j, k) << (4 * (k % 4)))
            : bits_of(b_at(j, k, false), type);
      }
    }
    std::memcpy(b.mapped, host.data(), host.size() * 2);
    for (size_t g = 0; g < size_t(s.n) * s.k / 128; ++g) {
      scales.mapped[2 * g] = bits_of(0.25f, type);
      scales.mapped[2 * g + 1] = bits_of(-2, type);
    }
  }
};

KernelCode compile(const Variant& v, Type type, const std::string& folder) {
  std::ifstream in(folder + "/" + v.kernel + ".comp");
  std::ostringstream text;
  text << in.rdbuf();
  std::vector<Define> d{
      {"COOPMAT", 1},
      {type == Type::f16 ? "NATIVE_F16" : "BF16_EXT", 1},
      {"BM", v.bm},
      {"BN", v.bn},
      {"BK", v.bk}};
  if (v.wg) {
    d.insert(d.end(), {{"COOPMAT2", 1}, {"WG", v.wg}, {"QUANT", v.quant}});
  } else {
    d.insert(d.end(), {{"WM", v.wm}, {"WN", v.wn}, {"BUFFERS", v.buffers}});
  }
  auto glsl = text.str();
  return load_or_compile(kernel_source(v.kernel, d, false, {}, &glsl), nullptr);
}

void measure(
    Gpu& gpu,
    const Variant& v,
    const Shape& s,
    Type type,
    const std::string& folder,
    const std::string& part,
    Arrays& arrays) {
  Json row{
      {"type", std::string(name_of(type))},
      {"m", s.m},
      {"n", s.n},
      {"k", s.k},
      {"kernel", v.kernel},
      {"tile", {v.bm, v.bn, v.bk}},
      {"quant", v.quant}};
  if (v.wg) {
    row["invocations"] = v.wg;
  } else {
    row["subgroups"] = {v.wm, v.wn};
    row["buffers"] = v.buffers;
  }
  if (row.dump().find(part) == std::string::npos) {
    return;
  }
  try {
    auto code = compile(v, type, folder);
    if (code.reflection.shared_size > gpu.caps.shared_memory) {
      return; // such a dispatch loses the device
    }
    auto p = gpu.pipeline(code);
    Push push{
        arrays.a.address,
        arrays.b.address,
        arrays.y.address,
        s.m,
        s.n,
        s.k,
        0,
        arrays.scales.address};
    double t = gpu.time(p, &push, sizeof(push), s.m / v.bm * (s.n / v.bn));
    row["us"] = std::round(t * 1e7) / 10;
    row["tflops"] = std::round(2e-11 * s.m * s.n * s.k / t) / 10;
    auto wrong = check(arrays.y, s, type, v.quant);
    if (!wrong.empty()) {
      row["wrong"] = wrong;
    }
  } catch (const std::exception& e) {
    row["error"] = e.what();
  }
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: matrix_units FOLDER [TEXT [FILE]]\n");
    return 2;
  }
  try {
    Gpu gpu;
    std::printf(
        "%s\n",
        Json{
            {"device", gpu.caps.name},
            {"driver", gpu.caps.driver},
            {"nv", gpu.nv}}
            .dump()
            .c_str());
    Arrays arrays{
        gpu.allocate(size_t(4096) * 4096 * 2),
        gpu.allocate(size_t(12288) * 4096 * 2),
        gpu.allocate(size_t(4096) * 4096 * 2),
        gpu.allocate(size_t(12288) * 64 * 2)};
    for (Type type : {Type::bf16, Type::f16}) {
      for (auto& s : shapes) {
        for (bool quant : {false, true}) {
          arrays.fill(s, type, quant);
          for (auto& v : variants) {
            if (gpu.caps.coopmat(type) && (!v.wg || gpu.nv) &&
                v.quant == quant && s.m % v.bm == 0) {
              measure(
                  gpu, v, s, type, argv[1], argc > 2 ? argv[2] : "", arrays);
            }
          }
        }
      }
    }
    if (argc > 3) {
      gpu.save_code(argv[3]);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}

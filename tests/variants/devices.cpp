#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

Caps device(
    const char* name,
    uint32_t vendor,
    VkPhysicalDeviceType type,
    uint32_t subgroup,
    uint32_t cores) {
  Caps c;
  c.name = name;
  c.vendor_id = vendor;
  c.type = type;
  c.api_version = VK_API_VERSION_1_3;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = subgroup;
  c.subgroup_size_control = c.required_subgroup_size = c.full_subgroups = true;
  c.max_workgroup_size = 1024;
  c.shared_memory = 32768;
  c.max_push_constants = 256;
  c.max_buffer_size = uint64_t(4) << 30;
  c.shader_float16 = true;
  c.core_count = cores;
  return c;
}

Caps with_matrices(Caps c, bool bf16) {
  c.vulkan_memory_model = c.cooperative_matrix = c.coopmat_f16 = true;
  c.bfloat16 = c.coopmat_bf16 = bf16;
  return c;
}

} // namespace

const std::vector<Caps>& device_table() {
  constexpr auto cpu = VK_PHYSICAL_DEVICE_TYPE_CPU;
  constexpr auto discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  constexpr auto integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  static const std::vector<Caps> table = [] {
    std::vector<Caps> t{
        device("llvmpipe", 0x10005, cpu, 8, 0),
        with_matrices(device("NVIDIA H200", 0x10de, discrete, 32, 132), true),
        device("NVIDIA without matrices", 0x10de, discrete, 32, 30),
        device("AMD polaris10", 0x1002, discrete, 64, 36),
        device("AMD navi21", 0x1002, discrete, 64, 80),
        with_matrices(device("AMD gfx1201", 0x1002, discrete, 64, 64), true),
        with_matrices(device("Intel dg2", 0x8086, discrete, 32, 32), false),
        device("Intel tgl", 0x8086, integrated, 32, 0),
        device("Apple M1", 0x106b, integrated, 32, 8)};
    t[4].min_subgroup_size = t[5].min_subgroup_size = 32;
    t[6].min_subgroup_size = t[7].min_subgroup_size = 8;
    return t;
  }();
  return table;
}

} // namespace mlx::core::vulkan

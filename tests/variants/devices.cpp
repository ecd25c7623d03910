#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

// What plans read of a device.
struct Row {
  const char* name;
  uint32_t vendor, device;
  VkPhysicalDeviceType type;
  uint32_t subgroup, min_subgroup, max_subgroup;
  uint32_t shared_memory;
  uint64_t max_buffer;
  uint32_t cores; // as an extension tells; 0: from the tables
  uint32_t matrices; // 1: of f16; 2: and of bf16
  bool float16 = true;
  uint32_t dots = 3; // fast products of bytes: 1: signed; 2: mixed; 3: both
  MatrixShape shape{};
};

constexpr auto cpu = VK_PHYSICAL_DEVICE_TYPE_CPU;
constexpr auto discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr auto integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr uint32_t kib = 1024;
constexpr uint64_t gib = 1 << 30;
constexpr uint64_t radv_buffer = 4 * gib - 4;

// llvmpipe of Mesa 22.3, an H200 of driver 580.159, one with its matrices
// switched off; then the chips of `make test-drivers`, which compares them with
// what Mesa 26.1 says.
constexpr Row rows[] = {
    // clang-format off
    {"llvmpipe",
     0x10005, 0, cpu, 8, 8, 8, 32 * kib, 2 * gib, 0, 0, true, 0},
    {"NVIDIA H200",
     0x10de, 0, discrete, 32, 32, 32, 48 * kib, 4 * gib, 132, 2},
    {"NVIDIA",
     0x10de, 0, discrete, 32, 32, 32, 48 * kib, 4 * gib, 30, 0},
    {"AMD Radeon RX 580 Series (RADV POLARIS10)",
     0x1002, 0x67df, discrete, 64, 64, 64, 64 * kib, radv_buffer, 36, 0, false, 0},
    {"AMD Radeon RX Vega (RADV VEGA10)",
     0x1002, 0x687f, discrete, 64, 64, 64, 64 * kib, radv_buffer, 64, 0, true, 0},
    {"AMD Custom GPU 0405 (RADV VANGOGH)", // Steam Deck
     0x1002, 0x163f, integrated, 64, 32, 64, 64 * kib, radv_buffer, 8, 0, true, 1},
    {"AMD Radeon RX 6800 (RADV NAVI21)",
     0x1002, 0x73bf, discrete, 64, 32, 64, 64 * kib, radv_buffer, 60, 0, true, 1},
    {"AMD Radeon Graphics (RADV NAVI31)",
     0x1002, 0x744c, discrete, 64, 32, 64, 64 * kib, radv_buffer, 96, 1},
    {"AMD Radeon Graphics (RADV NAVI33)", // Radeon RX 7600
     0x1002, 0x7480, discrete, 64, 32, 64, 64 * kib, radv_buffer, 32, 1},
    {"AMD Radeon Graphics (RADV PHOENIX)", // Radeon 780M
     0x1002, 0x15bf, integrated, 64, 32, 64, 64 * kib, radv_buffer, 12, 1},
    {"AMD Radeon Graphics (RADV STRIX1)",
     0x1002, 0x150e, integrated, 64, 32, 64, 64 * kib, radv_buffer, 16, 1},
    {"AMD Radeon Graphics (RADV STRIX_HALO)", // Radeon 8060S
     0x1002, 0x1586, integrated, 64, 32, 64, 64 * kib, radv_buffer, 40, 1},
    {"Strix Halo with RADV_EXPERIMENTAL=bfloat16",
     0x1002, 0x1586, integrated, 64, 32, 64, 64 * kib, radv_buffer, 40, 2},
    {"AMD Radeon Graphics (RADV GFX1200)", // Radeon RX 9060 XT
     0x1002, 0x7590, discrete, 64, 32, 64, 64 * kib, radv_buffer, 32, 2},
    {"AMD Radeon Graphics (RADV GFX1201)",
     0x1002, 0x7550, discrete, 64, 32, 64, 64 * kib, radv_buffer, 64, 2},
    {"Intel(R) Iris(R) Xe Graphics (TGL GT2)",
     0x8086, 0x9a49, integrated, 32, 8, 32, 48 * kib, 4 * gib, 0, 0},
    {"Intel(R) Arc(tm) A770M Graphics (DG2)",
     0x8086, 0x5690, discrete, 32, 8, 32, 48 * kib, 4 * gib, 0, 0},
    {"DG2 with MLX_VK_TEST=matrices=8x8x16",
     0x8086, 0x5690, discrete, 32, 8, 32, 48 * kib, 4 * gib, 0, 2, true, 3, {8, 8, 16}},
    {"Intel(R) Graphics (LNL)",
     0x8086, 0x64a0, integrated, 32, 16, 32, 48 * kib, 4 * gib, 0, 2, true, 3, {8, 16, 16}},
    {"Intel(R) Graphics (BMG G21)",
     0x8086, 0xe202, discrete, 32, 16, 32, 48 * kib, 4 * gib, 0, 2, true, 3, {8, 16, 16}},
    {"Intel(R) Arc(tm) B570 Graphics (BMG G21)",
     0x8086, 0xe20c, discrete, 32, 16, 32, 48 * kib, 4 * gib, 0, 2, true, 3, {8, 16, 16}},
    {"Intel(R) Arc(tm) B390 (PTL)",
     0x8086, 0xb080, integrated, 32, 16, 32, 48 * kib, 4 * gib, 0, 2, true, 3, {8, 16, 16}},
    {"Apple M1 (G13G A0)",
     0x10005, 0x0, integrated, 32, 32, 32, 32 * kib, 128 * gib, 0, 0, true, 0},
    {"Apple M2 Max (G14C B1)", // M1's code; the shim says only M1
     0x10005, 0x0, integrated, 32, 32, 32, 32 * kib, 128 * gib, 38, 0, true, 0},
    {"Turnip Adreno (TM) 740",
     0x5143, 0x43050a01, integrated, 128, 64, 128, 32 * kib, 4 * gib, 0, 0, true, 2},
    {"NVK",
     0x10de, 0x1004, discrete, 32, 32, 32, 48 * kib, 2 * gib, 2, 1},
    // clang-format on
};

Caps snapshot(const Row& r) {
  Caps c;
  c.name = r.name;
  c.vendor_id = r.vendor;
  c.device_id = r.device;
  c.type = r.type;
  c.api_version = VK_API_VERSION_1_3;
  c.subgroup_size = r.subgroup;
  c.min_subgroup_size = r.min_subgroup;
  c.max_subgroup_size = r.max_subgroup;
  c.subgroup_size_control = c.full_subgroups = true;
  c.required_subgroup_size = r.min_subgroup < r.max_subgroup;
  c.max_workgroup_size = 1024;
  c.shared_memory = r.shared_memory;
  c.max_push_constants = 256;
  c.max_buffer_size = r.max_buffer;
  c.shader_float16 = r.float16;
  // Neither Intel's chips, Apple's nor Adreno have float64.
  bool software = r.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  c.shader_float64 = r.vendor == 0x10de || r.vendor == 0x1002 || software;
  c.vulkan_memory_model = c.cooperative_matrix = c.coopmat_f16 = r.matrices > 0;
  c.bfloat16 = c.coopmat_bf16 = r.matrices > 1;
  c.integer_dot_product = true;
  c.fast_dot_signed = r.dots & 1;
  c.fast_dot_mixed = r.dots & 2;
  c.shape_f16 = c.shape_bf16 = r.shape;
  c.half_items = r.matrices == 1;
  c.known_fragments = r.vendor == 0x10de && r.matrices > 0;
  c.core_count = r.cores;
  count_cores(c);
  return c;
}

} // namespace

Caps least_device() {
  Caps c = snapshot(
      {"the least that is taken",
       0x13b5,
       1,
       integrated,
       4,
       4,
       4,
       16 * kib,
       gib,
       0,
       0,
       false,
       0});
  c.api_version = VK_API_VERSION_1_2;
  c.subgroup_size_control = c.full_subgroups = false;
  c.max_workgroup_size = 256;
  c.max_push_constants = 128;
  c.integer_dot_product = false;
  c.buffer_device_address = c.timeline_semaphore = c.scalar_block_layout = true;
  c.storage_8bit = c.storage_16bit = true;
  c.shader_int8 = c.shader_int16 = c.shader_int64 = true;
  c.subgroup_operations = least_subgroup_operations;
  c.compute_queue_family = 0;
  count_cores(c);
  return c;
}

const std::vector<Caps>& device_table() {
  static const std::vector<Caps> table = [] {
    std::vector<Caps> t;
    for (auto& row : rows) {
      t.push_back(snapshot(row));
    }
    return t;
  }();
  return table;
}

} // namespace mlx::core::vulkan

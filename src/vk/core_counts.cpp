#include "vk/core_counts.h"

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t intel = 0x8086;

struct IntelCores {
  uint16_t device_id;
  uint16_t cores;
};

// Dual subslices, Xe cores since Xe-HPG. IDs and names: Mesa 25.0,
// include/pci_ids/iris_pci_ids.h.
constexpr IntelCores intel_cores[] = {
    // clang-format off
    // Mesa 25.0, src/intel/dev/intel_device_info.c, num_subslices of *_gt05,
    // then of *_gt1, adl_n and rpl, then of *_gt2, rpl_p, dg1 and sg1.
    {0x4c8c, 1}, {0x468b, 1}, {0x4c8a, 2}, {0x4c8b, 2}, {0x4c90, 2},
    {0x4c9a, 2}, {0x4680, 2}, {0x4682, 2}, {0x4688, 2}, {0x468a, 2},
    {0x4690, 2}, {0x4692, 2}, {0x4693, 2}, {0x46d0, 2}, {0x46d1, 2},
    {0x46d2, 2}, {0x46d3, 2}, {0x46d4, 2}, {0x9a60, 2}, {0x9a68, 2},
    {0x9a70, 2}, {0xa780, 2}, {0xa781, 2}, {0xa782, 2}, {0xa783, 2},
    {0xa788, 2}, {0xa789, 2}, {0xa78a, 2}, {0xa78b, 2}, {0x4626, 6},
    {0x4628, 6}, {0x462a, 6}, {0x46a0, 6}, {0x46a1, 6}, {0x46a2, 6},
    {0x46a3, 6}, {0x46a6, 6}, {0x46a8, 6}, {0x46aa, 6}, {0x46b0, 6},
    {0x46b1, 6}, {0x46b2, 6}, {0x46b3, 6}, {0x46c0, 6}, {0x46c1, 6},
    {0x46c2, 6}, {0x46c3, 6}, {0x9a40, 6}, {0x9a49, 6}, {0x9a59, 6},
    {0x9a78, 6}, {0x9ac0, 6}, {0x9ac9, 6}, {0x9ad9, 6}, {0x9af8, 6},
    {0xa720, 6}, {0xa721, 6}, {0xa7a0, 6}, {0xa7a1, 6}, {0xa7a8, 6},
    {0xa7a9, 6}, {0xa7aa, 6}, {0xa7ab, 6}, {0xa7ac, 6}, {0xa7ad, 6},
    {0x4905, 6}, {0x4906, 6}, {0x4907, 6}, {0x4908, 6}, {0x4909, 6},
    // Mesa has no counts of later ones: its drivers ask the kernel. Xe cores of
    // Intel's product pages for the name that Mesa gives the ID, and of EUs, 16
    // a core, as in the GPU Occupancy Calculator of Intel's oneAPI-samples.
    {0x5690, 32}, {0x5691, 24}, {0x5692, 16}, {0x5693, 8}, {0x5694, 6},
    {0x5696, 16}, {0x5697, 12}, {0x56a0, 32}, {0x56a1, 28}, {0x56a2, 24},
    {0x56a5, 8}, {0x56a6, 6}, {0x56b0, 8}, {0x56b1, 8}, {0x56b2, 16},
    {0x56b3, 16}, {0x56ba, 8}, {0x56bb, 6}, {0x56bc, 8}, {0x56bd, 6},
    {0x56be, 28}, {0x56bf, 24}, {0x56c0, 32}, {0x56c1, 8}, {0x56c2, 32},
    // Estimates, since no table has them: the largest products sold of mtl_u
    // and arl_u; of mtl_h, arl_h and lnl; of bmg (one without product, B580,
    // B570); and of ptl (Arc B390).
    {0x7d40, 4}, {0x7d45, 4}, {0x7d60, 4}, {0x7d41, 4}, {0x7d67, 4},
    {0xb640, 4}, {0x6420, 8}, {0x64a0, 8}, {0x64b0, 8}, {0x7d55, 8},
    {0x7dd5, 8}, {0x7d51, 8}, {0x7dd1, 8}, {0xe202, 20}, {0xe20b, 20},
    {0xe20c, 18}, {0xb080, 12},
    // clang-format on
};

struct NamedCores {
  std::string_view name; // part of the device's
  uint32_t cores;
};
// The first matching row is used. Apple: the GPU cores of apple.com's
// specifications, the largest of each chip; Mesa has none of them, it counts
// the bits of the kernel's masks (agx_get_num_cores,
// src/asahi/lib/agx_device.c). Qualcomm: num_ccu, which is num_sp_cores, of
// Mesa 25.0's src/freedreno/common/freedreno_devices.py.
constexpr NamedCores named_cores[] = {
    {"Apple M1 Ultra", 64}, {"Apple M1 Max", 32},   {"Apple M1 Pro", 16},
    {"Apple M1", 8},        {"Apple M2 Ultra", 76}, {"Apple M2 Max", 38},
    {"Apple M2 Pro", 19},   {"Apple M2", 10},       {"Apple M3 Ultra", 80},
    {"Apple M3 Max", 40},   {"Apple M3 Pro", 18},   {"Apple M3", 10},
    {"Apple M4 Max", 40},   {"Apple M4 Pro", 20},   {"Apple M4", 10},
    {"Adreno (TM) 618", 1}, {"Adreno (TM) 619", 1}, {"Adreno (TM) 630", 2},
    {"Adreno (TM) 640", 2}, {"Adreno (TM) 650", 3}, {"Adreno (TM) 660", 3},
    {"Adreno (TM) 680", 4}, {"Adreno (TM) 690", 8}, {"Adreno (TM) 730", 4},
    {"Adreno (TM) 740", 6}, {"Adreno (TM) 750", 6}, {"Adreno X1-85", 6},
};

} // namespace

uint32_t
cores_by_table(uint32_t vendor, uint32_t device_id, std::string_view device) {
  if (vendor == intel) {
    for (auto& row : intel_cores) {
      if (row.device_id == device_id) {
        return row.cores;
      }
    }
    return 0;
  }
  for (auto& row : named_cores) {
    if (device.find(row.name) != device.npos) {
      return row.cores;
    }
  }
  return 0;
}

} // namespace mlx::core::vulkan

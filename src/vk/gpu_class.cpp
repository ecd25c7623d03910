#include "vk/gpu_class.h"

#include <iterator>

namespace mlx::core::vulkan {

namespace {

constexpr uint32_t amd = 0x1002, nvidia = 0x10de, intel = 0x8086,
                   qualcomm = 0x5143, mesa = 0x10005;

// The first that matches holds.
constexpr GpuClass classes[] = {
    // CUDA C++ Programming Guide, "Features and Technical Specifications":
    // 255 registers a thread. Nothing that plans chose spills on NVK.
    {"NVIDIA", nvidia, "", 0, 255, 255, 0, 0},
    // RDNA and GCN ISA guides: 256 vector registers a lane; but with more than
    // 128 a SIMD hides little latency, and Mesa 22.3 gives RDNA3 no more.
    {"AMD", amd, "", 0, 128, 128, 0, 0},
    // Intel PRM, "GRF": 128 registers a thread, of 64 bytes since Xe2, of which
    // subgroups are at least 16 wide, and of 32 before, where they may be 8
    // wide. Mesa's compiler takes the widest that does not spill: 16 mostly.
    {"Intel Xe2", intel, "", 16, 128, 100, 4, 16},
    {"Intel", intel, "", 0, 128, 100, 4, 16},
    // Mesa, src/asahi/compiler: 256 registers of 16 bits.
    {"Apple", 0, "Apple", 0, 128, 100, 4, 0},
    // Mesa, src/freedreno/ir3: 48 vectors of four a fiber; in subgroups of the
    // narrower of two sizes where they vary.
    {"Adreno", qualcomm, "", 0, 192, 111, 4, 64},
    // Compilers for CPUs spill to memory that is in their cache.
    {"llvmpipe", mesa, "llvmpipe", 0, 255, 255, 0, 0},
    {"other", 0, "", 0, 0, 100, 4, 0},
};

struct IntelCores {
  uint16_t device_id;
  uint16_t cores;
};
// Xe cores (dual subslices before Xe-HPG). IDs: Mesa,
// include/pci_ids/iris_pci_ids.h. Counts: Intel's product pages, execution
// units or vector engines by 16 before Xe2 and by 8 since.
constexpr IntelCores intel_cores[] = {
    {0x4c8a, 2},  {0x4c8b, 2},  {0x4680, 2},  {0x4690, 2}, {0x4692, 2},
    {0x4693, 2},  {0xa780, 2},  {0x46a6, 6},  {0x46a8, 6}, {0x46aa, 6},
    {0xa7a0, 6},  {0xa7a1, 6},  {0x9a40, 6},  {0x9a49, 6}, {0x9a60, 2},
    {0x5690, 32}, {0x5691, 24}, {0x5692, 16}, {0x5693, 8}, {0x5694, 6},
    {0x56a0, 32}, {0x56a1, 28}, {0x56a2, 24}, {0x56a5, 8}, {0x56a6, 6},
    {0x7d40, 4},  {0x7d45, 4},  {0x7d41, 4},  {0x7d67, 4}, {0x7d51, 8},
    {0x7d55, 8},  {0x7dd5, 8},  {0x64a0, 8},  {0x6420, 8}, {0xe202, 20},
    {0xe20b, 20}, {0xe20c, 18},
};

struct NamedCores {
  std::string_view name; // part of the device's
  uint32_t cores;
};
// The first that matches holds. Apple: the GPU cores of apple.com's
// specifications, the largest of each chip. Qualcomm: shader processors of
// Mesa's src/freedreno/common/freedreno_devices.py (as many as num_ccu).
constexpr NamedCores named_cores[] = {
    {"Apple M1 Ultra", 64}, {"Apple M1 Max", 32},   {"Apple M1 Pro", 16},
    {"Apple M1", 8},        {"Apple M2 Ultra", 76}, {"Apple M2 Max", 38},
    {"Apple M2 Pro", 19},   {"Apple M2", 10},       {"Apple M3 Ultra", 80},
    {"Apple M3 Max", 40},   {"Apple M3 Pro", 18},   {"Apple M3", 10},
    {"Apple M4 Max", 40},   {"Apple M4 Pro", 20},   {"Apple M4", 10},
    {"Adreno (TM) 618", 1}, {"Adreno (TM) 619", 1}, {"Adreno (TM) 630", 2},
    {"Adreno (TM) 640", 2}, {"Adreno (TM) 650", 3}, {"Adreno (TM) 660", 3},
    {"Adreno (TM) 690", 8}, {"Adreno (TM) 730", 4}, {"Adreno (TM) 740", 6},
    {"Adreno (TM) 750", 6}, {"Adreno X1-85", 6},
};

} // namespace

const GpuClass&
gpu_class(uint32_t vendor, std::string_view device, uint32_t min_subgroup) {
  for (auto& c : classes) {
    if ((!c.vendor || c.vendor == vendor) &&
        device.find(c.device) != device.npos &&
        min_subgroup >= c.min_subgroup) {
      return c;
    }
  }
  return classes[std::size(classes) - 1];
}

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

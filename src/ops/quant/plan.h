// Which kernel a quantized product takes, and its tile. A pure function of a
// shape and of what the device is, tested without a GPU.
#pragma once

#include <cstdint>

namespace mlx::core::vulkan {

// What the choice depends on (from Caps).
struct QuantDevice {
  uint32_t subgroup_size = 32;
  uint32_t cores = 0; // 0: unknown
  bool software = false;
  bool coopmat = false; // 16x16x16 for x's type, float accumulators
  bool few_registers = false; // 128 for an invocation
};

struct QuantShape {
  uint32_t m = 1, n = 1, k = 1; // of one product
  uint64_t batch = 1;
  int bits = 4;
  int group = 64;
  bool transpose = true; // w is (n, k)
  bool aligned = true; // 16-byte loads of x and w are possible
  bool x_aligned = true; // of x
  // Products take rows of a sorted stack: m is 1, batch the number of rows.
  bool sorted = false;
  uint32_t matrices = 1;
};

struct QuantPlan {
  enum class Path : uint8_t {
    Matvec, // qmv: w transposed, few rows
    Vecmat, // qvm: w not transposed, few rows
    Tiled, // qmm
    Coopmat, // qmm_coopmat
  };
  Path path = Path::Matvec;

  // Matvec and Vecmat: rows of x a workgroup.
  uint32_t rows = 1;
  // Matvec
  uint32_t outs = 4; // outputs that share a load of x
  uint32_t chunk = 32; // elements of k a lane takes at a time
  uint32_t workgroup = 128;
  uint32_t block = 16; // outputs a workgroup
  bool wide = false; // the whole workgroup works on the same outputs
  bool vec = true;
  // Vecmat: lanes along n and along k
  uint32_t tx = 16, ty = 16;
  // Tiled: outputs a workgroup and an invocation
  uint32_t bm = 64, bn = 64, tm = 4, tn = 4;
  // Coopmat: subgroups along bm and bn
  uint32_t wm = 1, wn = 4;

  // Workgroups along m and n.
  uint32_t m_tiles = 1, n_tiles = 1;
  const char* why = ""; // not a faster path
};

QuantPlan plan_quant(const QuantDevice& device, const QuantShape& shape);

} // namespace mlx::core::vulkan

// Which kernel, tile and split a matrix product takes: a pure function of a
// device snapshot and the operands' shape and strides. Free of MLX and Vulkan.
#pragma once

#include <cstdint>

#include "pipeline/key.h"

namespace mlx::core::vulkan {

// What the choice depends on; filled from Caps by gemm_device().
struct GemmDevice {
  uint32_t cores = 0; // compute units; 0: unknown
  bool software = false;
  // 16x16x16 cooperative matrices with float accumulators work.
  bool coopmat_f16 = false;
  bool coopmat_bf16 = false;
  bool splits = true; // over k, for speed
};

// Strides in elements of a matrix's rows and columns.
struct MatrixStrides {
  int64_t row = 0;
  int64_t col = 0;
};

// y (m x n) = alpha * a (m x k) b (k x n) + beta * c, `batches` times.
struct GemmProblem {
  Type type = Type::f32;
  uint32_t m = 0, n = 0, k = 0;
  uint64_t batches = 1;
  MatrixStrides a, b, c;
  // Every matrix of the operand starts at a multiple of 16 bytes.
  bool a_aligned = false, b_aligned = false;
  // c takes part; gather has no form for it.
  bool axpby = false;
};

enum class GemmKind : uint8_t {
  Tile, // gemm.comp
  Coopmat, // gemm_coopmat.comp
  Dot, // gemv.comp
  Axpy, // gemv_axpy.comp
};

struct GemmPlan {
  GemmKind kind = GemmKind::Tile;
  bool big = false; // offsets inside a matrix need 64 bits
  uint32_t splits = 1;
  uint32_t k_split = 0; // k's per split
  // Tile and Coopmat.
  uint32_t bm = 0, bn = 0, bk = 0;
  uint32_t tm = 0, tn = 0; // of an invocation; Coopmat: subgroups a tile
  bool a_t = false, b_t = false; // unit stride along m; along k
  bool va = false, vb = false; // aligned quads (Coopmat: 16 bytes)
  bool prefetch = false; // Tile: next tile into registers
  // Dot and Axpy: w has `rows` rows; swapped: w is b, the vectors are a's rows.
  bool swapped = false;
  uint32_t rows = 0, vectors = 0;
  uint32_t nv = 0; // vectors rounded up to a variant
  uint32_t group_rows = 0; // of w, a workgroup
  uint32_t workgroup = 0;
  uint32_t lanes = 0; // Axpy
  bool vw = false, vx = false; // 16-byte loads (Axpy: quads) of w, x

  uint64_t groups(const GemmProblem& p) const;
};

GemmPlan plan_gemm(const GemmDevice& device, GemmProblem problem);

} // namespace mlx::core::vulkan

// Descriptions of dispatches that rewrite.h may join: the kernel's variant or
// the operation, and as `Args` the parameters behind its operands' addresses.
// Every operand of a described record has memory, so its accesses are its
// operands in the order of dispatch(). Plain values, no allocation.
#pragma once

#include <variant>

#include "kernels/copy.h"
#include "kernels/quant/product.h"
#include "kernels/quant/qmm_fragments.h"
#include "kernels/rope.h"
#include "kernels/router.h"

namespace mlx::core::vulkan {

// One product of few rows: BATCH_ONE.
using RowsVariant = std::variant<QmvVariant, QmmFragmentsVariant>;
struct ProductRecord {
  using Args = ProductArgs;
  RowsVariant variant;
};

// y = a + b: dense floats, as many items in all three.
struct AddRecord {
  Type type;
};

// y = GATE_...(gate) * up (kernels/quant/fused.h), likewise; which of the two
// operands is the gate.
struct GateRecord {
  Type type;
  uint32_t gate, operand;
};

// Root mean square norm of rows, with or without weight.
struct NormRecord {
  using Args = NormArgs;
  Type type;
  bool weight, vec; // vec: four items at a time
  int lanes;
};

// Records of layers of experts (rewrite_moe.cpp). Operands are dense: rows of n
// items follow one another.

// y = softmax(x), by a kernel of this variant.
struct SoftmaxRecord {
  SoftmaxVariant variant;
  uint32_t rows, n;
};

// y = argsort(x) of each row, u32.
struct ArgSortRecord {
  Type type;
  uint32_t rows, n;
};

// y[r, i] = x[r, index[r, i]], u32, of rows of x with n items and rows of y
// with k; rows of the index are `pitch` apart.
struct TakeRecord {
  uint32_t item; // bytes
  uint32_t rows, n, k, pitch;
};

// y[r, i] = x[r, 0, i] + x[r, 1, i] + ...: one invocation adds `extent` items
// up, one after the other.
struct SumRecord {
  Type type;
  uint32_t rows, extent, inner;
};

// y[r, i] = a[r, i] * b[r], or a[r, i] / b[r]. A single row may be any dense
// array, times one number.
struct PerRowRecord {
  Type type;
  bool divides;
  uint32_t rows, n;
};

// Products of single rows by index: BATCH_GATHER.
struct GatheredRecord {
  using Args = StackedProductArgs;
  QmvVariant variant;
};

// Records of attention over a quantized cache (rewrite_attention.h).

// y = x @ w^T, affine, BATCH_STACK. Nobody reads x again if it is the last use.
struct ScoresRecord {
  using Args = StackedProductArgs;
  Type type;
  int bits, group;
  bool last_use;
};

// Scores s, (.., row, key) in order, become `mask ? s : value` or `s + mask`,
// in their place; the mask's strides in items, of s's last axes. Operands:
// mask, s, value, or as `mask` says.
struct MaskRecord {
  static constexpr int axes = 5;
  Type type; // of s
  bool adds;
  uint8_t mask; // the index of the mask operand
  uint8_t ndim;
  int shape[axes];
  int64_t strides[axes];
};

// A forward rotation without LARGE.
struct RopeRecord {
  using Args = RopeArgs;
  Type type;
  bool traditional, freqs;
};

// A raw copy of words of this many bytes.
struct CopyRecord {
  template <int NDIM>
  using Args = CopyArgs<NDIM, int32_t>;
  int word, ndim;
};

using Descriptor = std::variant<
    std::monostate,
    ProductRecord,
    AddRecord,
    GateRecord,
    NormRecord,
    SoftmaxRecord,
    ArgSortRecord,
    TakeRecord,
    SumRecord,
    PerRowRecord,
    GatheredRecord,
    ScoresRecord,
    MaskRecord,
    RopeRecord,
    CopyRecord>;

} // namespace mlx::core::vulkan

// What a record is, for those that rewrite.h knows: the kernel's variant, or
// what it computes. Its operands are the record's accesses and argument block,
// in the order of dispatch(). Plain values, no allocation.
#pragma once

#include <variant>

#include "kernels/quant/product.h"
#include "kernels/quant/qmm_fragments.h"
#include "kernels/router.h"

namespace mlx::core::vulkan {

// ProductArgs with BATCH_ONE.
using RowsVariant = std::variant<QmvVariant, QmmFragmentsVariant>;
struct ProductRecord {
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

// NormArgs: root mean square norm of rows, with or without weight.
struct NormRecord {
  Type type;
  bool weight, vec; // vec: four items at a time
  int lanes;
};

// Of what a layer of experts does (rewrite_moe.cpp). Operands are dense, and
// rows of n items stand one after another.

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

// y[r, i] = x[r, 0, i] + x[r, 1, i] + ..., as one invocation adds `extent`
// items up: by fours, or one after another.
struct SumRecord {
  Type type;
  uint32_t rows, extent, inner;
  bool fours;
};

// y[r, i] = a[r, i] * b[r], or a[r, i] / b[r]. A single row may be any dense
// array, times one number.
struct PerRowRecord {
  Type type;
  bool divides;
  uint32_t rows, n;
};

// StackedProductArgs with BATCH_GATHER, of single rows.
struct GatheredRecord {
  QmvVariant variant;
};

// Of attention over a quantized cache (rewrite_attention.h).

// StackedProductArgs with BATCH_STACK: y = x @ w^T, affine. Nobody reads x
// again if it is the last use.
struct ScoresRecord {
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
  uint8_t mask; // which operand it is
  uint8_t ndim;
  int shape[axes];
  int64_t strides[axes];
};

// RopeArgs, forward and without LARGE.
struct RopeRecord {
  Type type;
  bool traditional, freqs;
};

// CopyArgs<ndim, int32_t>, raw: words of so many bytes.
struct CopyRecord {
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

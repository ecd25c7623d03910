// What a record is, for those that rewrite.h knows: the kernel's variant, or
// what it computes. Its operands are the record's accesses and argument block,
// in the order of dispatch(). Plain values, no allocation.
#pragma once

#include <variant>

#include "kernels/quant/product.h"

namespace mlx::core::vulkan {

// ProductArgs with BATCH_ONE.
struct MatvecRecord {
  QmvVariant variant;
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
    MatvecRecord,
    AddRecord,
    GateRecord,
    NormRecord,
    RopeRecord,
    CopyRecord>;

} // namespace mlx::core::vulkan

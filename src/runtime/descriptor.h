// Descriptions of dispatches that rewrite.h may join: the kernel's variant or
// the operation, its operands by name, what it does to heads, and as `Args` the
// parameters behind its operands' addresses. Every operand of a described
// record has memory, so its accesses are its operands in the order of
// dispatch(); the output is the last. Plain values, no allocation.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "kernels/copy.h"
#include "kernels/quant/product.h"
#include "kernels/quant/qmm_fragments.h"
#include "kernels/rope.h"
#include "kernels/router.h"

namespace mlx::core::vulkan {

// A record's name in the log, and its members: fields(f) calls f(name, member)
// for each.
#define MLXVK_FIELD(member) f(#member, member);
#define RECORD(Name, ...)                        \
  static constexpr std::string_view name = Name; \
  template <typename F>                          \
  void fields(F&& f) {                           \
    MLXVK_FOR_EACH(MLXVK_FIELD, __VA_ARGS__)     \
  }
#define MLXVK_VARIANT_FIELD(member) f(#member, v.member);
#define VARIANT_FIELDS(Variant, ...)                 \
  template <typename F>                              \
  void fields_of(Variant& v, F&& f) {                \
    MLXVK_FOR_EACH(MLXVK_VARIANT_FIELD, __VA_ARGS__) \
  }
VARIANT_FIELDS(QmvVariant, QMV_MEMBERS)
VARIANT_FIELDS(QmmFragmentsVariant, FRAGMENTS_MEMBERS)

// Heads that an operation takes one by one from its first operand to its
// output: rows of D contiguous items. D is 0 if its rows are no such heads.
struct Heads {
  // Strides in items: of the first operand and of the output; 0 for extent 1.
  struct Axis {
    int extent = 1, in = 0, out = 0;
  };
  using Side = int Axis::*;
  static constexpr Side in = &Axis::in, out = &Axis::out;

  uint32_t D = 0;
  // Bytes from the addresses of both to their first heads.
  int64_t in_offset = 0, out_offset = 0;
  Axis axes[3]{};

  uint64_t count() const {
    return uint64_t(axes[0].extent) * axes[1].extent * axes[2].extent;
  }
  // Puts the axes in the order of h's: the strides of `side` become those of
  // h's side `of`. False if they are of other heads.
  bool align(Side side, const Heads& h, Side of) {
    for (int i = 0; i < 3; ++i) {
      int k = i;
      auto& b = h.axes[i];
      while (k < 3 && (axes[k].extent != b.extent || axes[k].*side != b.*of)) {
        ++k;
      }
      if (k == 3) {
        return false;
      }
      std::swap(axes[i], axes[k]);
    }
    return D == h.D;
  }
};

// One product of few rows: BATCH_ONE.
using RowsVariant = std::variant<QmvVariant, QmmFragmentsVariant>;
struct ProductRecord {
  using Args = ProductArgs;
  enum Operand { X, W, Scales, Side }; // Side if has_side()
  RowsVariant variant;

  bool has_side() const {
    return std::visit([](auto& v) { return v.SIDE != SIDE_NONE; }, variant);
  }
  static constexpr std::string_view name = "product";
  template <typename F>
  void fields(F&& f) {
    size_t form = variant.index();
    f("form", form);
    std::visit([&](auto& v) { fields_of(v, f); }, variant);
  }
};

// y = a + b: dense floats, as many items in all three.
struct AddRecord {
  enum Operand { A, B };
  Type type;
  RECORD("add", type)
};

// y = GATE_...(gate) * up (kernels/quant/fused.h), likewise; which of the two
// operands is the gate.
struct GateRecord {
  enum Operand { A, B };
  Type type;
  uint32_t gate, operand;
  RECORD("gate", type, gate, operand)
};

// Root mean square norm of rows.
struct NormRecord {
  using Args = NormArgs;
  enum Operand { X, Weight };
  Type type;
  bool weight, vec; // whether there is a Weight; vec: four items at a time
  int lanes;
  Heads heads{};
  RECORD("norm", type, weight, vec, lanes, heads)
};

// Records of layers of experts (rewrite_moe.cpp). Operands are dense: rows of n
// items follow one another.

// y = softmax(x), by a kernel of this variant.
struct SoftmaxRecord {
  enum Operand { X };
  SoftmaxVariant variant;
  uint32_t rows, n;
  RECORD(
      "softmax",
      variant.T,
      variant.LANES,
      variant.CHUNKS,
      variant.VEC,
      rows,
      n)
};

// y = argsort(x) of each row, u32.
struct ArgSortRecord {
  enum Operand { X };
  Type type;
  uint32_t rows, n;
  RECORD("argsort", type, rows, n)
};

// y[r, i] = x[r, index[r, i]], u32, of rows of x with n items and rows of y
// with k; rows of the index are `pitch` apart.
struct TakeRecord {
  enum Operand { X, Index };
  uint32_t item; // bytes
  uint32_t rows, n, k, pitch;
  RECORD("take", item, rows, n, k, pitch)
};

// y[r, i] = x[r, 0, i] + x[r, 1, i] + ...: one invocation adds `extent` items
// up, one after the other.
struct SumRecord {
  enum Operand { X };
  Type type;
  uint32_t rows, extent, inner;
  RECORD("sum", type, rows, extent, inner)
};

// y[r, i] = a[r, i] * b[r], or a[r, i] / b[r]. A single row may be any dense
// array, times one number.
struct PerRowRecord {
  enum Operand { A, B };
  Type type;
  bool divides;
  uint32_t rows, n;
  RECORD("per_row", type, divides, rows, n)
};

// Products of single rows by index: BATCH_GATHER.
struct GatheredRecord {
  using Args = StackedProductArgs;
  enum Operand { X, W, Scales, Side }; // Side if has_side(); then lhs(), rhs()
  QmvVariant variant;

  bool has_side() const {
    return variant.SIDE != SIDE_NONE;
  }
  uint32_t lhs() const {
    return Side + has_side();
  }
  uint32_t rhs() const {
    return lhs() + 1;
  }
  static constexpr std::string_view name = "gathered";
  template <typename F>
  void fields(F&& f) {
    fields_of(variant, f);
  }
};

// Records of attention over a quantized cache (rewrite_attention.h).

// y = x @ w^T, affine, BATCH_STACK. Nobody reads x again if it is the last use.
struct ScoresRecord {
  using Args = StackedProductArgs;
  enum Operand { X, W, Scales, Side };
  Type type;
  int bits, group;
  bool last_use;
  RECORD("scores", type, bits, group, last_use)
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
  RECORD("mask", type, adds, mask, ndim)
};

// A forward rotation without LARGE. The axes of its heads are sequences, heads
// and positions.
struct RopeRecord {
  using Args = RopeArgs;
  enum Operand { X, Offset, Freqs };
  Type type;
  bool traditional, freqs; // whether there are Freqs
  Heads heads{};
  RECORD("rope", type, traditional, freqs, heads)
};

// A raw copy of heads with items of this many bytes.
struct CopyRecord {
  enum Operand { X };
  uint32_t item;
  Heads heads{};
  RECORD("copy", item, heads)
};
#undef RECORD
#undef VARIANT_FIELDS
#undef MLXVK_FIELD
#undef MLXVK_VARIANT_FIELD

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

// The host's part of gathers and scatters: makes a nest of loops over all
// operands that determine an item's place, as the kernel's arguments.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/gather_scatter.h"
#include "mlx/backend/gpu/copy.h"
#include "ops/layout.h"
#include "ops/records.h"

namespace mlx::core::vulkan {

// with_constant() for the dimension counts of variants: exact up to 4, or up to
// 2 in kernels with two counts; else max_ndim.
template <typename F>
void with_ndim(const Shape& shape, const char* op, F&& f) {
  with_constant<1, 2, 3, 4, max_ndim>(variant_ndim(shape.size(), op), f);
}
template <typename F>
void with_small_ndim(const Shape& shape, const char* op, F&& f) {
  with_constant<1, 2, max_ndim>(variant_ndim(shape.size(), op), f);
}

// A reduction's function in common/combine.glsl; null for assignments.
template <typename Primitive>
const char* combine_function(typename Primitive::ReduceType type) {
  if constexpr (requires { Primitive::Prod; }) {
    switch (type) {
      case Primitive::Prod:
        return "combine_Prod";
      case Primitive::Max:
        return "combine_Max";
      case Primitive::Min:
        return "combine_Min";
      default:
        break;
    }
  }
  return type == Primitive::Sum ? "combine_Sum" : nullptr;
}

// Gives `out` the input's items, in row-major order; a donated input becomes
// the output without a copy.
inline void copy_to_update(const array& in, array& out, const Stream& s) {
  CopyType type = in.data_size() == 1 ? CopyType::Scalar
      : in.flags().row_contiguous     ? CopyType::Vector
                                      : CopyType::General;
  copy_gpu(in, out, type, s);
}

struct CollapsedAxes {
  Shape shape;
  std::vector<Strides> strides; // by operand
};

inline bool needs_large_count(uint64_t count) {
  return count > std::numeric_limits<uint32_t>::max() / 2;
}

constexpr int max_index_arrays = 20;

// The work of moving `count` words to or from anywhere: at most one memory
// transaction and one index a word, not the whole table.
inline Work scattered(uint64_t count, const array& src, const array& dst) {
  constexpr double transaction = 32, index = 8;
  uint64_t smaller = std::min(src.nbytes(), dst.nbytes());
  return {.bytes = count * (transaction + index) + 2.0 * smaller};
}

// Gather and Scatter: slices of `target` that start where the index tuples
// point along `axes`. A scatter's updates are traversed with the tuples along
// their leading axes, and with a slice along the others.
class TupleMove {
 public:
  // The index arrays are the inputs from the second on; there is at least one.
  TupleMove(
      const std::vector<array>& inputs,
      const std::vector<int>& axes,
      const array& target,
      const Shape& slice,
      const array* updates = nullptr);

  // Moves words, as wide as alignment allows, to or from `other`; their bytes.
  int widen(const array& other);

  // Runs a GatherVariant (UPDATES 0) or ScatterVariant with its operation set.
  template <int UPDATES, typename Variant>
  void
  dispatch(StreamEncoder& enc, Variant v, const array& src, const array& dst) {
    uint64_t count = (UPDATES ? src : dst).size() / ratio_;
    uint32_t words = 1;
    if constexpr (UPDATES == 0) {
      // Not for few items (idle cores), and not on llvmpipe (slower).
      bool several = count >= 1 << 21 && !enc.target().policy.serial;
      words = v.WORDS = several ? 4 : 1;
    }
    std::vector<Operand> reads{src};
    for (auto& index : index_) {
      reads.emplace_back(index);
    }
    constexpr const char* op = Variant::file.data();
    check_count(op);
    v.I = type_of(index_[0]);
    v.LARGE = needs_large_count(count);
    with_constant<1, 2, 3, max_index_arrays>(index_.size(), [&](auto nidx) {
      with_small_ndim(tuples_.shape, op, [&](auto i_ndim) {
        with_small_ndim(slices_.shape, op, [&](auto s_ndim) {
          v.NIDX = nidx;
          v.I_NDIM = i_ndim;
          v.S_NDIM = s_ndim;
          while (int(reads.size()) < nidx() + 1) {
            reads.push_back(reads.back()); // unused by the kernel
          }
          TupleArgs<nidx, i_ndim, s_ndim, UPDATES> args{};
          args.count = count;
          fill(args);
          enc.dispatch(
              v,
              reads,
              {dst},
              args,
              linear(count, 256 * words),
              scattered(count, src, dst));
        });
      });
    });
  }

 private:
  void check_count(const char* op) const;

  template <int NIDX, int I_NDIM, int S_NDIM, int UPDATES>
  void fill(TupleArgs<NIDX, I_NDIM, S_NDIM, UPDATES>& args) const {
    args.slice = elements(slices_.shape);
    args.nidx = index_.size();
    for (uint n = 0; n < args.nidx; ++n) {
      args.axis_strides[n] = target_.strides(axes_[n]) / ratio_;
      args.axis_sizes[n] = target_.shape(axes_[n]);
      args.axis_starts[n] = starts_[n];
      assign(args.tuple_strides[n], tuples_.strides[n]);
    }
    if (UPDATES) {
      assign(args.tuple_strides[NIDX], tuples_.strides.back());
    }
    for (int k = 0; k < 1 + UPDATES; ++k) {
      assign(args.slice_strides[k], slices_.strides[k]);
    }
    assign(args.tuple_shape, tuples_.shape);
    assign(args.slice_shape, slices_.shape);
    args.tuple_ndim = tuples_.shape.size();
    args.slice_ndim = slices_.shape.size();
  }

  std::span<const array> index_;
  const std::vector<int>& axes_;
  const array& target_;
  CollapsedAxes tuples_, slices_;
  // The places along each axis where a slice can begin.
  std::vector<uint32_t> starts_;
  int ratio_ = 1; // items of the target that a word holds
};

// GatherAxis (UPDATES 0) and ScatterAxis; the variant is complete except for
// the operation.
template <int UPDATES, typename Variant>
void dispatch_along_axis(
    StreamEncoder& enc,
    Variant v,
    int axis,
    const array& src,
    const array& index,
    const array& dst) {
  const array& target = UPDATES ? dst : src;
  std::array<const array*, 3> operands{&target, &index, &src};
  Shape shape = remove_index(index.shape(), axis);
  std::array<Strides, 2 + UPDATES> strides;
  for (int k = 0; k < 2 + UPDATES; ++k) {
    strides[k] = remove_index(operands[k]->strides(), axis);
  }
  collapse(shape, strides);
  v.I = type_of(index);
  v.LARGE = needs_large_count(index.size());
  with_ndim(shape, Variant::file.data(), [&](auto ndim) {
    v.NDIM = ndim;
    AxisArgs<ndim, UPDATES> args{};
    args.count = index.size();
    args.post = 1;
    for (int d = axis + 1; d < index.ndim(); ++d) {
      args.post *= index.shape(d);
    }
    for (int k = 0; k < 2 + UPDATES; ++k) {
      args.axis_strides[k] = operands[k]->strides(axis);
      assign(args.strides[k], strides[k]);
    }
    assign(args.shape, shape);
    args.ndim = shape.size();
    args.index_size = index.shape(axis);
    args.axis_size = target.shape(axis);
    Descriptor descriptor;
    if constexpr (UPDATES == 0) {
      descriptor = take_of(args, v.I, src);
    }
    auto grid = linear(args.count, 256);
    enc.dispatch(
        v,
        {src, index},
        {dst},
        args,
        grid,
        scattered(args.count, src, dst),
        descriptor);
  });
}

} // namespace mlx::core::vulkan

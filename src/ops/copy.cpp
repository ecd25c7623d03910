// Copies, casts and fills: all of MLX's moves of data without computation.
// Copies that keep the bits move raw words, as wide as alignment allows.
#include "mlx/backend/gpu/copy.h"
#include "mlx/backend/common/utils.h"

#include <algorithm>
#include <array>

#include "kernels/copy.h"
#include "kernels/copy_flat.h"
#include "kernels/fill.h"
#include "ops/copy.h"
#include "ops/records.h"
#include "ops/view.h"

namespace mlx::core {

namespace vulkan {

namespace {

// Casts that keep the bits. A bool is a byte of 0 or 1.
bool same_bits(Dtype from, Dtype to) {
  if (from == to) {
    return true;
  }
  auto whole = [](Dtype t) { return issubdtype(t, integer) || t == bool_; };
  return whole(from) && whole(to) && to != bool_ &&
      size_of(from) == size_of(to);
}

// Copies between contiguous arrays; returns false if addresses are not aligned.
bool copy_flat(
    StreamEncoder& enc,
    const array& in,
    array& out,
    int64_t in_offset,
    int64_t out_offset,
    uint64_t n) {
  bool raw = same_bits(in.dtype(), out.dtype());
  auto aligned = [raw](const array& a) {
    return raw ? a.offset() % 16 == 0 : by_fours(a);
  };
  // The kernel starts at the operands' first elements.
  if (in_offset != 0 || out_offset != 0 || !aligned(in) || !aligned(out)) {
    return false;
  }
  Operand src(in, 0, n * in.itemsize()), dst(out, 0, n * out.itemsize());
  uint64_t count = raw ? n * out.itemsize() : n;
  uint64_t pack = raw ? 16 : 4;
  CopyFlatVariant variant{
      .RAW = raw,
      .S = raw ? Type::u8 : type_of(in),
      .D = raw ? Type::u8 : type_of(out)};
  enc.dispatch(
      variant,
      {src},
      {dst},
      CopyFlatArgs{count},
      linear(count / pack + count % pack, 256));
  return true;
}

void fill(
    StreamEncoder& enc,
    const array& value,
    array& out,
    int64_t out_offset,
    uint64_t n) {
  // The kernel starts at the operand's first element.
  if (out_offset != 0) {
    Move move{{static_cast<int32_t>(n)}, {0}, {1}};
    move.out_offset = out_offset;
    return copy_strided(enc, value, out, move);
  }
  uint64_t size = out.itemsize();
  uint64_t misaligned = out.offset() % 16;
  uint64_t head =
      std::min<uint64_t>(n, misaligned ? (16 - misaligned) / size : 0);
  uint64_t per_word = 16 / size;
  uint64_t words = (n - head) / per_word;
  FillVariant variant{.S = type_of(value), .D = type_of(out)};
  enc.dispatch(
      variant,
      {Operand(value, 0, value.itemsize())},
      {Operand(out, 0, n * size)},
      FillArgs{n, head},
      linear(words + (n - words * per_word), 256));
}

// The bytes that an operand may touch. With a dynamic offset, unknown here,
// these are all of the array's buffer.
Operand operand(
    const array& a,
    const Shape& shape,
    const Strides& strides,
    int64_t offset,
    bool dynamic) {
  if (dynamic) {
    return Operand(a);
  }
  auto [low, high] = reach(shape, strides);
  int64_t size = a.itemsize();
  return Operand(a, (offset + low) * size, (offset + high) * size);
}

// The collapsed dimensions of a copy. Index 0: source, 1: destination.
struct CollapsedCopy {
  Shape shape;
  std::array<Strides, 2> strides;
  std::array<int64_t, 2> offset;

  // Items in the widest word of a raw move.
  int items_a_word(const array& in, const array& out) const {
    Alignment alignment(out.itemsize());
    alignment.bytes(in.offset());
    alignment.bytes(out.offset());
    alignment.elements(shape.back());
    for (int k = 0; k < 2; ++k) {
      alignment.operand(strides[k]);
      alignment.elements(offset[k]);
    }
    return alignment.word() / out.itemsize();
  }

  // Changes the unit to words of `ratio` items.
  void widen(int ratio) {
    shape.back() /= ratio;
    for (int k = 0; k < 2; ++k) {
      offset[k] /= ratio;
      for (size_t d = 0; d + 1 < strides[k].size(); ++d) {
        strides[k][d] /= ratio;
      }
    }
  }

  // Whether the offsets of operand k need 64 bits.
  bool large(int k, const array& a, bool dynamic) const {
    auto [low, high] = reach(shape, strides[k]);
    size_t size = a.itemsize();
    return beyond_32_bits(offset[k] + high, size) ||
        beyond_32_bits(-(offset[k] + low), size) ||
        (dynamic && beyond_32_bits(a.data_size(), size));
  }
};

// A copy of heads, or nothing that a rewrite joins.
Descriptor copy_record(const Move& m, size_t size) {
  Heads h = heads_of(m.shape, m.in_strides, m.out_strides, size);
  if (h.D == 0) {
    return {};
  }
  h.in_offset = m.in_offset * int64_t(size);
  h.out_offset = m.out_offset * int64_t(size);
  return CopyRecord{uint32_t(size), h};
}

void launch(
    StreamEncoder& enc,
    const CollapsedCopy& collapsed,
    const CopyVariant& variant,
    const OperandList& reads,
    const Operand& dst,
    const Descriptor& descriptor) {
  int64_t count = elements(collapsed.shape);
  with_index(variant.NDIM, variant.LARGE, [&]<int NDIM, typename Index>() {
    CopyArgs<NDIM, Index> args{};
    args.count = count;
    args.in_offset = collapsed.offset[0];
    args.out_offset = collapsed.offset[1];
    args.ndim = collapsed.shape.size();
    assign(args.in_strides, collapsed.strides[0]);
    assign(args.out_strides, collapsed.strides[1]);
    assign(args.shape, collapsed.shape);
    // Items that a view skips are not read.
    std::span<const Operand> from = reads;
    double item = from.front().a->itemsize() + dst.a->itemsize();
    enc.dispatch(
        variant,
        reads,
        {dst},
        args,
        linear(count, 256),
        {.bytes = count * item},
        descriptor);
  });
}

} // namespace

void copy_strided(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Move move,
    const char* reduce) {
  if (elements(move.shape) == 0) {
    return;
  }
  bool dyn_in = move.dynamic_in, dyn_out = move.dynamic_out;
  Operand src =
      operand(in, move.shape, move.in_strides, move.in_offset, dyn_in);
  Operand dst =
      operand(out, move.shape, move.out_strides, move.out_offset, dyn_out);
  bool raw = !reduce && same_bits(in.dtype(), out.dtype());
  Descriptor descriptor;
  if (raw && !dyn_in && !dyn_out) {
    descriptor = copy_record(move, out.itemsize());
  }
  CollapsedCopy collapsed{
      std::move(move.shape),
      {std::move(move.in_strides), std::move(move.out_strides)},
      {move.in_offset, move.out_offset}};
  collapse(collapsed.shape, collapsed.strides);

  CopyVariant variant{
      .S = raw ? Type::u8 : type_of(in),
      .D = raw ? Type::u8 : type_of(out),
      .REDUCE = reduce ? reduce : "none",
      .REDUCES = reduce != nullptr,
      .NDIM = variant_ndim(collapsed.shape.size(), "copy"),
      .DYN_IN = dyn_in,
      .DYN_OUT = dyn_out,
      .LARGE = beyond_32_bits(elements(collapsed.shape), out.itemsize()) ||
          collapsed.large(0, in, dyn_in) || collapsed.large(1, out, dyn_out)};
  if (raw) {
    int ratio = dyn_in || dyn_out ? 1 : collapsed.items_a_word(in, out);
    variant.WORD = ratio * out.itemsize();
    collapsed.widen(ratio);
  }
  FewOperands reads{src};
  for (auto* offset : {move.dynamic_in, move.dynamic_out}) {
    if (offset) {
      reads.add(*offset);
    }
  }
  launch(enc, collapsed, variant, reads, dst, descriptor);
}

} // namespace vulkan

void copy_gpu(const array& in, array& out, CopyType ctype, const Stream& s) {
  bool donated = set_copy_output_data(in, out, ctype);
  if (donated && vulkan::same_bits(in.dtype(), out.dtype())) {
    // The next writer may keep a part of the data, which the host may hold.
    vulkan::encoder(s).bring_to_device(out);
    return;
  }
  copy_gpu_inplace(
      in,
      out,
      ctype == CopyType::GeneralGeneral ? CopyType::General : ctype,
      s);
}

void copy_gpu_inplace(
    const array& in,
    array& out,
    const Shape& data_shape,
    const Strides& i_strides,
    const Strides& o_strides,
    int64_t i_offset,
    int64_t o_offset,
    CopyType ctype,
    const Stream& s,
    std::optional<array> dynamic_i_offset,
    std::optional<array> dynamic_o_offset) {
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(s);
  switch (ctype) {
    case CopyType::Scalar:
      vulkan::fill(enc, in, out, o_offset, out.data_size());
      return;
    case CopyType::Vector: {
      auto n = out.data_size();
      if (vulkan::copy_flat(enc, in, out, i_offset, o_offset, n)) {
        return;
      }
      // Rows of 2^30 items replace a run, whose length may exceed 2^31 items.
      constexpr int64_t row = int64_t(1) << 30;
      for (int64_t done = 0; done < int64_t(n);) {
        int64_t rows = (n - done) / row;
        int32_t width = rows ? row : n - done;
        rows = std::max<int64_t>(rows, 1);
        vulkan::copy_strided(
            enc,
            in,
            out,
            {{int32_t(rows), width},
             {row, 1},
             {row, 1},
             i_offset + done,
             o_offset + done});
        done += rows * width;
      }
      return;
    }
    case CopyType::General:
    case CopyType::GeneralGeneral: {
      if (dynamic_i_offset) {
        *dynamic_i_offset =
            vulkan::dynamic_offset(enc, *dynamic_i_offset, in, data_shape);
      }
      if (dynamic_o_offset) {
        *dynamic_o_offset =
            vulkan::dynamic_offset(enc, *dynamic_o_offset, out, data_shape);
      }
      vulkan::copy_strided(
          enc,
          in,
          out,
          {data_shape,
           i_strides,
           ctype == CopyType::General ? make_contiguous_strides(data_shape)
                                      : o_strides,
           i_offset,
           o_offset,
           dynamic_i_offset ? &*dynamic_i_offset : nullptr,
           dynamic_o_offset ? &*dynamic_o_offset : nullptr});
      return;
    }
  }
}

void fill_gpu(const array& val, array& out, const Stream& s) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  vulkan::fill(vulkan::encoder(s), val, out, 0, out.data_size());
}

void reshape_gpu(const array& in, array& out, Stream s) {
  auto [copy_necessary, out_strides] = prepare_reshape(in, out);
  if (!copy_necessary) {
    shared_buffer_reshape(in, out_strides, out);
    return;
  }
  out.set_data(allocator::malloc(out.nbytes()));
  copy_gpu_inplace(
      in,
      out,
      in.shape(),
      in.strides(),
      make_contiguous_strides(in.shape()),
      0,
      0,
      CopyType::General,
      s);
}

} // namespace mlx::core

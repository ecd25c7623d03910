// Copies, casts and fills: every place where MLX moves data without
// computing. Same-size copies move raw words, as wide as alignment allows.
#include "mlx/backend/gpu/copy.h"
#include "mlx/backend/common/utils.h"

#include <algorithm>
#include <array>

#include "ops/copy.h"
#include "ops/strided.h"

namespace mlx::core {

namespace vulkan {

namespace {

// Casts that leave the bits alone. A bool is 0 or 1 in its byte.
bool same_bits(Dtype from, Dtype to) {
  if (from == to) {
    return true;
  }
  auto whole = [](Dtype t) { return issubdtype(t, integer) || t == bool_; };
  return whole(from) && whole(to) && to != bool_ &&
      size_of(from) == size_of(to);
}

struct FlatParams {
  uint64_t count;
};

struct FillParams {
  uint64_t count, head;
};

// Contiguous to contiguous. False if the addresses are not aligned for it.
bool copy_flat(
    StreamEncoder& enc,
    const array& in,
    array& out,
    int64_t in_offset,
    int64_t out_offset,
    uint64_t n) {
  int64_t in_size = in.itemsize(), out_size = out.itemsize();
  int64_t from = in_offset * in_size, to = out_offset * out_size;
  bool raw = same_bits(in.dtype(), out.dtype());
  auto misaligned = [raw](int64_t address, int64_t item) {
    return address % (raw ? 16 : std::min<int64_t>(16, 4 * item)) != 0;
  };
  // The kernel starts at the operands' first elements.
  if (from != 0 || to != 0 || misaligned(in.offset(), in_size) ||
      misaligned(out.offset(), out_size)) {
    return false;
  }
  Operand src(in, 0, n * in_size), dst(out, 0, n * out_size);
  if (raw) {
    uint64_t bytes = n * out_size;
    auto& k = enc.kernel("copy_flat", {{"BYTES", 1}});
    enc.dispatch(
        k,
        {src},
        {dst},
        FlatParams{bytes},
        linear(bytes / 16 + bytes % 16, 256));
  } else {
    auto& k =
        enc.kernel("copy_flat", {{"S", type_of(in)}, {"D", type_of(out)}});
    enc.dispatch(k, {src}, {dst}, FlatParams{n}, linear(n / 4 + n % 4, 256));
  }
  return true;
}

void fill(
    StreamEncoder& enc,
    const array& value,
    array& out,
    int64_t out_offset,
    uint64_t n) {
  int64_t size = out.itemsize();
  int64_t begin = out_offset * size;
  Operand dst(out, begin, begin + n * size);
  // The kernel starts at the operand's first element.
  if (out_offset != 0) {
    copy_strided(
        enc,
        value,
        out,
        Move{
            {static_cast<int32_t>(n)},
            {0},
            {1},
            0,
            out_offset,
            nullptr,
            nullptr});
    return;
  }
  uint64_t misaligned = out.offset() % 16;
  uint64_t head =
      std::min<uint64_t>(n, misaligned ? (16 - misaligned) / size : 0);
  uint64_t per_word = 16 / size;
  uint64_t words = (n - head) / per_word;
  auto& k = enc.kernel("fill", {{"S", type_of(value)}, {"D", type_of(out)}});
  enc.dispatch(
      k,
      {Operand(value, 0, value.itemsize())},
      {dst},
      FillParams{n, head},
      linear(words + (n - words * per_word), 256));
}

// The bytes an operand may touch. With a dynamic offset that is not known
// here: all that the array's buffer holds.
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

} // namespace

void copy_strided(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Move move,
    const char* reduce) {
  int64_t count = elements(move.shape);
  if (count == 0) {
    return;
  }
  bool dyn_in = move.dynamic_in, dyn_out = move.dynamic_out;
  Operand src =
      operand(in, move.shape, move.in_strides, move.in_offset, dyn_in);
  Operand dst =
      operand(out, move.shape, move.out_strides, move.out_offset, dyn_out);

  std::array<Strides, 2> strides{
      std::move(move.in_strides), std::move(move.out_strides)};
  collapse(move.shape, strides);

  int in_item = in.itemsize(), out_item = out.itemsize();
  bool raw = !reduce && same_bits(in.dtype(), out.dtype());
  int ratio = 1;
  if (raw && !dyn_in && !dyn_out) {
    Alignment alignment(out_item);
    alignment.operand(strides[0]);
    alignment.operand(strides[1]);
    alignment.elements(move.shape.back());
    alignment.bytes(in.offset());
    alignment.bytes(out.offset());
    alignment.elements(move.in_offset);
    alignment.elements(move.out_offset);
    ratio = alignment.word() / out_item;
  }
  bool wide = beyond_32_bits(count, out_item) ||
      (dyn_in && beyond_32_bits(in.data_size(), in_item)) ||
      (dyn_out && beyond_32_bits(out.data_size(), out_item));
  for (int k = 0; k < 2; ++k) {
    auto [low, high] = reach(move.shape, strides[k]);
    int64_t offset = k == 0 ? move.in_offset : move.out_offset;
    int item = k == 0 ? in_item : out_item;
    wide = wide || beyond_32_bits(offset + high, item) ||
        beyond_32_bits(-(offset + low), item);
  }
  if (ratio > 1) {
    move.shape.back() /= ratio;
    move.in_offset /= ratio;
    move.out_offset /= ratio;
    count /= ratio;
    for (auto& s : strides) {
      for (size_t d = 0; d + 1 < s.size(); ++d) {
        s[d] /= ratio;
      }
    }
  }

  int ndim = variant_ndim(move.shape.size(), "copy");
  ArgBlock args;
  if (wide) {
    args.add<uint64_t>(count);
  } else {
    args.add<uint32_t>(count);
  }
  args.index(move.in_offset, wide)
      .index(move.out_offset, wide)
      .indices(strides[0], ndim, wide)
      .indices(strides[1], ndim, wide)
      .extents(move.shape, ndim)
      .add<uint32_t>(move.shape.size());

  auto& k = reduce ? enc.kernel(
                         "copy",
                         {{"REDUCE", reduce},
                          {"S", type_of(out)},
                          {"D", type_of(out)},
                          {"NDIM", ndim},
                          {"DYN_IN", 0},
                          {"DYN_OUT", 0},
                          {"WIDE", int(wide)}})
      : raw ? enc.kernel(
                  "copy",
                  {{"WORD", ratio * out_item},
                   {"NDIM", ndim},
                   {"DYN_IN", int(dyn_in)},
                   {"DYN_OUT", int(dyn_out)},
                   {"WIDE", int(wide)}})
            : enc.kernel(
                  "copy",
                  {{"S", type_of(in)},
                   {"D", type_of(out)},
                   {"NDIM", ndim},
                   {"DYN_IN", int(dyn_in)},
                   {"DYN_OUT", int(dyn_out)},
                   {"WIDE", int(wide)}});
  // Unused places repeat the source and are not passed.
  const Operand reads[] = {
      src,
      dyn_in        ? Operand(*move.dynamic_in)
          : dyn_out ? Operand(*move.dynamic_out)
                    : src,
      dyn_out ? Operand(*move.dynamic_out) : src};
  std::span<const Operand> used(reads, 1 + dyn_in + dyn_out);
  dispatch(enc, k, used, dst, args, linear(count, 256));
}

} // namespace vulkan

void copy_gpu(const array& in, array& out, CopyType ctype, const Stream& s) {
  bool donated = set_copy_output_data(in, out, ctype);
  if (donated && vulkan::same_bits(in.dtype(), out.dtype())) {
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
      // Runs beyond 2^31 items become rows.
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
             o_offset + done,
             nullptr,
             nullptr});
        done += rows * width;
      }
      return;
    }
    case CopyType::General:
    case CopyType::GeneralGeneral:
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

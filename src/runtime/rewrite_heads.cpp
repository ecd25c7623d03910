#include "runtime/rewrite_heads.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mlx::core::vulkan {

Heads heads_of(const HeadChain& c, uint32_t record, bool output) {
  const RopePart& q = c.part;
  Heads x{q.x, q.x_strides}, y{q.y, q.y_strides};
  Heads normed{q.normed, q.normed_strides};
  if (record == c.norm) {
    return output ? normed : x;
  }
  if (record == c.rope) {
    return output ? y : c.norm == none ? x : normed;
  }
  return output ? Heads{q.cache, q.cache_strides} : c.rope == none ? x : y;
}

namespace {

// Strides of extents E that stay within 31 bits of bytes.
bool set_strides(
    RopeStrides& to,
    const HeadChain& c,
    Type t,
    int64_t b,
    int64_t n,
    int64_t l) {
  const int64_t extents[]{c.B, c.part.N, c.part.L};
  int64_t strides[]{b, n, l}, far = c.part.D;
  for (int i = 0; i < 3; ++i) {
    strides[i] = extents[i] > 1 ? strides[i] : 0;
    far += std::abs(strides[i]) * (extents[i] - 1);
  }
  if (far * size_of(t) > std::numeric_limits<int32_t>::max()) {
    return false;
  }
  to = {int(strides[0]), int(strides[1]), int(strides[2])};
  return true;
}

} // namespace

bool rope_of(const Records& p, uint32_t record, HeadChain& c) {
  auto& what = p.what<RopeRecord>(record);
  auto args = p.args<RopeRecord>(record);
  RopePart& q = c.part;
  c.rope = record;
  c.B = args.B;
  q.x = p.address(record, 0);
  q.offset = p.address(record, 1);
  q.freqs = what.freqs ? p.address(record, 2) : 0;
  q.y = p.output_address(record);
  q.offset_stride = static_cast<int>(args.offset_stride);
  q.freqs_stride = static_cast<int>(args.freqs_stride);
  q.N = args.N;
  q.L = args.L;
  q.D = args.D;
  q.half_dims = args.half_dims;
  q.flags = what.traditional ? ROPE_TRADITIONAL : 0;
  q.scale = args.scale;
  q.log2_base = args.log2_base;
  q.log2_base_low = args.log2_base_low;
  int64_t row = args.D, head = row * args.L;
  return args.d_stride == 1 && q.half_dims > 0 && q.D <= most_head_dims &&
      set_strides(
             q.x_strides,
             c,
             what.type,
             args.b_stride,
             args.n_stride,
             args.t_stride) &&
      set_strides(q.y_strides, c, what.type, head * args.N, head, row);
}

bool add_norm(const Records& p, uint32_t record, Type t, HeadChain& c) {
  auto& what = p.what<NormRecord>(record);
  auto args = p.args<NormRecord>(record);
  RopePart& q = c.part;
  uint64_t count = uint64_t(c.B) * q.N * q.L;
  if (what.type != t || args.rows.n != q.D || args.rows.count != count ||
      (what.weight && args.w_stride != 1 && q.D > 1)) {
    return false;
  }
  // The axes, as digits of a row's number: from the last to the first.
  struct Axis {
    int64_t extent, stride;
    int64_t norm_stride = 0;
  };
  Axis axes[]{{c.B, q.x_strides.b}, {q.N, q.x_strides.n}, {q.L, q.x_strides.t}};
  Axis* sorted[]{&axes[0], &axes[1], &axes[2]};
  std::sort(std::begin(sorted), std::end(sorted), [](auto* a, auto* b) {
    return a->stride < b->stride;
  });
  int64_t rows = 1, inner = args.rows.inner;
  for (Axis* a : sorted) {
    if (a->extent == 1) {
      continue;
    }
    if (a->stride != rows * q.D) {
      return false;
    }
    if (rows % inner == 0) {
      a->norm_stride = rows / inner * args.rows.outer_stride;
    } else if (rows * a->extent <= inner) {
      a->norm_stride = rows * args.rows.inner_stride;
    } else {
      return false;
    }
    rows *= a->extent;
  }
  RopeStrides normed = q.x_strides;
  if (!set_strides(
          q.x_strides,
          c,
          t,
          axes[0].norm_stride,
          axes[1].norm_stride,
          axes[2].norm_stride)) {
    return false;
  }
  c.norm = record;
  q.normed_strides = normed;
  q.normed = q.x;
  q.x = p.address(record, 0);
  q.weight = what.weight ? p.address(record, 1) : 0;
  q.flags |= ROPE_NORMED;
  q.eps = args.eps;
  q.inverse_n = args.inverse_n;
  return true;
}

namespace {

template <int NDIM>
bool read_copy(const Records& p, uint32_t record, Walk& w, int word, Type t) {
  auto args = p.parameters<CopyRecord::Args<NDIM>>(record);
  int items = word / static_cast<int>(size_of(t));
  if (items * static_cast<int>(size_of(t)) != word) {
    return false;
  }
  w.src = p.address(record, 0) + int64_t(args.in_offset) * word;
  w.dst = p.address(record, 1) + int64_t(args.out_offset) * word;
  w.ndim = NDIM;
  for (int d = 0; d < NDIM; ++d) {
    bool last = d == NDIM - 1;
    int64_t step = last ? 1 : items;
    w.axes[d] = {
        int64_t(args.shape[d]) * (last ? items : 1),
        args.in_strides[d] * step,
        args.out_strides[d] * step};
  }
  auto& row = w.axes[NDIM - 1];
  return row.in == 1 && row.out == 1;
}

} // namespace

bool copy_of(const Records& p, uint32_t record, Type t, Walk& w) {
  auto [word, ndim] = p.what<CopyRecord>(record);
  switch (ndim) {
    case 1:
      return read_copy<1>(p, record, w, word, t);
    case 2:
      return read_copy<2>(p, record, w, word, t);
    case 3:
      return read_copy<3>(p, record, w, word, t);
    case 4:
      return read_copy<4>(p, record, w, word, t);
    default:
      return false;
  }
}

bool add_copy(uint32_t record, Walk w, Type t, HeadChain& c) {
  std::sort(
      w.axes, w.axes + w.ndim, [](auto& a, auto& b) { return a.in > b.in; });
  int64_t items = 1;
  for (int d = w.ndim; d-- > 0;) {
    if (w.axes[d].extent > 1 && w.axes[d].in != items) {
      return false;
    }
    items *= w.axes[d].extent;
  }
  const RopePart& q = c.part;
  if (items != int64_t(c.B) * q.N * q.L * q.D) {
    return false;
  }
  // The distance in the cache of `by` items of y, if one axis has all of them.
  auto step = [&](int64_t by, int64_t extent) -> int64_t {
    for (int d = w.ndim; d-- > 0;) {
      auto& a = w.axes[d];
      if (by < a.in * a.extent) {
        bool within = by % a.in == 0 && by * extent <= a.in * a.extent;
        return within ? by / a.in * a.out : -1;
      }
    }
    return extent == 1 ? 0 : -1;
  };
  int64_t head = int64_t(q.L) * q.D;
  int64_t d = step(1, q.D), b = step(head * q.N, c.B), n = step(head, q.N),
          l = step(q.D, q.L);
  bool whole = (d == 1 || q.D == 1) && (b >= 0 || c.B == 1) &&
      (n >= 0 || q.N == 1) && (l >= 0 || q.L == 1);
  if (!whole || !set_strides(c.part.cache_strides, c, t, b, n, l)) {
    return false;
  }
  c.copy = record;
  c.part.cache = w.dst;
  return true;
}

bool copied_heads(
    uint32_t record,
    const Walk& w,
    Type t,
    uint32_t D,
    int64_t most,
    HeadChain& c) {
  auto& row = w.axes[w.ndim - 1];
  Walk::Axis outer[3] = {{1, 0, 0}, {1, 0, 0}, {row.extent / D, D, D}};
  if (row.extent % D != 0 || (w.ndim == 4 && row.extent != D)) {
    return false;
  }
  for (int d = 0; d + 1 < w.ndim; ++d) {
    outer[d] = w.axes[d];
  }
  // The longest axis is divided among workgroups.
  auto longest = std::max_element(
      std::begin(outer), std::end(outer), [](auto& a, auto& b) {
        return a.extent < b.extent;
      });
  std::swap(outer[1], *longest);
  auto &b = outer[0], &n = outer[1], &l = outer[2];
  if (b.extent * n.extent * l.extent * D > most) {
    return false;
  }
  c.copy = record;
  c.B = static_cast<uint32_t>(b.extent);
  c.part.N = static_cast<uint32_t>(n.extent);
  c.part.L = static_cast<uint32_t>(l.extent);
  c.part.D = D;
  c.part.x = w.src;
  c.part.cache = w.dst;
  return set_strides(c.part.x_strides, c, t, b.in, n.in, l.in) &&
      set_strides(c.part.cache_strides, c, t, b.out, n.out, l.out);
}

bool by_fours(const HeadChain& c, Type t) {
  const RopePart& q = c.part;
  uint64_t bytes = 4 * size_of(t), any = 0;
  for (uint64_t address : {q.x, q.weight, q.normed, q.y, q.cache}) {
    any |= address % bytes;
  }
  for (auto& s :
       {q.x_strides, q.normed_strides, q.y_strides, q.cache_strides}) {
    any |= (s.b | s.n | s.t) % 4;
  }
  return any == 0 && q.D % 4 == 0 && q.half_dims % 4 == 0;
}

} // namespace mlx::core::vulkan

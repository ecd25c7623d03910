// Eigenvalues of large symmetric matrices: reflectors make a matrix
// tridiagonal, 4 n^3 / 3 operations of which half are products of blocks;
// divide and conquer has its eigenvectors, by products of halves; and the
// reflectors are applied to these.
#include "kernels/linalg/tridiagonal.h"
#include "ops/layout.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/plan.h"

namespace mlx::core::vulkan {

namespace {

// a = q t q^T, q the product of reflectors.
struct Reduced {
  array diagonals, scales;
  std::optional<Matrices> reflectors; // by columns, the first without row 0
};

// Reflectors that are applied at once.
constexpr uint32_t reflectors_width = 4 * linalg_block;

array symmetric(
    const Matrices& x,
    const Reduced& r,
    const array& state,
    StreamEncoder& enc) {
  int count = x.count, n = x.cols;
  auto type = x.of.dtype();
  Type t = type_of(type);
  array largest = enc.temporary({count, n}, type);
  array a = enc.temporary({count, n, n}, type);
  SymmetricArgs args{x.strides, x.cols, x.count};
  Grid grid = linear(uint64_t(x.count) * n);
  enc.dispatch(SymmetricVariant{t, false}, {x.view()}, {largest}, args, grid);
  enc.dispatch(
      SymmetricVariant{t, true},
      {x.view(), largest},
      {a, state, r.diagonals, r.scales},
      args,
      grid);
  return a;
}

// The columns of a block of a, n - at rows.
void reduce_block(
    const array& a,
    const Matrices& panel,
    const array& state,
    const Reduced& r,
    uint32_t at,
    StreamEncoder& enc) {
  uint32_t n = panel.rows, m = n - at, count = panel.count;
  Type t = type_of(a);
  double bytes = double(m) * count * size_of(t);
  bool many = fills(m, count, enc.target());
  auto product = reduce_product_variant(t, many);
  ReduceColumnVariant column{t, r.reflectors.has_value(), many ? 128u : 32u};
  std::vector<Operand> writes{panel.of, state, r.diagonals};
  if (r.reflectors) {
    writes.emplace_back(r.reflectors->of);
  }
  ReduceArgs args{.n = n, .at = at, .count = count};
  for (; args.column < block_width(at, n - 1); ++args.column) {
    uint32_t rows = m + 2 * args.column + 1;
    args.parts = args.groups = ceil_div(rows, product.rows());
    enc.dispatch(
        product,
        {a, panel.of},
        {state},
        args,
        linear(uint64_t(args.groups) * count),
        Work{.bytes = bytes * m});
    args.groups = ceil_div(m, column.LANES);
    enc.dispatch(
        column,
        {a},
        writes,
        args,
        linear(uint64_t(args.groups) * count),
        Work{.bytes = bytes * (2 * args.column + 6)});
  }
}

Reduced make_tridiagonal(const Matrices& x, bool keep, StreamEncoder& enc) {
  uint32_t n = x.cols;
  int count = x.count;
  auto type = x.of.dtype();
  Reduced r{
      enc.temporary({count, 2, int(n)}, type), enc.temporary({count}, type)};
  if (keep) {
    r.reflectors = zero_matrices(x.count, n, n, type, enc).transposed();
  }
  array state =
      enc.temporary({count, int(REDUCE_STATE(n, linalg_block))}, type);
  Rooms rooms({x.count, n, n}); // for what each block leaves
  rooms.last.memory = symmetric(x, r, state, enc);
  Matrices left = rooms.last.take(n, n, type, enc);
  Matrices panel =
      zero_matrices(x.count, 3 * linalg_block, n, type, enc).transposed();
  for (uint32_t at = 0; at < n - 1; at += linalg_block) {
    array now = left.view();
    reduce_block(now, panel, state, r, at, enc);
    if (at + linalg_block >= n - 1) {
      break;
    }
    uint32_t w = linalg_block, after = left.rows - w;
    left = reduced(
        left.part(w, w, after, after),
        panel.part(w, 0, after, 2 * w),
        panel.part(w, w, after, 2 * w).transposed(),
        rooms,
        enc);
  }
  return r;
}

// Eigenvalues and eigenvectors of the tridiagonal matrices.
void conquer(
    const Reduced& r,
    const array& s,
    const Matrices& v,
    StreamEncoder& enc) {
  uint32_t n = v.cols, leaves = 1;
  while (leaves * LEAF_ROWS < n) {
    leaves *= 2;
  }
  uint32_t h = ceil_div(n, leaves), rows = h * leaves, total = rows * v.count;
  leaves *= v.count;
  auto type = s.dtype();
  Type t = type_of(type);
  array parts = enc.temporary({int(leaves), int(h), int(h)}, type);
  enc.dispatch(
      LeavesVariant{t},
      {r.diagonals},
      {parts},
      LeavesArgs{n, h, leaves / v.count, leaves},
      linear(leaves));
  array values = enc.temporary({int(leaves), int(h)}, type);
  Matrices q = new_matrices(leaves, h, h, type, enc).transposed();
  run_jacobi(matrices(parts, enc), true, values, nullptr, &q, enc);
  array reals = enc.temporary({MERGE_REALS, int(total)}, type);
  array ints = enc.temporary({MERGE_INTS, int(total)}, uint32);
  for (uint32_t size = 2 * h; size <= rows; size *= 2) {
    uint32_t merges = total / size;
    Matrices u = new_matrices(2 * merges, size, size / 2, type, enc);
    MergeArgs args{n, rows, size, total, 0, merges};
    for (uint32_t step = 0; step < MERGE_STEPS; ++step) {
      uint32_t lanes = step == MERGE_ROOTS ? MERGE_LANES : 1;
      args.groups = ceil_div(size * lanes, MERGE_GROUP);
      enc.dispatch(
          MergeVariant{t, step},
          {r.diagonals, q.of},
          {values, reals, ints, u.of},
          args,
          linear(uint64_t(args.groups) * merges),
          Work{.flops = 100.0 * size * total});
    }
    q = product(q, u.transposed(), enc);
    q.count = merges;
    q.rows = size;
    q.strides.batch = int64_t(size) * size;
  }
  enc.dispatch(
      SortedVariant{t},
      {values, q.of, r.scales},
      {s, v.view()},
      SortedArgs{v.strides, n, rows, v.count},
      linear(uint64_t(n) * v.count));
}

// v becomes the product of the reflectors with it. The triangle of each block
// is that of the products of its reflectors (Joffrain et al., Accumulating
// Householder transformations, revisited, 2006).
void apply_reflectors(
    const Matrices& reflectors,
    const Matrices& v,
    StreamEncoder& enc) {
  uint32_t n = v.cols, blocks = ceil_div(n - 1, reflectors_width);
  for (uint32_t i = blocks; i-- > 0;) {
    uint32_t at = i * reflectors_width, rows = n - at;
    uint32_t w = std::min(reflectors_width, n - 1 - at);
    Matrices h = reflectors.part(at, at, rows, w), x = v.part(at, 0, rows, n);
    Matrices t = product(h.transposed(), h, enc);
    Matrices along = product(h.transposed(), x, enc);
    Matrices y = new_matrices(v.count, n, w, v.of.dtype(), enc).transposed();
    solve_triangle(
        {.t = t, .upper = true, .unit = true}, &along, nullptr, y, enc);
    // In place, which takes dense memory: one by one, or all rows at once.
    uint32_t many = at > 0 ? 1 : v.count;
    for (uint32_t k = 0; k < v.count; k += many) {
      auto some = [&](Matrices m) {
        m.offset += k * m.strides.batch;
        m.count = many;
        return m;
      };
      array to = some(x).view();
      reduce_into(to, some(x), some(h), some(y), enc);
    }
  }
}

} // namespace

void run_tridiagonal(
    const Matrices& x,
    const array& s,
    const Matrices* v,
    StreamEncoder& enc) {
  Reduced r = make_tridiagonal(x, v != nullptr, enc);
  if (v) {
    conquer(r, s, *v, enc);
    apply_reflectors(*r.reflectors, *v, enc);
    return;
  }
  BisectVariant bisect{
      type_of(s), fills(x.cols, x.count, enc.target()) ? 1 : 8};
  uint32_t groups = ceil_div(x.cols, BISECT_GROUP / bisect.LANES);
  enc.dispatch(
      bisect,
      {r.diagonals, r.scales},
      {s},
      BisectArgs{x.cols, groups, x.count},
      linear(uint64_t(groups) * x.count),
      Work{.flops = 400.0 * x.cols * x.cols * x.count});
}

} // namespace mlx::core::vulkan

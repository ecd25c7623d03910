#include "ops/linalg/qr.h"

#include "backend/on_cpu.h"
#include "mlx/primitives.h"
#include "ops/copy.h"
#include "ops/layout.h"
#include "ops/linalg/plan.h"

namespace mlx::core {

namespace vulkan {

namespace {

// Of the size and type of `like`.
Matrices identity(const Matrices& like, StreamEncoder& enc) {
  auto& [of, offset, count, rows, cols, strides] = like;
  Matrices e = zero_matrices(count, rows, cols, of.dtype(), enc);
  array one(1.0f, of.dtype());
  enc.add_temporary(one);
  copy_strided(
      enc,
      one,
      e.of,
      {{int(count), int(std::min(rows, cols))},
       {0, 0},
       {int64_t(rows) * cols, int64_t(cols) + 1}});
  return e;
}

// x = t b or t^T b.
Matrices times_t(
    const Reflectors& h,
    bool transposed,
    const Matrices& b,
    StreamEncoder& enc) {
  array x = enc.temporary(b.view().shape(), b.of.dtype());
  Matrices to = matrices(x, enc);
  Triangle inverse{.t = h.products, .upper = !transposed, .unit = true};
  solve_triangle(inverse, &b, nullptr, to, enc);
  return to;
}

// x less what the reflectors say, by columns, as panels' invocations have rows.
Matrices reflected(
    const Reflectors& h,
    const Matrices& x,
    Rooms& rooms,
    StreamEncoder& enc) {
  auto along = product(h.v.transposed(), x, enc);
  along = times_t(h, true, along, enc).transposed();
  auto v = h.v.transposed();
  return reduced(x.transposed(), along, v, rooms, enc).transposed();
}

void factor_panel(
    const Matrices& x,
    const Matrices& v,
    const Matrices& r,
    StreamEncoder& enc) {
  QrPanelArgs args{
      .xs = x.strides,
      .vs = v.strides,
      .rs = r.strides,
      .rows = x.rows,
      .width = x.cols,
      .count = x.count};
  enc.dispatch(
      qr_panel_variant(type_of(x.of), x.rows, enc.target()),
      {x.view()},
      {v.view(), r.view()},
      args,
      linear(x.count),
      Work{.flops = 4.0 * x.rows * x.cols * x.cols * x.count});
}

// By blocks of `width` columns, made of smaller ones down to panels. If it is
// given, v gets all reflectors; it is zero above them.
std::vector<Reflectors> factor_blocks(
    const Matrices& a,
    const Matrices& r,
    uint32_t width,
    const Matrices* v,
    StreamEncoder& enc) {
  std::vector<Reflectors> all;
  uint32_t n = std::min(a.rows, a.cols);
  Rooms rooms({a.count, a.cols, a.rows});
  Matrices left = a; // what is not factored yet
  for (uint32_t at = 0; at < n; at += width) {
    uint32_t w = std::min(width, n - at), rows = left.rows;
    uint32_t after = left.cols - w;
    auto x = left.part(0, 0, rows, w), corner = r.part(at, at, w, w);
    uint32_t most = qr_panel_columns(type_of(a.of), rows, enc.target());
    auto type = a.of.dtype();
    auto h = v     ? v->part(at, at, rows, w)
        : w > most ? zero_matrices(a.count, w, rows, type, enc).transposed()
                   : new_matrices(a.count, rows, w, type, enc);
    if (w > most) {
      uint32_t next = w > linalg_block ? linalg_block : most;
      factor_blocks(x, corner, next, &h, enc);
    } else {
      factor_panel(x, h, corner, enc);
    }
    if (!v || after > 0) { // the caller of the last makes its products
      all.push_back({at, h, product(h.transposed(), h, enc)});
    }
    if (after > 0) {
      auto right =
          reflected(all.back(), left.part(0, w, rows, after), rooms, enc);
      copy_to(right.part(0, 0, w, after), r.part(at, at + w, w, after), enc);
      left = right.part(w, 0, rows - w, after);
    }
  }
  return all;
}

std::vector<Reflectors>
factor_panels(const Matrices& a, const Matrices& r, StreamEncoder& enc) {
  return factor_blocks(a, r, block_columns(a.cols), nullptr, enc);
}

void form_panels(
    const std::vector<Reflectors>& reflectors,
    const Matrices& out,
    StreamEncoder& enc,
    const Matrices* corner) {
  Matrices q = identity(out, enc);
  if (corner) {
    copy_to(*corner, q.part(0, 0, corner->rows, corner->cols), enc);
  }
  for (size_t i = reflectors.size(); i-- > 0;) {
    auto& h = reflectors[i];
    uint32_t at = corner ? 0 : h.first; // the corner is dense
    auto part = q.part(h.first, at, h.v.rows, q.cols - at);
    auto along = product(h.v.transposed(), part, enc);
    along = times_t(h, false, along, enc);
    if (i == 0) {
      array last = out.view();
      reduce_into(last, part, h.v, along, enc);
    } else {
      copy_to(reduced(part, h.v, along, enc), part, enc);
    }
  }
}

// Row-major, of parts of `rows` rows.
Matrices in_parts(const Matrices& m, uint32_t parts, uint32_t rows) {
  Matrices p = m;
  p.count *= parts;
  p.rows = rows;
  p.strides.batch = int64_t(rows) * m.cols;
  return p;
}

} // namespace

bool has_qr(uint32_t rows, uint32_t columns, bool whole, const Caps& caps) {
  return (whole ? rows : qr_part(rows, columns)) <= qr_panel_rows(caps);
}

Qr factor_qr(
    const Matrices& a,
    const Matrices& r,
    StreamEncoder& enc,
    bool whole) {
  Qr qr{.part = whole ? a.rows : qr_part(a.rows, a.cols)};
  if (qr.part == a.rows) {
    qr.reflectors = factor_panels(a, r, enc);
    return qr;
  }
  uint32_t parts = ceil_div(a.rows, qr.part), n = a.cols;
  auto stack_of = [&](uint32_t rows) {
    return zero_matrices(a.count, parts * rows, n, a.of.dtype(), enc);
  };
  Matrices padded = stack_of(qr.part), stack = stack_of(n);
  copy_to(a, padded.part(0, 0, a.rows, n), enc);
  qr.reflectors = factor_panels(
      in_parts(padded, parts, qr.part), in_parts(stack, parts, n), enc);
  qr.stack = std::make_unique<Qr>(factor_qr(stack, r, enc));
  return qr;
}

void form_q(
    const Qr& qr,
    const Matrices& out,
    StreamEncoder& enc,
    const Matrices* corner) {
  if (!qr.stack) {
    return form_panels(qr.reflectors, out, enc, corner);
  }
  uint32_t parts = ceil_div(out.rows, qr.part), n = out.cols;
  auto stack_of = [&](uint32_t rows) {
    auto type = out.of.dtype();
    return new_matrices(out.count, n, parts * rows, type, enc).transposed();
  };
  Matrices padded = stack_of(qr.part), stack = stack_of(n);
  form_q(*qr.stack, stack, enc, corner);
  Matrices corners = in_parts(stack, parts, n);
  form_panels(qr.reflectors, in_parts(padded, parts, qr.part), enc, &corners);
  copy_to(padded.part(0, 0, out.rows, n), out, enc);
}

} // namespace vulkan

using namespace vulkan;

void QRF::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = encoder(stream());
  auto& in = inputs[0];
  if (!has_qr(in.shape(-2), in.shape(-1), false, enc.caps())) {
    return run_on_cpu(*this, inputs, outputs);
  }
  auto& q = outputs[0];
  auto& r = outputs[1];
  fill_with_zeros(r, enc);
  alloc_by_rows(q);
  Matrices a = matrices(in, enc);
  form_q(factor_qr(a, matrices(r, enc), enc), matrices(q, enc), enc);
}

} // namespace mlx::core

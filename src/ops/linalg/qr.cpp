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
  array e = vulkan::zeros({int(count), int(rows), int(cols)}, of.dtype(), enc);
  array one(1.0f, of.dtype());
  enc.add_temporary(one);
  copy_strided(
      enc,
      one,
      e,
      {{int(count), int(std::min(rows, cols))},
       {0, 0},
       {int64_t(rows) * cols, int64_t(cols) + 1}});
  return matrices(e, enc);
}

} // namespace

std::vector<Reflectors>
factor_qr(const Matrices& a, const Matrices& r, StreamEncoder& enc) {
  std::vector<Reflectors> all;
  uint32_t n = std::min(a.rows, a.cols);
  Matrices left = a; // what is not factored yet
  for (uint32_t at = 0; at < n; at += linalg_block) {
    uint32_t w = block_width(at, n), rows = left.rows;
    Matrices v = new_matrices(a.count, rows, w, a.of.dtype(), enc);
    Matrices t = new_matrices(a.count, w, w, a.of.dtype(), enc).transposed();
    Matrices x = left.part(0, 0, rows, w), corner = r.part(at, at, w, w);
    QrPanelArgs args{
        .xs = x.strides,
        .vs = v.strides,
        .rs = corner.strides,
        .rows = rows,
        .width = w,
        .count = a.count};
    enc.dispatch(
        qr_panel_variant(type_of(a.of), rows, enc.caps()),
        {x.view()},
        {v.view(), corner.view(), t.of},
        args,
        linear(a.count),
        Work{.flops = 4.0 * rows * w * w * a.count});
    all.push_back({at, v, t});
    uint32_t after = left.cols - w;
    if (after > 0) {
      auto right = left.part(0, w, rows, after);
      auto along = product(v.transposed(), right, enc);
      right = reduced(right, v, product(t.transposed(), along, enc), enc);
      copy_to(right.part(0, 0, w, after), r.part(at, at + w, w, after), enc);
      left = right.part(w, 0, rows - w, after);
    }
  }
  return all;
}

void form_q(
    const std::vector<Reflectors>& reflectors,
    const Matrices& out,
    StreamEncoder& enc,
    const Matrices* corner) {
  Matrices q = identity(out, enc);
  if (corner) {
    copy_to(*corner, q.part(0, 0, corner->rows, corner->cols), enc);
  }
  for (size_t i = reflectors.size(); i-- > 0;) {
    auto& [first, v, t] = reflectors[i];
    uint32_t at = corner ? 0 : first; // the corner is dense
    auto part = q.part(first, at, v.rows, q.cols - at);
    auto along = product(t, product(v.transposed(), part, enc), enc);
    if (i == 0) {
      array last = out.view();
      reduce_into(last, part, v, along, enc);
    } else {
      copy_to(reduced(part, v, along, enc), part, enc);
    }
  }
}

} // namespace vulkan

using namespace vulkan;

void QRF::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = encoder(stream());
  if (!panels_end(inputs[0].shape(-2), enc.target().policy)) {
    return run_on_cpu(*this, inputs, outputs);
  }
  auto& q = outputs[0];
  auto& r = outputs[1];
  fill_with_zeros(r, enc);
  alloc_by_rows(q);
  Matrices a = matrices(inputs[0], enc);
  form_q(factor_qr(a, matrices(r, enc), enc), matrices(q, enc), enc);
}

} // namespace mlx::core

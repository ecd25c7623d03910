// Scatter and ScatterAxis: the input is copied (or donated), then updated in
// place. Assignments move raw words; reductions are atomic, except that
// products, maxima and minima of 8-byte items and sums of float64 are combined
// on the CPU.
#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "backend/on_cpu.h"
#include "ops/copy.h"
#include "ops/indices.h"

namespace mlx::core {

using namespace vulkan;

namespace {

template <typename Variant>
Variant combining(const array& out, const char* reduce, bool sum) {
  return {.T = type_of(out), .REDUCE = reduce, .SUM = sum};
}

} // namespace

void Scatter::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& updates = inputs.back();
  const char* reduce = combine_function<Scatter>(reduce_type_);
  // No 64-bit compare-and-swap is required of a device.
  bool sums = reduce_type_ == Sum && out.dtype() != float64;
  if (out.itemsize() == 8 && reduce && !sums && !axes_.empty()) {
    std::vector<array> outputs{out};
    return run_on_cpu(*this, inputs, outputs);
  }
  copy_to_update(inputs[0], out, stream());
  if (updates.size() == 0) {
    return;
  }
  auto& enc = encoder(stream());
  if (axes_.empty()) { // one slice, at the start
    copy_strided(
        enc,
        updates,
        out,
        {updates.shape(), updates.strides(), out.strides()},
        reduce);
    return;
  }
  auto& shape = updates.shape();
  Shape slice(shape.begin() + inputs[1].ndim(), shape.end());
  TupleMove move(inputs, axes_, out, slice, &updates);
  auto variant = reduce
      ? combining<ScatterVariant>(out, reduce, reduce_type_ == Sum)
      : ScatterVariant{.WORD = move.widen(updates)};
  move.dispatch<1>(enc, variant, updates, out);
}

void ScatterAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& updates = inputs[2];
  const char* reduce = combine_function<ScatterAxis>(reduce_type_);
  if (out.dtype() == float64 && reduce) {
    std::vector<array> outputs{out};
    return run_on_cpu(*this, inputs, outputs);
  }
  copy_to_update(inputs[0], out, stream());
  if (updates.size() == 0) {
    return;
  }
  auto variant = reduce ? combining<ScatterAxisVariant>(out, reduce, true)
                        : ScatterAxisVariant{.WORD = int(out.itemsize())};
  dispatch_along_axis<1>(
      encoder(stream()), variant, axis_, updates, inputs[1], out);
}

} // namespace mlx::core

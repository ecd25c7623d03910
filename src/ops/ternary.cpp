#include "mlx/backend/common/ternary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"
#include "ops/records.h"

namespace mlx::core {

void Select::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto &a = inputs[0], &b = inputs[1], &c = inputs[2];
  auto layout = get_ternary_op_type(a, b, c);
  set_ternary_op_output_data(a, b, c, out, layout);
  vulkan::TernaryVariant variant{
      .C = vulkan::type_of(a), .T = vulkan::type_of(out), .OP = name()};
  bool dense = layout != TernaryOpType::General;
  vulkan::Descriptor mask;
  if (c.data_size() == 1 && a.dtype() == bool_ &&
      issubdtype(out.dtype(), floating) && out.dtype() != float64) {
    mask = vulkan::mask_record(a, 0, b, out, false);
  }
  vulkan::run_elementwise<3>(variant, {a, b, c}, {out}, dense, stream(), mask);
}

} // namespace mlx::core

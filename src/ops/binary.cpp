#include "mlx/backend/common/binary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace {

void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s,
    bool is_addition = false) {
  auto layout = get_binary_op_type(a, b);
  set_binary_op_output_data(a, b, out, layout);
  vulkan::BinaryVariant variant{
      .IN = vulkan::type_of(a), .OUT = vulkan::type_of(out), .OP = op};
  bool dense = layout != BinaryOpType::General;
  vulkan::Descriptor what;
  if (is_addition && issubdtype(out.dtype(), floating)) {
    what = vulkan::AddRecord{variant.OUT};
  }
  vulkan::run_elementwise<2>(variant, {a, b}, {out}, dense, s, what);
}

} // namespace

#define BINARY(PRIMITIVE)                                                  \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    binary_op(inputs[0], inputs[1], out, name(), stream());                \
  }

void Add::eval_gpu(const std::vector<array>& inputs, array& out) {
  binary_op(inputs[0], inputs[1], out, name(), stream(), true);
}

BINARY(ArcTan2)
BINARY(BitwiseBinary)
BINARY(Divide)
BINARY(Equal)
BINARY(FloorDivide)
BINARY(Greater)
BINARY(GreaterEqual)
BINARY(Less)
BINARY(LessEqual)
BINARY(LogAddExp)
BINARY(LogicalAnd)
BINARY(LogicalOr)
BINARY(Maximum)
BINARY(Minimum)
BINARY(Multiply)
BINARY(NotEqual)
BINARY(Power)
BINARY(Remainder)
BINARY(Subtract)

void DivMod::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& a = inputs[0];
  auto& b = inputs[1];
  auto layout = get_binary_op_type(a, b);
  set_binary_op_output_data(a, b, outputs[0], layout);
  set_binary_op_output_data(a, b, outputs[1], layout);
  vulkan::BinaryVariant variant{
      .IN = vulkan::type_of(a),
      .OUT = vulkan::type_of(outputs[0]),
      .OP = "FloorDivide",
      .REMAINDER = true};
  bool dense = layout != BinaryOpType::General;
  vulkan::run_elementwise<2>(
      variant, {a, b}, {outputs[0], outputs[1]}, dense, stream());
}

} // namespace mlx::core

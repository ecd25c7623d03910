#include "ops/binary.h"

#include "mlx/backend/common/binary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"
#include "ops/records.h"

namespace mlx::core {

namespace vulkan {

void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s,
    Known known) {
  auto layout = get_binary_op_type(a, b);
  set_binary_op_output_data(a, b, out, layout);
  vulkan::BinaryVariant variant{
      .IN = vulkan::type_of(a), .OUT = vulkan::type_of(out), .OP = op};
  bool dense = layout != BinaryOpType::General;
  vulkan::Descriptor record;
  if (known != Known::No && issubdtype(out.dtype(), floating) &&
      out.dtype() != float64) {
    // Whether both operands have all items.
    bool whole = layout == BinaryOpType::VectorVector;
    if (known != Known::Add) {
      record = whole ? record : vulkan::per_row(a, b, known == Known::Divide);
    } else if (out.ndim() >= vulkan::MaskRecord::axes - 1) {
      bool first = a.data_shared_ptr() == out.data_shared_ptr();
      record = vulkan::mask_record(
          first ? b : a, first ? 1 : 0, first ? a : b, out, true);
    } else if (whole) {
      record = vulkan::AddRecord{variant.OUT};
    }
  }
  vulkan::run_elementwise<2>(variant, {a, b}, {out}, dense, s, record);
}

} // namespace vulkan

using vulkan::Known;

#define BINARY(PRIMITIVE) BINARY_KNOWN(PRIMITIVE, No)
#define BINARY_KNOWN(PRIMITIVE, KNOWN)                                     \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    vulkan::binary_op(                                                     \
        inputs[0], inputs[1], out, name(), stream(), Known::KNOWN);        \
  }

BINARY_KNOWN(Add, Add)
BINARY_KNOWN(Divide, Divide)
BINARY_KNOWN(Multiply, Multiply)

BINARY(ArcTan2)
BINARY(BitwiseBinary)
BINARY(Equal)
BINARY(Greater)
BINARY(GreaterEqual)
BINARY(Less)
BINARY(LessEqual)
BINARY(LogAddExp)
BINARY(LogicalAnd)
BINARY(LogicalOr)
BINARY(Maximum)
BINARY(Minimum)
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

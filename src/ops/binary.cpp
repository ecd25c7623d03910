#include "mlx/backend/common/binary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace {

// What a product or quotient is whose second operand has one value a row.
vulkan::Descriptor per_row(const array& a, const array& b, bool divides) {
  if (b.data_size() == 1 && a.size() > 1 && a.size() <= INT32_MAX &&
      a.data_size() == a.size()) {
    auto all = static_cast<uint32_t>(a.size());
    return vulkan::PerRowRecord{vulkan::type_of(a), divides, 1, all};
  }
  uint32_t n = a.ndim() ? a.shape(-1) : 1;
  if (n == 1 || b.strides(-1) != 0 || !a.flags().row_contiguous ||
      a.size() > INT32_MAX) {
    return {};
  }
  int64_t rows = 1;
  for (int d = a.ndim() - 2; d >= 0; --d) {
    if (a.shape(d) != 1 && b.strides(d) != rows) {
      return {};
    }
    rows *= a.shape(d);
  }
  auto count = static_cast<uint32_t>(rows);
  return vulkan::PerRowRecord{vulkan::type_of(a), divides, count, n};
}

enum class Known { No, Add, Multiply, Divide };

void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s,
    Known known = Known::No) {
  auto layout = get_binary_op_type(a, b);
  set_binary_op_output_data(a, b, out, layout);
  vulkan::BinaryVariant variant{
      .IN = vulkan::type_of(a), .OUT = vulkan::type_of(out), .OP = op};
  bool dense = layout != BinaryOpType::General;
  vulkan::Descriptor what, else_what;
  if (known != Known::No && issubdtype(out.dtype(), floating)) {
    if (known == Known::Add) {
      what = vulkan::AddRecord{variant.OUT};
      if (out.ndim() >= vulkan::MaskRecord::axes - 1) {
        bool first = a.data_shared_ptr() == out.data_shared_ptr();
        what = else_what = vulkan::mask_record(
            first ? b : a, first ? 1 : 0, first ? a : b, out, true);
      }
    } else {
      else_what = per_row(a, b, known == Known::Divide);
    }
  }
  vulkan::run_elementwise<2>(variant, {a, b}, {out}, dense, s, what, else_what);
}

} // namespace

#define BINARY(PRIMITIVE) BINARY_KNOWN(PRIMITIVE, No)
#define BINARY_KNOWN(PRIMITIVE, KNOWN)                                     \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    binary_op(inputs[0], inputs[1], out, name(), stream(), Known::KNOWN);  \
  }

BINARY_KNOWN(Add, Add)
BINARY_KNOWN(Divide, Divide)
BINARY_KNOWN(Multiply, Multiply)

BINARY(ArcTan2)
BINARY(BitwiseBinary)
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

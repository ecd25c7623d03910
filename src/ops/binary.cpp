#include "mlx/backend/common/binary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace vulkan {

namespace {

template <typename Params>
void launch(
    int form,
    const array& a,
    const array& b,
    array& out,
    array* second,
    const char* op,
    Stream s,
    const Params& params,
    Grid grid) {
  auto& enc = encoder(s);
  Type x = type_of(a);
  Type y = type_of(out);
  const char* file = second ? "binary_two" : "binary";
  const auto& k = any_large(a, b, out)
      ? enc.kernel(
            file,
            {{"FORM", form}, {"IN", x}, {"OUT", y}, {"OP", op}, {"LARGE", 1}})
      : enc.kernel(file, {{"FORM", form}, {"IN", x}, {"OUT", y}, {"OP", op}});
  if (second) {
    enc.dispatch(k, {a, b}, {out, *second}, params, grid);
  } else {
    enc.dispatch(k, {a, b}, {out}, params, grid);
  }
}

struct DenseParams {
  uint64_t n;
  uint32_t a_step, b_step;
};

void run(
    const array& a,
    const array& b,
    array& out,
    array* second,
    const char* op,
    Stream s) {
  if (out.size() == 0) {
    return;
  }
  auto form = get_binary_op_type(a, b);
  if (form != BinaryOpType::General) {
    uint32_t a_step = a.data_size() == 1 ? 0 : 1;
    uint32_t b_step = b.data_size() == 1 ? 0 : 1;
    uint64_t n = std::max(a.data_size(), b.data_size());
    DenseParams p{n, a_step, b_step};
    bool quads = !second && (a_step == 0 || quad_aligned(a)) &&
        (b_step == 0 || quad_aligned(b)) && quad_aligned(out);
    int f = quads ? 3 : 0;
    return launch(f, a, b, out, second, op, s, p, dense_grid(n, f));
  }
  auto [shape, strides] =
      collapse_contiguous_dims(out.shape(), {a.strides(), b.strides()});
  if (shape.size() <= 4) {
    auto p = strided_block<2, 4>(shape, strides, out.size());
    launch(1, a, b, out, second, op, s, p, strided_grid(p.rows, p.last));
  } else {
    strided_params<2>(op, shape, strides); // throws beyond 16 dimensions
    auto p = strided_block<2, max_ndim>(shape, strides, out.size());
    launch(2, a, b, out, second, op, s, p, strided_grid(p.rows, p.last));
  }
}

} // namespace

void binary_op_inplace(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s) {
  run(a, b, out, nullptr, op, s);
}

void binary_op(
    const array& a,
    const array& b,
    array& out,
    const char* op,
    Stream s) {
  set_binary_op_output_data(a, b, out, get_binary_op_type(a, b));
  run(a, b, out, nullptr, op, s);
}

} // namespace vulkan

#define BINARY(PRIMITIVE)                                                  \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    vulkan::binary_op(inputs[0], inputs[1], out, name(), stream());        \
  }

BINARY(Add)
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
  auto form = get_binary_op_type(a, b);
  set_binary_op_output_data(a, b, outputs[0], form);
  set_binary_op_output_data(a, b, outputs[1], form);
  vulkan::run(a, b, outputs[0], &outputs[1], name(), stream());
}

} // namespace mlx::core

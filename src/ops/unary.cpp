#include "mlx/backend/common/unary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace vulkan {

namespace {

template <typename Params>
void launch(
    int form,
    const array& in,
    array& out,
    const char* op,
    Stream s,
    const Params& params,
    Grid grid) {
  auto& enc = encoder(s);
  Type x = type_of(in);
  Type y = type_of(out);
  const auto& k = any_large(in, out)
      ? enc.kernel(
            "unary",
            {{"FORM", form}, {"IN", x}, {"OUT", y}, {"OP", op}, {"LARGE", 1}})
      : enc.kernel(
            "unary", {{"FORM", form}, {"IN", x}, {"OUT", y}, {"OP", op}});
  enc.dispatch(k, {in}, {out}, params, grid);
}

struct DenseParams {
  uint64_t n;
};

} // namespace

void unary_op_inplace(const array& in, array& out, const char* op, Stream s) {
  if (out.size() == 0) {
    return;
  }
  if (in.flags().contiguous) {
    uint64_t n = in.data_size();
    int form = dense_form(in, out);
    return launch(form, in, out, op, s, DenseParams{n}, dense_grid(n, form));
  }
  auto [shape, strides] = collapse_contiguous_dims(in);
  std::vector<Strides> all{strides};
  if (shape.size() <= 4) {
    auto p = strided_block<1, 4>(shape, all, out.size());
    launch(1, in, out, op, s, p, strided_grid(p.rows, p.last));
  } else {
    strided_params<1>(op, shape, all); // throws beyond 16 dimensions
    auto p = strided_block<1, max_ndim>(shape, all, out.size());
    launch(2, in, out, op, s, p, strided_grid(p.rows, p.last));
  }
}

void unary_op(const array& in, array& out, const char* op, Stream s) {
  set_unary_output_data(in, out);
  unary_op_inplace(in, out, op, s);
}

} // namespace vulkan

#define UNARY(PRIMITIVE)                                                   \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    vulkan::unary_op(inputs[0], out, name(), stream());                    \
  }

UNARY(Abs)
UNARY(ArcCos)
UNARY(ArcCosh)
UNARY(ArcSin)
UNARY(ArcSinh)
UNARY(ArcTan)
UNARY(ArcTanh)
UNARY(BitwiseInvert)
UNARY(Conjugate)
UNARY(Cos)
UNARY(Cosh)
UNARY(Erf)
UNARY(ErfInv)
UNARY(Exp)
UNARY(Expm1)
UNARY(Imag)
UNARY(Log)
UNARY(Log1p)
UNARY(LogicalNot)
UNARY(Negative)
UNARY(Real)
UNARY(Sigmoid)
UNARY(Sign)
UNARY(Sin)
UNARY(Sinh)
UNARY(Sqrt)
UNARY(Square)
UNARY(Tan)
UNARY(Tanh)

// Integers are whole already: the input is the output.
#define UNARY_ROUNDING(PRIMITIVE)                                          \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    if (issubdtype(inputs[0].dtype(), inexact)) {                          \
      vulkan::unary_op(inputs[0], out, name(), stream());                  \
    } else {                                                               \
      out.copy_shared_buffer(inputs[0]);                                   \
    }                                                                      \
  }

UNARY_ROUNDING(Ceil)
UNARY_ROUNDING(Floor)
UNARY_ROUNDING(Round)

} // namespace mlx::core

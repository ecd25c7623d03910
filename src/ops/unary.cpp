#include "mlx/backend/common/unary.h"
#include "mlx/primitives.h"
#include "ops/elementwise.h"

namespace mlx::core {

namespace {

void unary_op(const array& in, array& out, const char* op, Stream s) {
  set_unary_output_data(in, out);
  vulkan::UnaryVariant variant{
      .IN = vulkan::type_of(in), .OUT = vulkan::type_of(out), .OP = op};
  vulkan::run_elementwise<1>(variant, {in}, {out}, in.flags().contiguous, s);
}

} // namespace

#define UNARY(PRIMITIVE)                                                   \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    unary_op(inputs[0], out, name(), stream());                            \
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

// Integers need no rounding: the output is the input.
#define UNARY_ROUNDING(PRIMITIVE)                                          \
  void PRIMITIVE::eval_gpu(const std::vector<array>& inputs, array& out) { \
    if (issubdtype(inputs[0].dtype(), inexact)) {                          \
      unary_op(inputs[0], out, name(), stream());                          \
    } else {                                                               \
      out.copy_shared_buffer(inputs[0]);                                   \
    }                                                                      \
  }

UNARY_ROUNDING(Ceil)
UNARY_ROUNDING(Floor)
UNARY_ROUNDING(Round)

} // namespace mlx::core

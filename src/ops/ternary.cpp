#include "mlx/backend/common/ternary.h"
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
    const array& c,
    array& out,
    const char* op,
    Stream s,
    const Params& params,
    Grid grid) {
  auto& enc = encoder(s);
  Type cond = type_of(a);
  Type t = type_of(out);
  const auto& k = any_large(a, b, c, out)
      ? enc.kernel(
            "ternary",
            {{"FORM", form}, {"C", cond}, {"T", t}, {"OP", op}, {"LARGE", 1}})
      : enc.kernel(
            "ternary", {{"FORM", form}, {"C", cond}, {"T", t}, {"OP", op}});
  enc.dispatch(k, {a, b, c}, {out}, params, grid);
}

struct DenseParams {
  uint64_t n;
  uint32_t a_step, b_step, c_step;
};

} // namespace

void ternary_op(
    const array& a,
    const array& b,
    const array& c,
    array& out,
    const char* op,
    Stream s) {
  auto form = get_ternary_op_type(a, b, c);
  set_ternary_op_output_data(a, b, c, out, form);
  if (out.size() == 0) {
    return;
  }
  if (form != TernaryOpType::General) {
    auto step = [](const array& x) { return x.data_size() == 1 ? 0u : 1u; };
    uint64_t n = out.data_size();
    DenseParams p{n, step(a), step(b), step(c)};
    auto quads = [](const array& x) {
      return x.data_size() == 1 || quad_aligned(x);
    };
    int f = quads(a) && quads(b) && quads(c) && quad_aligned(out) ? 3 : 0;
    return launch(f, a, b, c, out, op, s, p, dense_grid(n, f));
  }
  auto [shape, strides] = collapse_contiguous_dims(
      out.shape(), {a.strides(), b.strides(), c.strides()});
  if (shape.size() <= 4) {
    auto p = strided_block<3, 4>(shape, strides, out.size());
    launch(1, a, b, c, out, op, s, p, strided_grid(p.rows, p.last));
  } else {
    strided_params<3>(op, shape, strides); // throws beyond 16 dimensions
    auto p = strided_block<3, max_ndim>(shape, strides, out.size());
    launch(2, a, b, c, out, op, s, p, strided_grid(p.rows, p.last));
  }
}

} // namespace vulkan

void Select::eval_gpu(const std::vector<array>& inputs, array& out) {
  vulkan::ternary_op(inputs[0], inputs[1], inputs[2], out, name(), stream());
}

} // namespace mlx::core

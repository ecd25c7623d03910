#include "mlx/primitives.h"
#include "ops/binary.h"

namespace mlx::core {

void FloorDivide::eval_gpu(const std::vector<array>& inputs, array& out) {
  vulkan::binary_op(inputs[0], inputs[1], out, name(), stream());
}

} // namespace mlx::core

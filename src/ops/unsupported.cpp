// Primitives that MLX's Metal backend does not evaluate on a GPU either (linear
// algebra runs on a CPU stream).
#include <stdexcept>
#include <string>

#include "mlx/primitives.h"

namespace mlx::core {

namespace {

[[noreturn]] void only_on_cpu(const char* name) {
  throw std::runtime_error(
      std::string("[") + name +
      "] is not available on a GPU stream. Pass stream=mx.cpu.");
}

} // namespace

#define ONLY_ON_CPU(Op)                                  \
  void Op::eval_gpu(const std::vector<array>&, array&) { \
    only_on_cpu(#Op);                                    \
  }
#define ONLY_ON_CPU_MULTI(Op)                                         \
  void Op::eval_gpu(const std::vector<array>&, std::vector<array>&) { \
    only_on_cpu(#Op);                                                 \
  }

ONLY_ON_CPU(Inverse)
ONLY_ON_CPU(Cholesky)
ONLY_ON_CPU_MULTI(LUF)
ONLY_ON_CPU_MULTI(QRF)
ONLY_ON_CPU_MULTI(SVD)
ONLY_ON_CPU_MULTI(Eig)
ONLY_ON_CPU_MULTI(Eigh)

} // namespace mlx::core

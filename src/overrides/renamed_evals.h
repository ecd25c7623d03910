// Renames eval() and async_eval() in MLX's transforms.cpp, for eval.cpp.
//
// It is included before that file's first line (cmake/overrides.cmake). A
// definition for the compiler would rename cpu::eval and gpu::eval as well.
#pragma once

// All headers of transforms.cpp come first, so that the macros change its own
// text alone; fence.h cannot be included twice and is left to it.
#include <algorithm>
#include <deque>
#include <future>
#include <numeric>
#include <set>
#include <sstream>
#include <stack>
#include <unordered_map>
#include <unordered_set>

#include "mlx/backend/cpu/eval.h"
#include "mlx/backend/gpu/eval.h"
#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "mlx/utils.h"

namespace mlx::core {
namespace cpu {
inline void eval_of_mlx(array& arr) {
  eval(arr);
}
} // namespace cpu
namespace gpu {
inline void eval_of_mlx(array& arr) {
  eval(arr);
}
} // namespace gpu
void eval_of_mlx(std::vector<array> outputs);
void async_eval_of_mlx(std::vector<array> outputs);
} // namespace mlx::core

#define eval eval_of_mlx
#define async_eval async_eval_of_mlx

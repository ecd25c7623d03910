// Comes before the first line of MLX's transforms.cpp (cmake/mlx.cmake), whose
// eval() and async_eval() have other names in this library: ours (eval.cpp)
// call them for graphs that are not of one GPU stream.
#pragma once

// What it includes, but for fence.h, which cannot be read twice: its own text
// alone is to change, no header's.
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

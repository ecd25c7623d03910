// Comes before the first line of MLX's array.cpp, fast.cpp and ops.cpp
// (cmake/mlx.cmake). A decode step makes thousands of arrays, each with a
// description of 350 bytes and a primitive, and frees them when it is
// evaluated; of each size glibc keeps seven at hand. What those files make with
// make_shared comes from mimalloc. This is sound where an operator new of our
// own is not: a shared_ptr frees what it owns by the code that made it, whoever
// lets go last.
#pragma once

// What they include: their own text alone is to change, no header's.
#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "mlx/array.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "mlx/utils.h"

#include <mimalloc.h>

// What the macro makes of std::make_shared.
namespace std {
template <typename T, typename... Args>
shared_ptr<T> mlxvk_make_shared(Args&&... args) {
  return allocate_shared<T>(mi_stl_allocator<T>(), forward<Args>(args)...);
}
} // namespace std
#define make_shared mlxvk_make_shared

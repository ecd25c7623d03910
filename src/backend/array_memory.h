// Comes before the first line of MLX's array.cpp (cmake/mlx.cmake). An array's
// description has 350 bytes, of which glibc keeps seven at hand; a decode step
// makes thousands, and frees them when it is evaluated. In that file they, and
// what owns an array's buffer, come from mimalloc. This is sound where an
// operator new of our own is not: a shared_ptr frees what it owns by the code
// that made it, whoever lets go of it last.
#pragma once

// What array.cpp includes: its own text alone is to change, no header's.
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "mlx/array.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"

#include <mimalloc.h>

// What the macro makes of std::make_shared.
namespace std {
template <typename T, typename... Args>
shared_ptr<T> mlxvk_make_shared(Args&&... args) {
  return allocate_shared<T>(mi_stl_allocator<T>(), forward<Args>(args)...);
}
} // namespace std
#define make_shared mlxvk_make_shared

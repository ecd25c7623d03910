// Comes before the first line of MLX's transforms.cpp (cmake/mlx.cmake). Its
// eval counts the readers of a graph's arrays in a std::unordered_map: in a
// decode step thousands of insertions and erasures, each with an allocation,
// nearly a fifth of what mx.async_eval executes. In that file, whose maps are
// all local to a function, they take their memory from blocks that go when the
// map does.
#pragma once

// What transforms.cpp includes, but for mlx/fence.h, which has no guard: its
// maps alone are to change, no header's.
#include <algorithm>
#include <deque>
#include <future>
#include <memory_resource>
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

namespace mlx::core::vulkan {

struct MapMemory {
  static constexpr size_t first_block = 512; // the others are larger each
  std::pmr::monotonic_buffer_resource memory{first_block};
};

// A local variable: it is neither copied nor moved.
template <typename K, typename V>
class LocalMap : MapMemory, public std::pmr::unordered_map<K, V> {
 public:
  LocalMap() : std::pmr::unordered_map<K, V>(&memory) {}
  LocalMap(const LocalMap&) = delete;
  LocalMap& operator=(const LocalMap&) = delete;
};

} // namespace mlx::core::vulkan

// What the macro makes of std::unordered_map.
namespace std {
template <typename K, typename V>
using mlxvk_local_map = mlx::core::vulkan::LocalMap<K, V>;
}
#define unordered_map mlxvk_local_map

// Compiled kernels that the library carries (tools/ship_kernels.cpp): a sorted
// table by the disk cache's keys. A key is the hash of all that a module is
// compiled from, so that a changed kernel is not found. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlx::core::vulkan {

// The entry of a key in `table`, as the disk cache would have it; empty if
// there is none. `table` is of table_of(), or empty.
std::span<const std::byte> find_shipped(
    std::span<const std::byte> table,
    std::string_view key);

// The entry in this library's own table.
std::span<const std::byte> find_shipped(std::string_view key);

// A table of entries by key. The same bytes on every machine of the same byte
// order.
std::vector<std::byte> table_of(
    const std::map<std::string, std::vector<std::byte>>& entries);

} // namespace mlx::core::vulkan

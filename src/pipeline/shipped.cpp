#include "pipeline/shipped.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// Of the object that cmake/shipped.cmake makes; absent in programs without it.
extern "C" __attribute__((weak, visibility("hidden")))
const std::byte mlxvk_shipped_begin[];
extern "C" __attribute__((weak, visibility("hidden")))
const std::byte mlxvk_shipped_end[];

namespace mlx::core::vulkan {

namespace {

constexpr size_t key_size = 36; // "spv-" and 32 digits

struct Header {
  char magic[8];
  uint64_t count;
};
constexpr char magic[8] = {'M', 'L', 'X', 'V', 'K', 'S', 'H', '1'};

struct Row {
  char key[key_size];
  uint32_t size;
  uint64_t offset; // from the beginning of the table
};

} // namespace

std::span<const std::byte> find_shipped(
    std::span<const std::byte> table,
    std::string_view key) {
  Header header;
  if (table.size() < sizeof header || key.size() != key_size) {
    return {};
  }
  std::memcpy(&header, table.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) {
    return {};
  }
  auto* rows = reinterpret_cast<const Row*>(table.data() + sizeof header);
  auto* end = rows + header.count;
  auto name = [](const Row& r) { return std::string_view(r.key, key_size); };
  auto* row = std::lower_bound(
      rows, end, key, [&](const Row& r, auto& k) { return name(r) < k; });
  if (row == end || name(*row) != key) {
    return {};
  }
  return table.subspan(row->offset, row->size);
}

std::span<const std::byte> find_shipped(std::string_view key) {
  if (!mlxvk_shipped_begin) {
    return {};
  }
  return find_shipped(std::span(mlxvk_shipped_begin, mlxvk_shipped_end), key);
}

std::vector<std::byte> table_of(
    const std::map<std::string, std::vector<std::byte>>& entries) {
  std::vector<std::byte> out(sizeof(Header) + entries.size() * sizeof(Row));
  Header header{{}, entries.size()};
  std::memcpy(header.magic, magic, sizeof magic);
  std::memcpy(out.data(), &header, sizeof header);
  size_t at = sizeof header;
  for (auto& [key, bytes] : entries) {
    Row row{{}, static_cast<uint32_t>(bytes.size()), out.size()};
    std::memcpy(row.key, key.data(), std::min(key.size(), key_size));
    std::memcpy(out.data() + at, &row, sizeof row);
    at += sizeof row;
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

} // namespace mlx::core::vulkan

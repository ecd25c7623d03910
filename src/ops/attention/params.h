// Parameter blocks of the attention kernels, member for member as in
// kernels/attention/*.comp. Strides are in elements.
#pragma once

#include <cstdint>

namespace mlx::core::vulkan {

// 32 bytes of pointers and these 96 just fit the push constants.
struct DecodeParams {
  uint32_t batches, heads, kv_heads, queries, keys;
  uint32_t row_groups, splits, split_keys;
  int32_t q_batch, q_head, q_row;
  float scale; // times log2(e)
  int64_t k_batch, k_head, k_row;
  int64_t v_batch, v_head, v_row;
};
static_assert(sizeof(DecodeParams) == 96);

struct MaskStrides {
  int64_t batch, head, row, key;
};

struct MaskedDecodeParams {
  DecodeParams decode;
  MaskStrides mask;
};

struct MergeParams {
  uint32_t rows, heads, splits, queries;
};

struct PrefillParams {
  uint32_t batches, heads, kv_heads, queries, keys;
  uint32_t tiles;
  float scale; // times log2(e)
  uint32_t pad;
  int64_t q_batch, q_head, q_row;
  int64_t k_batch, k_head, k_row;
  int64_t v_batch, v_head, v_row;
  MaskStrides mask;
};

struct DeltaParams {
  uint32_t rows, heads, queries, value_dim;
  int64_t y_batch, y_head, y_row;
  int64_t c_batch, c_head, c_row;
};

struct VjpParams {
  uint32_t batches, heads, kv_heads, queries, keys;
  uint32_t dim, value_dim, pitch;
  uint32_t query0, query_count, key0, key_count;
  uint32_t query_tiles, key_tiles;
  float scale;
  uint32_t pad;
  int64_t q_batch, q_head, q_row;
  int64_t k_batch, k_head, k_row;
  int64_t v_batch, v_head, v_row;
  int64_t c_batch, c_head, c_row;
  int64_t r_batch, r_head;
  MaskStrides mask;
};

} // namespace mlx::core::vulkan

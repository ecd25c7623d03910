// Thresholds of plans that depend on the device, for each class of device. Free
// of MLX.
//
// A comment names the unit and the note with the measurement, or says that
// there is none. `benchmarks/thresholds.py NAME`, with the name of a member
// such as quant.few_rows, times sizes below and above it; "Thresholds" in
// docs/dev/benchmarks.md explains how to compare two values.
#pragma once

#include <cstdint>

#include "vk/caps.h"

namespace mlx::core::vulkan {

struct QuantTuning {
  // Rows of x from which products of few rows use matrix units: qmm_fragments
  // and qmm_skinny (docs/lab/2026-11-22-few-rows.md).
  uint32_t few_rows = 5;
  // Outputs from which qmm_fragments takes 2 rows and more
  // (2026-11-26-cliffs.md).
  uint32_t wide_outputs = 8192;
  // Rows of x up to which qmm_skinny is used with groups of 32, each of which
  // takes a product of its own (same note).
  uint32_t small_group_rows = 16;
  // Items of k from which subgroups of qmm_fragments share k (same note).
  uint32_t fragments_k = 1024;
  // Rows of x up to which qmm_fragments is used for all weights, and weights
  // from which qmm_tall takes over (docs/lab/2026-11-26-tall.md).
  uint32_t fragments_rows = 32;
  uint64_t tall_weights = 1 << 25;
  // Least and most rows of x for qmm_tall, the least where qmm_fragments is not
  // used (docs/lab/2026-11-26-tune-hidden.md); the most for codes of bytes
  // (2026-11-26-tall.md); workgroups a core that its parts of k aim at, and the
  // least items of k a part (2026-11-26-rows.md).
  uint32_t least_tall_rows = 33;
  uint32_t most_tall_rows = ~0u;
  uint32_t most_tall_byte_rows = 256;
  uint32_t tall_groups = 2;
  uint32_t split_tall_k = 256;
  // Workgroups a core that products of two to eight rows by matrix units aim at
  // (docs/lab/2026-11-22-matvec.md).
  uint32_t matvec_groups = 2;
  // Least and most items of k of a single row that takes integer dot products
  // (2026-11-26-one-row.md).
  uint32_t dot_row_k = 1;
  uint32_t most_dot_row_k = 8192;
  // Subgroups a core that keep a device busy in qmv. With fewer, and at least
  // shared_k items of k a lane, workgroups share k (same note).
  uint32_t busy_subgroups = 16;
  uint32_t shared_k = 64;
  // Rows of x up to which a product takes vectors instead of tiles, with w
  // transposed and not (same note).
  uint32_t vector_rows = 8;
  uint32_t plain_vector_rows = 4;
  // Total rows, and rows an expert, from which sorted rows are multiplied in
  // tiles (docs/lab/2026-11-22-experts.md).
  uint32_t sorted_rows = 16;
  uint32_t sorted_expert_rows = 4;
  // Rows per expert up to which qmm_fragments has tiles of 16 rows
  // (docs/lab/2026-11-26-tall.md).
  uint32_t few_expert_rows = 16;
  // Rows per expert above which qmm_sorted has tiles of 128 rows
  // (docs/lab/2026-11-22-experts.md).
  uint32_t tall_expert_rows = 64;
  // Most rows of x, and per expert, of qmm_coopmat's tiles of 32 rows; most of
  // its tiles of 64: above, 128 (docs/lab/2026-11-22-matrix-units.md).
  uint32_t flat_rows = 32;
  uint32_t flat_expert_rows = 16;
  uint32_t tall_rows = 64;
  // Rows of x from which w is dequantized first (same note), and the most MiB
  // of the result (a limit of memory, not timed).
  uint32_t dequantize_rows = 128;
  uint32_t dequantize_mib = 256;
  // dequantize_rows for bfloat16 x on devices with f16 matrices only, where the
  // alternative is scalar (docs/dev/matrix-units.md).
  uint32_t halves_dequantize_rows = 128;
  // dequantize_rows on devices whose tiles are estimated (RADV on gfx1201
  // breaks even between 512 and 2,048 rows).
  uint32_t codes_dequantize_rows = 768;
  // Weights, and multiplications of a product, from which larger kernels repay
  // their compilation on software devices (lavapipe; no note).
  uint64_t compiled_weights = 1 << 18;
  uint64_t compiled_products = 1 << 22;
};

struct GemmTuning {
  // Thin products of more columns, and of at least so many rows and items of k,
  // use matrix units although mostly padded, if items along k are not adjacent
  // (docs/lab/2026-11-22-training.md).
  uint32_t apart_vectors = 4;
  uint32_t apart_rows = 1024;
  uint32_t apart_k = 256;
  // Most rows of a, and least items of k, for products of few rows by matrix
  // units: gemm_skinny (docs/lab/2026-11-22-few-rows.md).
  uint32_t few_rows = 64;
  uint32_t few_rows_k = 512;
  // Workgroups a core that splits of k aim at, the most parts, and the least
  // items of k a part: in thin products (no note), scalar tiles (no note), few
  // rows (docs/lab/2026-11-22-few-rows.md), and tiles of matrix units, the
  // large ones last (docs/lab/2026-11-22-matrix-units.md).
  uint32_t split_groups = 2;
  uint32_t split_parts = 64;
  uint32_t split_axpy_k = 256;
  uint32_t split_dot_k = 4096;
  uint32_t split_tile_k = 256;
  uint32_t split_skinny_k = 1024;
  uint32_t split_matrices_k = 512;
  uint32_t split_large_k = 384;
  // Least items of k for matrix units, if m and n exceed 64 and otherwise
  // (docs/lab/2026-11-22-matrix-units.md).
  uint32_t wide_matrices_k = 4;
  uint32_t matrices_k = 16;
  // Total rows, and rows an expert, from which sorted rows are multiplied in
  // tiles; and rows an expert up to which tiles have 32 and 64 rows
  // (docs/lab/2026-11-22-experts.md).
  uint32_t sorted_rows = 16;
  uint32_t sorted_expert_rows = 4;
  uint32_t flat_expert_rows = 16;
  uint32_t medium_expert_rows = 96;
  // Quarters of the cores that 128 x 128 tiles must occupy (same note).
  uint32_t large_quarters = 3;
};

struct AttentionTuning {
  // Keys up to which decoding is not split over workgroups (this and the next
  // four: docs/lab/2026-11-23-decode-attention.md).
  uint32_t short_keys = 256;
  // Keys up to which a workgroup takes two rows instead of four.
  uint32_t two_rows_keys = 4096;
  // Workgroups a core that splits of keys aim at; splits that are always worth
  // their join; the most splits.
  uint32_t split_groups = 2;
  uint32_t cheap_splits = 16;
  uint32_t most_splits = 128;
  // Head dimension above which a prompt's workgroup has eight subgroups and 64
  // keys, not four and 32 (docs/lab/2026-11-22-prompt-attention.md), and least
  // queries of such a workgroup (docs/lab/2026-11-26-tune-hidden.md).
  uint32_t wide_head = 96;
  uint32_t wide_queries = 65;
  // Queries from which bfloat16 uses f16 matrices, which take a pass over all
  // items first (docs/dev/matrix-units.md; not timed).
  uint32_t halves_queries = 32;
};

// Forms of kernels that replace the planned ones in views of `mlx-vulkan tune`
// (ops/tuned/plan.h); 0: as planned.
struct KernelForms {
  // qmm_fragments: subgroups that share k; chunks of codes, and steps of x, in
  // flight.
  uint32_t fragments_parts = 0, fragments_depth = 0, fragments_ahead = 0;
  uint32_t tall_rows = 0; // most rows of a tile of qmm_tall
  uint32_t norm_lanes = 0; // invocations a row, up to a workgroup
};

struct Tuning {
  KernelForms forms;
  QuantTuning quant;
  GemmTuning gemm;
  AttentionTuning attention;
};

// Measured on an H200.
inline constexpr Tuning discrete_tuning;
// The same, except that dequantizing first repays later in memory shared with
// the host; not timed. Also for Intel's cards, where Xe2 breaks even at some
// 1,000 rows by ANV's code.
inline constexpr Tuning integrated_tuning{
    .quant = {
        .dot_row_k = ~0u,
        .dequantize_rows = 768,
        .halves_dequantize_rows = 192}};
inline constexpr const Tuning& software_tuning = integrated_tuning;

inline const Tuning& tuning(const Caps& caps) {
  bool card = caps.discrete() && caps.vendor_id != 0x8086;
  return caps.thresholds ? *caps.thresholds
      : card             ? discrete_tuning
      : caps.software()  ? software_tuning
                         : integrated_tuning;
}

} // namespace mlx::core::vulkan

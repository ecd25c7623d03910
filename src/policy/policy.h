// What plans do with a device. Caps (vk/caps.h) is what the device said; a
// policy is made from it once, by the device's class, and may differ from it
// where a user or a test wants other kernels. A class is a file of this folder.
// Free of MLX.
//
// A comment at each threshold names its unit and the note with the measurement,
// or says that there is none. `benchmarks/thresholds.py NAME`, with the name of
// a member such as quant.few_rows, times sizes below and above it; "Thresholds"
// in docs/dev/benchmarks.md explains how to compare two values.
#pragma once

#include <cstdint>
#include <string_view>

#include "vk/caps.h"
#include "vk/integers.h"

namespace mlx::core::vulkan {

constexpr uint32_t never = 1 << 30; // more rows, items of k or keys than any

struct QuantThresholds {
  // Rows of x from which products of few rows use matrix units: qmm_fragments
  // and rows_skinny (docs/lab/2026-11-26-rows.md).
  uint32_t few_rows = 5;
  // Outputs from which qmm_fragments takes so many rows and more
  // (2026-11-26-cliffs.md).
  uint32_t wide_outputs = 8192;
  uint32_t wide_rows = 2;
  // Rows of x up to which rows_skinny is used with groups of 32, each of which
  // takes a product of its own (same note).
  uint32_t small_group_rows = 16;
  // Items of k from which subgroups of qmm_fragments share k (same note).
  uint32_t fragments_k = 1024;
  // Rows of x up to which qmm_fragments is used for all weights, and weights
  // from which qmm_tall takes over (docs/lab/2026-11-26-tall.md).
  uint32_t fragments_rows = 32;
  uint64_t tall_weights = 1 << 25;
  // Least and most rows of x for qmm_tall, the least where qmm_fragments is not
  // used (docs/lab/2026-11-26-tune.md); the most for codes of bytes
  // (2026-11-26-tall.md); workgroups per core that its parts of k aim at, and
  // the least items of k per part (2026-11-26-rows.md).
  uint32_t least_tall_rows = 33;
  uint32_t most_tall_rows = ~0u;
  uint32_t most_tall_byte_rows = 256;
  uint32_t tall_groups = 2;
  uint32_t split_tall_k = 256;
  // Most rows of x for matrices in qmv, and workgroups per core that they aim
  // at (docs/lab/2026-11-22-matvec.md).
  uint32_t matvec_rows = 8;
  uint32_t matvec_groups = 2;
  // Least and most items of k of a single row that takes integer dot products
  // (2026-11-26-one-row.md).
  uint32_t dot_row_k = 1;
  uint32_t most_dot_row_k = 8192;
  // Subgroups per core that keep a device busy in qmv. With fewer, and at least
  // shared_k items of k per lane, workgroups share k (same note).
  uint32_t busy_subgroups = 16;
  uint32_t shared_k = 64;
  // Rows of x up to which a product takes vectors instead of tiles, with w
  // transposed and not (same note).
  uint32_t vector_rows = 8;
  uint32_t plain_vector_rows = 4;
  // vector_rows where f16 matrices repay packing rows of bf16
  // (docs/lab/2026-11-28-executed-amd.md).
  uint32_t packed_vector_rows = 4;
  // Total rows, and rows per expert, from which sorted rows are multiplied in
  // tiles (docs/lab/2026-11-22-experts.md).
  uint32_t sorted_rows = 16;
  uint32_t sorted_expert_rows = 4;
  // Rows per expert up to which qmm_fragments has tiles of 16 rows
  // (docs/lab/2026-11-26-tall.md).
  uint32_t few_expert_rows = 16;
  // Rows per expert above which codes have tiles of 128 rows
  // (docs/lab/2026-11-22-experts.md).
  uint32_t tall_expert_rows = 64;
  // Most rows of x, and per expert, of quantized tiles of 32 rows of
  // weights; most of those of 64: above, 128
  // (docs/lab/2026-11-22-matrix-units.md).
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

struct GemmThresholds {
  // Thin products of more columns, and of at least so many rows and items of k,
  // use matrix units although mostly padded, if items along k are not adjacent
  // (docs/lab/2026-11-22-training.md).
  uint32_t apart_vectors = 4;
  uint32_t apart_rows = 1024;
  uint32_t apart_k = 256;
  // Least and most rows of a, and least items of k, for products of few rows by
  // matrix units: rows_skinny (docs/lab/2026-11-26-rows.md).
  uint32_t least_few_rows = 9;
  uint32_t few_rows = 64;
  uint32_t few_rows_k = 512;
  // Workgroups per core that splits of k aim at, the most parts, and the least
  // items of k per part: in thin products (no note), scalar tiles (no note),
  // few rows (docs/lab/2026-11-26-rows.md), and tiles of matrix units, the
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
  // Total rows, and rows per expert, from which sorted rows are multiplied in
  // tiles; and rows per expert up to which tiles have 32 and 64 rows
  // (docs/lab/2026-11-22-experts.md).
  uint32_t sorted_rows = 16;
  uint32_t sorted_expert_rows = 4;
  uint32_t flat_expert_rows = 16;
  uint32_t medium_expert_rows = 96;
  // Quarters of the cores that 128 x 128 tiles must occupy (same note).
  uint32_t large_quarters = 3;
};

struct AttentionThresholds {
  // Keys up to which decoding is not split over workgroups (this and the next
  // four: docs/lab/2026-11-23-decode-attention.md).
  uint32_t short_keys = 256;
  // Keys up to which a workgroup takes two rows instead of four.
  uint32_t two_rows_keys = 4096;
  // Workgroups per core that splits of keys aim at; splits that are always
  // worth their join; the most splits.
  uint32_t split_groups = 2;
  uint32_t cheap_splits = 16;
  uint32_t most_splits = 128;
  // Head dimension above which a prompt's workgroup has eight subgroups and 64
  // keys, not four and 32 (docs/lab/2026-11-22-prompt-attention.md), and least
  // queries of such a workgroup (docs/lab/2026-11-26-tune.md).
  uint32_t wide_head = 96;
  uint32_t wide_queries = 65;
  // Queries from which bfloat16 uses f16 matrices, which take a pass over all
  // items first (docs/dev/matrix-units.md; not timed).
  uint32_t halves_queries = 32;
};

struct Policy {
  const char* name = "least"; // of the class

  // What Vulkan does not report. Compute units: a mid-range GPU's if they are
  // not known.
  uint32_t cores = 32;
  // Subgroup size to expect of a kernel that requests none.
  uint32_t lanes = 0;
  // 32-bit registers per lane in the narrowest subgroups; 0: unknown.
  uint32_t registers = 255;
  // 32-bit values that a lane of a decode kernel may keep live without
  // spilling: the maximum that `make test-drivers` compiled without spills.
  uint32_t held_values = 255;
  // Additional values per masked score, for its address; 0 if uniform values
  // have registers of their own.
  uint32_t mask_values = 0;
  // Additional values of a joined product (qmv_fused.comp): for its additions,
  // and for the addresses of one of several matrices if x is not in shared
  // memory.
  uint32_t joined_values = 0, several_values = 0;

  // Whether kernels may use matrix units, and those that know their layout;
  // whether such kernels run on matrices made of floats (test hooks).
  bool matrices = true, fragments = true;
  bool emulates_products = false, emulates_attention = false;
  // A thread runs a workgroup's invocations in turn: few and large ones are
  // faster, shared memory is slow, and compilation counts.
  bool serial = false;
  // Iterations that the loops of an invocation may have in total, and the items
  // of k that a scalar tile may then have.
  uint32_t most_iterations = ~0u, most_tile_k = ~0u;
  // Columns from which eigenvalues are those of a tridiagonal matrix
  // (ops/linalg/eigen.h), and singular values from six times as many: the
  // H200's, docs/lab/2026-11-29-linear-algebra.md.
  uint32_t tridiagonal_columns = 65;
  // Tiles were timed on the class; else those of least estimated time are
  // taken.
  bool timed_tiles = false;
  bool packs_halves = true; // f16 matrices take packed rows of bf16
  bool finite_first = true; // tiles of weights test for finite items first
  bool vector_tiles = true; // qmm loads four items of x at once
  bool dot_row = false; // a row of x takes integer dot products
  bool fragment_codes = true; // qmm_fragments and qmm_tall are used
  bool fragment_convolutions = true;
  uint32_t dequantize_rows = 0; // if not 0, instead of thresholds
  int int8 = 0; // Config::int8_activations
  uint32_t code_parts = 1; // parts of k of codes, where not estimated
  uint32_t vecmat_lanes = 16; // of qvm that share k
  uint32_t row_groups = 2; // gemv: workgroups per core for several rows each
  uint32_t tile_groups = 1; // workgroups per core for larger scalar tiles
  bool gpu_tiles = true; // scalar tiles of GPUs, which load ahead
  uint32_t decode_lanes = 32; // most lanes per key in decode attention
  bool decode_by_width = false; // its forms follow the head, not registers
  uint32_t quads_items = 64; // whole chunks of a value that QUADS needs
  uint32_t rank_comparisons = 1 << 19; // most per core of a rank sort
  uint32_t counted_items = 1024; // most of a row that is sorted by counting
  // Items from which rows are sorted by digits, of fewer bits and of 32; 0:
  // never (docs/lab/2026-11-23-sorting.md).
  uint32_t radix_items = 1 << 14, radix_words = 1 << 17;
  // Items of many lines that an invocation scans alone.
  uint32_t scan_alone = 32;
  // Heads up to which rope_cache.comp is faster: it saves levels, but computes
  // angles again for every few heads. On an H200 24,576 heads of q, k and v
  // took 25 us instead of 17 in three levels, 48 took 5 instead of 13.
  uint32_t rotated_heads = 4096;

  QuantThresholds quant;
  GemmThresholds gemm;
  AttentionThresholds attention;

  // Whether decode kernels take their small forms.
  bool few_registers() const {
    return registers < 255;
  }
};

// The policy of the device's class, with what a test and a user ask for.
Policy policy_of(const Caps& caps, const TestHooks& test = {}, int int8 = 0);
// That of plans of products, attention and norms, which is of another class, or
// has another threshold, where TestHooks::plans names one (policy.cpp).
Policy planned_policy(const Caps& caps, const TestHooks& test, int int8 = 0);
// Sets the thresholds of devices that share the host's memory, where
// dequantizing first repays later; not timed.
void share_memory(Policy& policy);

// A device, and what plans do with it.
struct Target {
  const Caps& caps;
  Policy policy;

  Target(const Caps& caps) : Target(caps, policy_of(caps)) {}
  Target(const Caps& caps, const Policy& policy) : caps(caps), policy(policy) {}

  uint32_t cores() const {
    return policy.cores;
  }
  // Matrices that kernels may use, as those of Caps.
  MatrixUnits matrices(Type t) const {
    return policy.matrices ? caps.matrices(t) : MatrixUnits{};
  }
  bool coopmat(Type t) const {
    return policy.matrices && caps.coopmat(t);
  }
  MatrixUnits half_matrices(Type t) const {
    return policy.matrices ? caps.half_matrices(t) : MatrixUnits{};
  }
  bool usual_matrices(Type t) const {
    return policy.matrices && caps.usual_matrices(t);
  }
  // Whether the layout of their elements is known.
  bool fragments(Type t) const {
    return policy.fragments && caps.known_fragments && usual_matrices(t);
  }
};

} // namespace mlx::core::vulkan

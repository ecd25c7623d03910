// Interfaces of prefill.comp, prefill_coopmat.comp, prefill_narrow.comp and
// prefill_fragments.comp.
#include "attention/strides.h"
#include "common/fragments.h"

// HALVES: heads whose items are exact are taken by prefill_coopmat, the others
// by prefill.
#if HALVES
#define RANGES_INPUT PTR(Ptr_u32, ranges) // attention/ranges.h
#else
#define RANGES_INPUT
#endif

BEGIN_INTERFACE

// Rows of y are ordered (batch, query, head).
struct PrefillArgs {
  ATTENTION_INPUTS
  SINKS_INPUT
  RANGES_INPUT
  PTR(T_PTR, y)
  LSE_OUTPUT
  uint batches, heads, kv_heads, queries, keys;
  uint tiles; // tiles of queries
  float scale; // includes log2(e)
  HeadStrides q_strides, k_strides, v_strides;
  MaskStrides mask_strides;
};

#ifdef __cplusplus
struct PrefillVariant {
  Type T = Type::f32;
  uint D = 64, DV = 64;
  uint BQ = 32, BK = 64; // queries and keys per tile
  bool VEC = false; // q, k and v are aligned to four items
  bool QUADS = false; // an invocation's columns of y are neighbours in fours
  uint MASK = 0; // as in DecodeVariant
  bool CAUSAL = false, SINKS = false, LSE = false;

  // Invocations per row in the softmax, adjacent in a subgroup.
  constexpr uint lanes() const {
    return 128 / BQ;
  }
  // Shared memory in bytes: slices of q and k or rows of v, and scores.
  constexpr uint shared_memory() const {
    uint slices = (BQ + BK) * 33;
    uint rows = BK / (QUADS ? 4 : 8) * ((DV + 15) / 16 * 16);
    return ((slices > rows ? slices : rows) + BQ * (BK + 3)) * 4;
  }
#define PREFILL_MEMBERS T, D, DV, BQ, BK, VEC, QUADS, MASK, CAUSAL, SINKS, LSE
  KERNEL_VARIANT("attention/prefill", PrefillArgs, PREFILL_MEMBERS)
};

// For the heads that matrices of float16 would not compute exactly.
struct PrefillRestVariant : PrefillVariant {
  bool HALVES = true;
  KERNEL_VARIANT("attention/prefill", PrefillArgs, PREFILL_MEMBERS, HALVES)
};

struct PrefillCoopmatVariant {
  static constexpr uint BQ = 64;
  Type T = Type::f16;
  MatrixUnits units;
  uint D = 64, DV = 64;
  uint BK = 64; // keys per tile
  uint MASK = 0;
  bool CAUSAL = false, SINKS = false, LSE = false;

  // Shared memory in bytes: queries, keys or values; scores, weights.
  constexpr uint shared_memory() const {
    return larger(BQ * (D / 8 + 1) * 16, values()) + scores();
  }
  constexpr uint values() const {
    return DV * (BK / 8 + 1) * 16;
  }
  constexpr uint scores() const {
    return BQ * (BK + BK / 2 + 8) * 4;
  }
  static constexpr uint larger(uint a, uint b) {
    return a > b ? a : b;
  }
#define PREFILL_COOPMAT_MEMBERS D, DV, BK, MASK, CAUSAL, SINKS, LSE
  MATRIX_VARIANT(
      "attention/prefill_coopmat", PrefillArgs, PREFILL_COOPMAT_MEMBERS)
};

// For subgroups of 16, of which two share rows. q, four numbers per row, a flag
// per 16 rows, two pairs of addresses and the scale are in shared memory too.
struct PrefillNarrowVariant : PrefillCoopmatVariant {
  constexpr uint shared_memory() const {
    uint queries = BQ * ((D / 8 + 1) * 16 + 4 * 4) + BQ / 16 * 4;
    uint keys = larger(BK * (D / 8 + 1) * 16, values());
    return keys + scores() + queries + 2 * 16 + 4;
  }
  MATRIX_VARIANT(
      "attention/prefill_narrow", PrefillArgs, PREFILL_COOPMAT_MEMBERS)
};

struct PrefillFragmentsVariant {
  Type T = Type::f16;
  uint SG = 32;
  uint D = 64, DV = 64;
  uint SUBGROUPS = 4, FM = 1; // fragments of 16 queries per subgroup
  uint BK = 64; // keys per tile
  uint MASK = 0;
  bool CAUSAL = false, SINKS = false, LSE = false;
  FRAGMENT_MATRICES

  constexpr uint queries() const {
    return 16 * FM * SUBGROUPS;
  }
  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint q = queries() * (D / 8 + 1) * 16;
    uint kv = BK * (D / 8 + DV / 8 + 2) * 16;
    return q > kv ? q : kv;
  }
  KERNEL_VARIANT(
      "attention/prefill_fragments", PrefillArgs, T, SG, D, DV, SUBGROUPS, FM,
      BK, MASK, CAUSAL, SINKS, LSE, FRAGMENT_NAMES)
};
#endif

END_INTERFACE

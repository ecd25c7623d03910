#include "attention/strides.h"

#if PARTS
#define PARTS_OUTPUTS PTR(Ptr_f32, parts) PTR(Ptr_u32, arrived) PTR(T_PTR, y)
#else
#define PARTS_OUTPUTS PTR(T_PTR, y)
#endif

BEGIN_INTERFACE

// Fits the push constants with at most 6 pointers and no mask. `groups` counts
// (batch, KV head, row group); rows of y are ordered (batch, query, head).
struct DecodeArgs {
  ATTENTION_INPUTS
  SINKS_INPUT
  PARTS_OUTPUTS
  LSE_OUTPUT
  uint groups, gqa, kv_heads, row_groups, queries, splits;
  uint keys, split_keys;
  ShortStrides q_strides, k_strides, v_strides;
  float scale; // includes log2(e)
#if MASK
  MaskStrides mask_strides;
#endif
};

// Strides in items; those of codes in words.
struct ItemStrides {
  int64_t batch, head;
};

// Arguments for a quantized cache, whose rows are contiguous. q is multiplied
// by `factor` and rounded to T; `hidden` is the score of a masked key.
struct QuantizedDecodeArgs {
  PTR(T_PTR, q)
#if SCALED
  PTR(T_PTR, factor)
#endif
  PTR(Ptr_u32, k)
  PTR(T_PTR, k_scales)
  PTR(T_PTR, k_biases)
  PTR(Ptr_u32, v)
  PTR(T_PTR, v_scales)
  PTR(T_PTR, v_biases)
#if MASK
  PTR(MASK_PTR, mask)
#endif
#if MASK == 1
  PTR(T_PTR, hidden)
#endif
  PARTS_OUTPUTS
  ItemStrides k_codes_strides, k_scales_strides, k_biases_strides;
  ItemStrides v_codes_strides, v_scales_strides, v_biases_strides;
  MaskStrides mask_strides;
  uint groups, gqa, kv_heads, row_groups, queries, splits;
  uint keys, split_keys;
  ShortStrides q_strides;
  float scale; // includes log2(e)
};

#ifdef __cplusplus
static_assert(sizeof(DecodeArgs) == 72);
static_assert(sizeof(QuantizedDecodeArgs) == 6 * 16 + 32 + 12 * 4);

struct MaskedDecodeArgs : DecodeArgs { // with MASK
  MaskStrides mask_strides;
};

struct DecodeVariant {
  Type T = Type::f32;
  uint D = 64, DV = 64; // items per row of q and k, and of v
  uint TPK = 8; // invocations per key
  uint ROWS = 1; // query rows per workgroup, at most TPK
  uint WG = 128;
  uint SLOTS = 1; // subgroups whose sums are in shared memory at once
  uint KU = 1; // keys in flight
  bool VEC = false; // 16-byte loads of q, k and v
  bool SHARED_Q = false; // q is in shared memory
  bool PIECES = false; // k and v are loaded at their use; needs ROWS = KU = 1
  uint MASK = 0; // 0 none, 1 bool, 2 additive
  bool CAUSAL = false, SINKS = false;
  bool PARTS = false; // several workgroups share keys, and the last one joins
  bool LSE = false;
  // Quantized cache: bits per code, items per scale, items per lane and load.
  // BITS = 0: k and v are items.
  uint BITS = 0, GROUP = 0, CHUNK = 0;
  bool SCALED = false; // q is multiplied by `factor`
  bool HEADS_FIRST = false; // rows of y are ordered (batch, head, query)
  bool operator==(const DecodeVariant&) const = default;
  TAKES(QuantizedDecodeArgs)
  KERNEL_VARIANT(
      "attention/decode", DecodeArgs, T, D, DV, TPK, ROWS, WG, SLOTS, KU, VEC,
      SHARED_Q, PIECES, MASK, CAUSAL, SINKS, PARTS, LSE, BITS, GROUP, CHUNK,
      SCALED, HEADS_FIRST)
};
#endif

END_INTERFACE

#include "attention/strides.h"

#if PARTS == PARTS_MERGED
#define PARTS_OUTPUTS PTR(Ptr_f32, parts)
#elif PARTS == PARTS_JOINED
#define PARTS_OUTPUTS PTR(Ptr_f32, parts) PTR(Ptr_u32, arrived) PTR(T_PTR, y)
#else
#define PARTS_OUTPUTS PTR(T_PTR, y)
#endif

BEGIN_INTERFACE

// With at most 6 pointers and no mask it just fits the push constants. `groups`
// are (batch, KV head, row group); rows of y are laid out (batch, query, head).
struct DecodeArgs {
  ATTENTION_INPUTS
  SINKS_INPUT
  PARTS_OUTPUTS
  LSE_OUTPUT
  uint groups, gqa, kv_heads, row_groups, queries, splits;
  uint keys, split_keys;
  ShortStrides q_strides, k_strides, v_strides;
  float scale; // times log2(e)
#if MASK
  MaskStrides mask_strides;
#endif
};

// In items, of codes in words.
struct ItemStrides {
  int64_t batch, head;
};

// Of a quantized cache, whose rows stand one after another. q counts as often
// as `factor` says, rounded to T; `hidden` is what scores are where the mask
// says false.
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
  float scale; // times log2(e)
};

#ifdef __cplusplus
static_assert(sizeof(DecodeArgs) == 72);
static_assert(sizeof(QuantizedDecodeArgs) == 6 * 16 + 32 + 12 * 4);

struct MaskedDecodeArgs { // DecodeArgs with MASK
  DecodeArgs decode;
  MaskStrides mask_strides;
};

struct DecodeVariant {
  Type T = Type::f32;
  uint D = 64, DV = 64; // items a row of q and k, and of v
  uint TPK = 8; // invocations a key
  uint ROWS = 1; // query rows a workgroup, at most TPK
  uint WG = 128;
  uint SLOTS = 1; // subgroups whose sums are in shared memory at once
  uint KU = 1; // keys in flight
  bool VEC = false; // 16-byte loads of q, k and v
  bool SHARED_Q = false; // in shared memory
  bool PIECES = false; // k and v used as they come: of one row and one key
  uint MASK = 0; // 0 none, 1 bool, 2 additive
  bool CAUSAL = false, SINKS = false;
  uint PARTS = PARTS_NONE;
  bool LSE = false;
  // Of a quantized cache: codes of so many bits, items that share a scale, and
  // items that a lane takes at a time. 0: k and v are items.
  uint BITS = 0, GROUP = 0, CHUNK = 0;
  bool SCALED = false; // q is multiplied first
  bool HEADS_FIRST = false; // rows of y are laid out (batch, head, query)
  bool operator==(const DecodeVariant&) const = default;
  KERNEL_VARIANT(
      "attention/decode",
      T,
      D,
      DV,
      TPK,
      ROWS,
      WG,
      SLOTS,
      KU,
      VEC,
      SHARED_Q,
      PIECES,
      MASK,
      CAUSAL,
      SINKS,
      PARTS,
      LSE,
      BITS,
      GROUP,
      CHUNK,
      SCALED,
      HEADS_FIRST)
};
#endif

END_INTERFACE

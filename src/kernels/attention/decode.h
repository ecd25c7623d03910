#include "attention/strides.h"

BEGIN_INTERFACE

// Without a mask its 32 bytes of pointers and 96 just fit the push constants.
// Rows of y are laid out (batch, query, head).
struct DecodeArgs {
  ATTENTION_INPUTS
  SINKS_INPUT
#if SPLIT
  PTR(Ptr_f32, y)
#else
  PTR(T_PTR, y)
#endif
  LSE_OUTPUT
  uint batches, heads, kv_heads, queries, keys;
  uint row_groups, splits, split_keys;
  int q_batch, q_head, q_row;
  float scale; // times log2(e)
  HeadStrides k_strides, v_strides;
#if MASK
  MaskStrides mask_strides;
#endif
};

#ifdef __cplusplus
static_assert(sizeof(DecodeArgs) == 96);

struct MaskedDecodeArgs { // DecodeArgs with MASK
  DecodeArgs decode;
  MaskStrides mask_strides;
};

struct DecodeVariant {
  Type T = Type::f32;
  uint D = 64, DV = 64; // items a row of q and k, and of v
  uint TPK = 8; // invocations a key
  uint ROWS = 1; // query rows a workgroup
  uint WG = 128;
  uint KU = 1; // keys in flight
  bool VEC = false; // 16-byte loads of k and v
  bool PIECES = false; // each used at once: of one row and one key
  uint MASK = 0; // 0 none, 1 bool, 2 additive
  bool CAUSAL = false, SINKS = false, SPLIT = false, LSE = false;
  KERNEL_VARIANT(
      "attention/decode",
      T,
      D,
      DV,
      TPK,
      ROWS,
      WG,
      KU,
      VEC,
      PIECES,
      MASK,
      CAUSAL,
      SINKS,
      SPLIT,
      LSE)
};
#endif

END_INTERFACE

// Interfaces of vjp_keys.comp and vjp_queries.comp: attention's backward pass
// with matrices in registers.
#include "attention/strides.h"
#include "common/fragments.h"

BEGIN_INTERFACE

#ifndef __cplusplus
#if OF_KEYS
#define GRADIENTS \
  PTR(T_PTR, dk)  \
  PTR(T_PTR, dv)
#else
#define GRADIENTS PTR(T_PTR, dq)
#endif
#else
#define GRADIENTS
#endif

// lse and delta are (batch, head, query), gradients (batch, head, row, item),
// all contiguous.
struct GradientsArgs {
  ATTENTION_INPUTS
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, lse)
  PTR(Ptr_f32, delta)
  GRADIENTS
  uint batches, heads, kv_heads, queries, keys;
  uint tiles; // tiles of keys or of queries
  float scale;
  HeadStrides q_strides, k_strides, v_strides, cotan_strides;
  MaskStrides mask_strides;
};

#ifdef __cplusplus
// Two subgroups share 16 keys: one computes dv, the other dk.
struct KeyGradientsVariant {
  Type T = Type::f16;
  uint SG = 32;
  uint D = 64; // head dimension of q, k and v
  uint SUBGROUPS = 8;
  uint BQ = 32; // queries per step
  uint MASK = 0; // as in DecodeVariant
  bool CAUSAL = false;
  FRAGMENT_MATRICES

  // Rows of the output per workgroup.
  constexpr uint rows() const {
    return 8 * SUBGROUPS;
  }
  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint pitch = (D / 8 + 1) * 16;
    uint tiles = 4 * BQ * pitch, own = 2 * rows() * pitch;
    return (tiles > own ? tiles : own) + BQ * SUBGROUPS * 32 + 16 * BQ +
        (EMULATED ? SUBGROUPS * 2048 : 0);
  }
  KERNEL_VARIANT(
      "attention/vjp_keys", GradientsArgs, T, SG, D, SUBGROUPS, BQ, MASK,
      CAUSAL, FRAGMENT_NAMES)
};

struct QueryGradientsVariant {
  Type T = Type::f16;
  uint SG = 32;
  uint D = 64;
  uint SUBGROUPS = 8;
  uint BK = 16; // keys per step
  uint MASK = 0;
  bool CAUSAL = false;
  FRAGMENT_MATRICES

  constexpr uint rows() const {
    return 16 * SUBGROUPS;
  }
  constexpr uint shared_memory() const {
    uint pitch = (D / 8 + 1) * 16;
    uint tiles = 4 * BK * pitch, own = rows() * pitch;
    return (tiles > own ? tiles : own) + (EMULATED ? SUBGROUPS * 2048 : 0);
  }
  KERNEL_VARIANT(
      "attention/vjp_queries", GradientsArgs, T, SG, D, SUBGROUPS, BK, MASK,
      CAUSAL, FRAGMENT_NAMES)
};
#endif

END_INTERFACE

// Interfaces of vjp_scores.comp and vjp_scores_coopmat.comp.
#include "attention/strides.h"

BEGIN_INTERFACE

// query0 and key0 are the first query and key of the chunk; p and ds are
// (batch, head, query, key) of the chunk, with rows `pitch` items apart.
struct ScoresArgs {
  ATTENTION_INPUTS
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, lse)
  PTR(Ptr_f32, delta)
  PTR(T_PTR, p)
  PTR(T_PTR, ds)
  uint batches, heads, kv_heads, queries, keys;
  uint dim, value_dim, pitch;
  uint query0, query_count, key0, key_count;
  uint query_tiles, key_tiles;
  float scale;
  HeadStrides q_strides, k_strides, v_strides, cotan_strides;
  HeadStrides lse_strides; // also of delta
  MaskStrides mask_strides;
};

#ifdef __cplusplus
struct ScoresVariant {
  static constexpr uint BQ = 32;
  Type T = Type::f32;
  bool VEC = false; // q, k, v and cotan are aligned to four items
  uint MASK = 0; // as in DecodeVariant
  bool CAUSAL = false;
  KERNEL_VARIANT("attention/vjp_scores", ScoresArgs, T, VEC, MASK, CAUSAL)
};

struct ScoresCoopmatVariant {
  static constexpr uint BQ = 64;
  Type T = Type::f16;
  MatrixUnits units;
  uint D = 64, DV = 64;
  uint MASK = 0;
  bool CAUSAL = false;

  // Shared memory of the kernel, in bytes.
  static constexpr uint shared_memory() {
    return 2 * BQ * 17 * 16;
  }
  MATRIX_VARIANT(
      "attention/vjp_scores_coopmat", ScoresArgs, D, DV, MASK, CAUSAL)
};
#endif

END_INTERFACE

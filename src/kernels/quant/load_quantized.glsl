// Operands of rows_tile.glsl for quantized products of 16-bit x with rows
// aligned to 16 bytes.
//
// CODES: codes enter the product (load_codes.glsl); TRANSPOSE, w aligned to 16
// bytes, and K a multiple of 32. HALVES: x is packed (quant/half_rows.h).
// Otherwise weights do, rounded to 16 bits (load_weights.glsl).
#define A_T 0
#define B_T TRANSPOSE
#include "gemm/matrix_tile.glsl"
#include "gemm/pieces.glsl"
#include "quant/tile.glsl"

uint64_t row_address(uint m) {
  return uint64_t(x_base) + uint64_t(x_item(m) * 2);
}

#if SPLIT
#define store_item(m, n, sum)                                                 \
  store(Ptr_f32(part_base), uint64_t(m) * A.N + (n), sum)
#endif

#if CODES
#include "quant/load_codes.glsl"
#else
#include "quant/load_weights.glsl"
#endif

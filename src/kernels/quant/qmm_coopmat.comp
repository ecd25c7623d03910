// y = x @ W^T (TRANSPOSE) or x @ W with cooperative matrices, for 16-bit x with
// rows aligned to 16 bytes. Tiles are those of gemm/rows_tile.glsl with a = x;
// the next tile of codes is prefetched into registers.
//
// CODES: codes enter the product (load_codes.glsl); TRANSPOSE, w aligned to 16
// bytes, and K a multiple of 32. HALVES: x is packed (quant/half_rows.h).
// Otherwise weights do, rounded to 16 bits (load_weights.glsl).
#define A_T 0
#define B_T TRANSPOSE
#include "gemm/matrix_tile.glsl"
#include "quant/tile.glsl"

uint64_t row_address(uint m) {
  return uint64_t(x_base) + uint64_t(x_item(m) * 2);
}

#if CODES
#include "quant/load_codes.glsl"
#else
#include "quant/load_weights.glsl"
#endif
#include "gemm/rows_tile.glsl"

void main() {
  multiply_tile();
}

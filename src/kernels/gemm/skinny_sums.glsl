// Final reduction over the parts of k for gemm_skinny.comp and qmm_skinny.comp,
// one fragment of each subgroup at a time through shared memory, because the
// element layout is unknown. The kernel defines acc[], stage[] and
// STORE_SUM(row, column, sum).
void store_sums(uint first_row, uint first_column) {
  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    barrier();
    coopMatStore(acc[f], stage, gl_SubgroupID * 256, 16, ROW_MAJOR);
    barrier();
    for (uint e = gl_LocalInvocationIndex; e < WN * 256; e += WG) {
      float sum = 0.0;
      [[unroll]] for (uint p = 0; p < WK; ++p) {
        sum += stage[p * WN * 256 + e];
      }
      uint r = first_row + f / FN * 16 + e % 256 / 16;
      uint c = first_column + e / 256 * ROWS + f % FN * 16 + e % 16;
      STORE_SUM(r, c, sum)
    }
  }
}

// Loads of emulated matrices for gemm/fragment_tile.glsl.
#define LOAD_MATRIX(m, at) m = loaded(at)

float[8] loaded(uint at) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint item = FRAGMENT_ROW(e) * 16 + FRAGMENT_COLUMN(e);
#if A_T
    item = item % 16 * 16 + item / 16;
#endif
    uint pair = tiles[at + item / 16 * PITCH + item % 16 / 8][item % 8 / 2];
    m[e] = item % 2 == 0 ? LOW_ITEM(pair) : HIGH_ITEM(pair);
  }
  return m;
}

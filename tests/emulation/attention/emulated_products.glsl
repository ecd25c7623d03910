// Products of emulated matrices for attention/products.glsl.
#pragma once

#define LOAD_A(m, at, pitch) m = loaded(at, pitch, false)
#define LOAD_B(m, at, pitch) m = loaded(at, pitch, true)
#define LOAD_B_TRANSPOSED(m, at, pitch) m = loaded(at, pitch, false)

float[8] loaded(uint at, uint pitch, bool transposed) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint row = transposed ? FRAGMENT_COLUMN(e) : FRAGMENT_ROW(e);
    uint column = transposed ? FRAGMENT_ROW(e) : FRAGMENT_COLUMN(e);
    uint pair = staged[at + row * pitch + column / 8][column % 8 / 2];
    m[e] = column % 2 == 0 ? LOW_ITEM(pair) : HIGH_ITEM(pair);
  }
  return m;
}

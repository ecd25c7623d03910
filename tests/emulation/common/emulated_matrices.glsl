// What common/matrix_units.glsl has of cooperative matrices, made of floats. Each
// lane has all items of A and B, and of C every SG-th four. Whole workgroups wait:
// a subgroup may be several of the device's.
#pragma once

#undef MATRIX_A
#undef MATRIX_B
#undef MATRIX_C
#undef ROW_MAJOR
#undef COLUMN_MAJOR
#define MATRIX_A float[MM * MK]
#define MATRIX_B float[MK * MN]
#define MATRIX_C float[ELEMENTS_C]
#define ROW_MAJOR false
#define COLUMN_MAJOR true
#define UNROLL [[dont_unroll]] // compiles faster
#define LANE (gl_LocalInvocationIndex % SG)
#define SUBGROUP (gl_LocalInvocationIndex / SG)
#define MATRIX_ZERO no_items()
#define BEGIN_SUM(y) y = MATRIX_ZERO;
#define HOLD_SUM(y)
#define SYNC_SUBGROUP barrier();
#define WAIT_SUBGROUP barrier();

float[ELEMENTS_C] no_items() {
  float y[ELEMENTS_C];
  [[dont_unroll]] for (uint e = 0; e < ELEMENTS_C; ++e) {
    y[e] = 0.0;
  }
  return y;
}

// The item that is a lane's element e of C.
#define ITEM_C(e) (((e) / 4 * SG + LANE) * 4 + (e) % 4)

// Items of 16 bits in a place of an array, and one of them.
uint items_in(uvec4 q) {
  return 8;
}
uint items_in(uint q) {
  return 2;
}
float half_item(uint pair, uint i) {
#if defined(T_IS_bf16) && !HALVES
  return uintBitsToFloat(i == 0 ? pair << 16 : pair & 0xffff0000u);
#else
  return f16_to_f32(uint16_t(i == 0 ? pair : pair >> 16));
#endif
}
float half_item(uvec4 q, uint i) {
  return half_item(q[i / 2], i % 2);
}

// `at` and `pitch` count places of `from`, as with coopMatLoad().
#define LOAD_ITEMS(m, COLUMNS, from, at, pitch, by_columns)                   \
  [[dont_unroll]] for (uint e_ = 0; e_ < m.length(); e_ += 8) {               \
    [[unroll]] for (uint f_ = 0; f_ < 8; ++f_) {                              \
      uint r_ = (e_ + f_) / (COLUMNS), c_ = (e_ + f_) % (COLUMNS);            \
      uint size_ = items_in(from[0]);                                         \
      uint i_ = (by_columns ? r_ : c_) +                                      \
          size_ * ((at) + (pitch) * (by_columns ? c_ : r_));                  \
      m[e_ + f_] = half_item(from[i_ / size_], i_ % size_);                   \
    }                                                                         \
  }
#define LOAD_A(m, from, at, pitch, layout)                                    \
  LOAD_ITEMS(m, MK, from, at, pitch, layout)
#define LOAD_B(m, from, at, pitch, layout)                                    \
  LOAD_ITEMS(m, MN, from, at, pitch, layout)

// C by rows, from and to floats; or to places of four, as what they are.
#define LOAD_C(m, from, at, pitch)                                            \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; ++e_) {                  \
    m[e_] = from[(at) + ITEM_C(e_) / MN * (pitch) + ITEM_C(e_) % MN];         \
  }
#define LOAD_ROWS(m, from, at)                                                \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; ++e_) {                  \
    m[e_] = from[(at) + ITEM_C(e_) / MN];                                     \
  }
#define STORE_C(m, to, at, pitch)                                             \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; ++e_) {                  \
    to[(at) + ITEM_C(e_) / MN * (pitch) + ITEM_C(e_) % MN] = m[e_];           \
  }
vec4 four_as(vec4 like, vec4 x) {
  return x;
}
uvec4 four_as(uvec4 like, vec4 x) {
  return floatBitsToUint(x);
}
#define STORE_C4(m, to, at, pitch)                                            \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; e_ += 4) {               \
    uint i_ = (at) + ITEM_C(e_) / MN * (pitch) + ITEM_C(e_) % MN / 4;         \
    to[i_] = four_as(                                                         \
        to[i_], vec4(m[e_], m[e_ + 1], m[e_ + 2], m[e_ + 3]));                \
  }

#define MULTIPLY_ADD(y, a, b)                                                 \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; ++e_) {                  \
    [[unroll]] for (uint k_ = 0; k_ < MK; ++k_) {                             \
      y[e_] += a[ITEM_C(e_) / MN * MK + k_] * b[k_ * MN + ITEM_C(e_) % MN];   \
    }                                                                         \
  }
#define MULTIPLY_ELEMENTS(y, by)                                              \
  [[dont_unroll]] for (uint e_ = 0; e_ < ELEMENTS_C; ++e_) {                  \
    y[e_] *= by[e_];                                                          \
  }

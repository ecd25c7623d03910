// Simdgroup matrices (MSL specification 6.7), written in MSL: text that
// precedes the header of a kernel that names them. Each thread of a SIMD-group
// holds two neighbours of a row; a product gets the others by shuffles, eight
// of a column and four pairs of a row. It is right on every GPU, and uses no
// matrix units.
#pragma once

namespace msl {

inline constexpr char simdgroup_matrices[] = R"(
struct simdgroup_place {
  uint row, column;
  simdgroup_place(uint lane)
      : row((lane & 16) >> 2 | (lane >> 1 & 3)),
        column((lane & 8) >> 1 | (lane & 1) << 1) {}
  static uint lane(uint row, uint column) {
    return (row & 4) << 2 | (row & 3) << 1 | (column & 4) << 1 | (column >> 1 & 1);
  }
};

template <typename T, int Rows, int Columns>
struct simdgroup_matrix {
  static_assert(Rows == 8 && Columns == 8, "simdgroup matrices have 8 x 8 items");
  vec<T, 2> pair;
  simdgroup_matrix() {}
  simdgroup_matrix(T value) : pair(value) {}
  thread vec<T, 2>& thread_elements() {
    return pair;
  }
};
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;

template <typename T, int Rows, int Columns>
simdgroup_matrix<T, Rows, Columns> make_filled_simdgroup_matrix(T value) {
  return simdgroup_matrix<T, Rows, Columns>(value);
}

template <typename D, typename A, typename B, typename C>
void simdgroup_multiply_accumulate(
    thread simdgroup_matrix<D, 8, 8>& d,
    simdgroup_matrix<A, 8, 8> a,
    simdgroup_matrix<B, 8, 8> b,
    simdgroup_matrix<C, 8, 8> c) {
  simdgroup_place at(simdgroup_lane());
  float2 left = float2(a.pair), right = float2(b.pair), sum = float2(c.pair);
  for (uint k = 0; k < 8; k += 2) {
    float2 x = simd_shuffle(left, simdgroup_place::lane(at.row, k));
    float2 y = simd_shuffle(right, simdgroup_place::lane(k, at.column));
    float2 z = simd_shuffle(right, simdgroup_place::lane(k + 1, at.column));
    sum = fma(float2(x.y), z, fma(float2(x.x), y, sum));
  }
  d.pair = vec<D, 2>(sum);
}

template <typename D, typename A, typename B>
void simdgroup_multiply(
    thread simdgroup_matrix<D, 8, 8>& d,
    simdgroup_matrix<A, 8, 8> a,
    simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, simdgroup_matrix<float, 8, 8>(0.0f));
}

#define SIMDGROUP_MEMORY(SPACE)                                                \
  template <typename T>                                                        \
  void simdgroup_load(                                                         \
      thread simdgroup_matrix<T, 8, 8>& m,                                     \
      const SPACE T* from,                                                     \
      ulong width = 8,                                                         \
      ulong2 origin = ulong2(0),                                               \
      bool transpose = false) {                                                \
    simdgroup_place at(simdgroup_lane());                                      \
    from += origin.y * width + origin.x;                                       \
    from += transpose ? at.column * width + at.row                             \
                      : at.row * width + at.column;                            \
    m.pair = vec<T, 2>(from[0], from[transpose ? width : 1]);                  \
  }                                                                            \
  template <typename T>                                                        \
  void simdgroup_store(                                                        \
      simdgroup_matrix<T, 8, 8> m,                                             \
      SPACE T* to,                                                             \
      ulong width = 8,                                                         \
      ulong2 origin = ulong2(0),                                               \
      bool transpose = false) {                                                \
    simdgroup_place at(simdgroup_lane());                                      \
    to += origin.y * width + origin.x;                                         \
    to += transpose ? at.column * width + at.row                               \
                    : at.row * width + at.column;                              \
    to[0] = m.pair.x;                                                          \
    to[transpose ? width : 1] = m.pair.y;                                      \
  }
SIMDGROUP_MEMORY(device)
SIMDGROUP_MEMORY(threadgroup)
)";

} // namespace msl

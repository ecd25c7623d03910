// The same by VK_NV_cooperative_matrix2: workgroup scope, tensor layouts. With
// QUANT b is 4-bit affine in groups of 128 along k, decoded while loading:
// codes eight a word, then per group a scale and a bias.
#ifdef BF16_EXT
#define Item bfloat16_t
#else
#define Item float16_t
#endif
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Items {
  Item v[];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Codes {
  uint v[];
};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Code {
  uint v;
};
layout(push_constant, scalar) uniform Push {
  Items a;
  Items b;
  Items y;
  uint m, n, k;
  uint pad;
  Items scales;
} A;

layout(local_size_x = WG) in;

#if QUANT
Item decode(
    const in Code code,
    const in uint32_t block[2],
    const in uint32_t at[2]) {
  uint group = block[0] * (A.k / 128) + block[1] / 16;
  uint q = (code.v >> (at[1] * 4)) & 15u;
  return Item(
      float(A.scales.v[2 * group]) * float(q) +
      float(A.scales.v[2 * group + 1]));
}
#endif

void main() {
  uint tiles_m = A.m / BM, tiles_n = A.n / BN;
  uint group = gl_WorkGroupID.x;
  uint band = group / (8 * tiles_n);
  uint band_rows = min(8, tiles_m - band * 8);
  uint in_band = group - band * 8 * tiles_n;
  uint row0 = (band * 8 + in_band % band_rows) * BM;
  uint col0 = in_band / band_rows * BN;

  // Tells the compiler that rows begin at multiples of 16 bytes.
  uint k = A.k & ~7u, n = A.n & ~7u;
  tensorLayoutNV<2> layout_a = createTensorLayoutNV(2);
  layout_a = setTensorLayoutDimensionNV(layout_a, A.m, k);
  layout_a = setTensorLayoutStrideNV(layout_a, k, 1);
  tensorLayoutNV<2> layout_b = createTensorLayoutNV(2);
#if QUANT
  layout_b = setTensorLayoutBlockSizeNV(layout_b, 1, 8);
#endif
  layout_b = setTensorLayoutDimensionNV(layout_b, n, k);
#if !QUANT
  layout_b = setTensorLayoutStrideNV(layout_b, k, 1);
#endif
  tensorLayoutNV<2> layout_y = createTensorLayoutNV(2);
  layout_y = setTensorLayoutDimensionNV(layout_y, A.m, n);
  layout_y = setTensorLayoutStrideNV(layout_y, n, 1);
  tensorViewNV<2, false, 1, 0> transposed = createTensorViewNV(2, false, 1, 0);

  coopmat<float, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator> acc =
      coopmat<float, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator>(0.0);
  [[dont_unroll]]
  for (uint k0 = 0; k0 < k; k0 += BK) {
    coopmat<Item, gl_ScopeWorkgroup, BM, BK, gl_MatrixUseA> x;
    coopmat<Item, gl_ScopeWorkgroup, BK, BN, gl_MatrixUseB> w;
    coopMatLoadTensorNV(
        x, A.a.v, 0, sliceTensorLayoutNV(layout_a, row0, BM, k0, BK));
#if QUANT
    Codes codes = Codes(uint64_t(A.b));
    coopMatLoadTensorNV(
        w, codes.v, 0, sliceTensorLayoutNV(layout_b, col0, BN, k0, BK),
        transposed, decode);
#else
    coopMatLoadTensorNV(
        w, A.b.v, 0, sliceTensorLayoutNV(layout_b, col0, BN, k0, BK),
        transposed);
#endif
    acc = coopMatMulAdd(x, w, acc);
  }
  coopmat<Item, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator> r =
      coopmat<Item, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator>(acc);
  coopMatStoreTensorNV(
      r, A.y.v, 0, sliceTensorLayoutNV(layout_y, row0, BM, col0, BN));
}

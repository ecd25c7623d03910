// Cooperative matrices of 16 x 16 items of T.
#ifndef ATTENTION_MATRICES_GLSL
#define ATTENTION_MATRICES_GLSL

#ifdef T_IS_bf16
#define Item bfloat16_t
#define ITEM_BITS f32_to_bf16
#else
#define Item float16_t
#define ITEM_BITS f32_to_f16
#endif

#define MATRIX_A coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_C                                                              \
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor

uint pack2(float a, float b) {
  return uint(ITEM_BITS(a)) | (uint(ITEM_BITS(b)) << 16);
}

// Sixteen bytes of row r, from item 8 * c on; zero from row `end` on.
uvec4 fetch(T_PTR x, int64_t pitch, uint r, uint c, uint end) {
  uvec4 y = uvec4(0);
  if (r < end) {
    int64_t at = int64_t(r) * pitch + int64_t(c * 8);
    y = Ptr_u32x4(uint64_t(x) + uint64_t(at * 2)).v[0];
  }
  return y;
}

#endif

// The items of kernels of two operands, by put(i, a, b) (common/elementwise.glsl).
#ifndef BINARY_ITEMS_GLSL
#define BINARY_ITEMS_GLSL

#if DENSE
void item(UIndex i) {
  put(i, load(A.a, i * A.a_step), load(A.b, i * A.b_step));
}
#else
ROW_OPERAND(a)
ROW_OPERAND(b)
void find_row(UIndex row) {
  FIND_ROW(a, row)
  FIND_ROW(b, row)
}
void item(UIndex i, uint c) {
  put(i, ROW_ITEM(a, c), ROW_ITEM(b, c));
}
#endif

#endif

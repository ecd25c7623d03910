// Strides in elements of (batch, head, row, item); items of q, k and v are
// contiguous.
#pragma once

#include "attention/operands.h"

BEGIN_INTERFACE

struct HeadStrides {
  int64_t batch, head, row;
};

// 32-bit strides, for argument blocks in push constants.
struct ShortStrides {
  int batch, head, row;
};

struct MaskStrides {
  int64_t batch, head, row, key;
};

#ifndef __cplusplus
int64_t head_offset(HeadStrides s, uint batch, uint head) {
  return int64_t(batch) * s.batch + int64_t(head) * s.head;
}
int64_t mask_offset(MaskStrides s, uint batch, uint head, uint row, uint key) {
  return int64_t(batch) * s.batch + int64_t(head) * s.head +
      int64_t(row) * s.row + int64_t(key) * s.key;
}
// Address of a head of operand p.
#define AT_HEAD(p, strides, batch, head) \
  MOVED(T, p, head_offset(strides, batch, head))
#endif

END_INTERFACE

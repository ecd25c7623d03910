// Matrix products of 16 x 16 x 16 (RDNA3 ISA and RDNA4 ISA, "Wave Matrix
// Multiply Accumulate"): D = A * B + C, EXEC ignored.
//
// gfx11: a lane l of the first 16 (repeated in each other 16) holds row l of A
// and column l of B, 16 items in 8 registers; register r of C and D has row
// (lanes / 16) * r + l / 16, column l % 16.
// gfx12: a lane holds the items of its 16-lane group g = l / 16 of the row or
// column, per = 256 / lanes of them; register r of C and D has row
// per * g + r, column l % 16.
#include "operands.h"
#include "table.h"

namespace rdna {
namespace {

constexpr u32 kSide = 16;

template <class T>
using Tile = T[kSide][kSide];

u32 result_row(const Wave& w, u32 reg, u32 lane) {
  u32 groups = w.lanes / kSide, per = kSide / groups;
  return w.gfx >= 12 ? per * (lane / kSide) + reg : groups * reg + lane / kSide;
}

// Item (n, k): lane n of a group, place k of its row or column; `size` bits.
u32 item(const Wave& w, u32 index, u32 n, u32 k, u32 size) {
  u32 lane = n;
  if (w.gfx >= 12) {
    u32 per = kSide * kSide / w.lanes;
    lane += kSide * (k / per);
    k %= per;
  }
  u32 bit = k * size;
  return w.v[index + bit / 32][lane] >> bit % 32 & ones(size);
}

// The accumulator's registers; 16-bit ones are alone in theirs on gfx11, at
// the half that op_sel bit 2 selects, and two in each on gfx12.
template <class F>
void each_result(const Wave& w, F f) {
  u32 count = kSide * kSide / w.lanes;
  for (u32 r = 0; r < count; ++r)
    for (u32 l = 0; l < w.lanes; ++l)
      f(result_row(w, r, l), l % kSide, r, l);
}

u32 accumulator(const Wave& w, const Operand& o, u32 reg, u32 lane) {
  return o.vector() ? w.v[o.index + reg][lane] : scalar(w, o);
}

template <auto Widen>
void read_factors(
    const Wave& w,
    const Instruction& i,
    Tile<float>& a,
    Tile<float>& b) {
  u32 first = i.operands[1].index, second = i.operands[2].index;
  for (u32 n = 0; n < kSide; ++n)
    for (u32 k = 0; k < kSide; ++k) {
      float x = Widen(u16(item(w, first, n, k, 16)));
      float y = Widen(u16(item(w, second, n, k, 16)));
      // Even items are the low halves, which neg_lo negates.
      u32 negate = k % 2 ? i.neg_hi : i.neg_lo;
      a[n][k] = negate & 1 ? -x : x;
      b[k][n] = negate & 2 ? -y : y;
    }
}

// neg_hi of C is its absolute value, neg_lo its negation.
float signed_accumulator(const Instruction& i, float c) {
  c = i.neg_hi & 4 ? std::fabs(c) : c;
  return i.neg_lo & 4 ? -c : c;
}

// One fma after another, k ascending; the documents leave the order and the
// rounding of the sum open.
void multiply(const Tile<float>& a, const Tile<float>& b, Tile<float>& c) {
  for (u32 m = 0; m < kSide; ++m)
    for (u32 k = 0; k < kSide; ++k)
      for (u32 n = 0; n < kSide; ++n)
        c[m][n] = std::fma(a[m][k], b[k][n], c[m][n]);
}

template <auto Widen>
void wmma_f32(Wave& w, const Instruction& i) {
  Tile<float> a, b, c;
  read_factors<Widen>(w, i, a, b);
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    float x = f32(accumulator(w, i.operands[3], r, l));
    c[row][column] = signed_accumulator(i, x);
  });
  multiply(a, b, c);
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    float x = c[row][column];
    w.v[i.operands[0].index + r][l] = x == x ? bits(x) : kNan;
  });
}

// Accumulators of 16 bits: rounded once, at the end.
template <auto Widen, auto Narrow>
void wmma_16(Wave& w, const Instruction& i) {
  Tile<float> a, b, c;
  read_factors<Widen>(w, i, a, b);
  auto place = [&](u32 r, u32 op_sel) {
    return w.gfx >= 12 ? r % 2 * 16 : op_sel ? 16 : 0;
  };
  auto reg = [&](u32 r) { return w.gfx >= 12 ? r / 2 : r; };
  const Operand& from = i.operands[3];
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    u32 x = from.vector()
        ? w.v[from.index + reg(r)][l] >> place(r, i.op_sel & 4)
        : from.value16;
    c[row][column] = signed_accumulator(i, Widen(u16(x)));
  });
  multiply(a, b, c);
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    u32& d = w.v[i.operands[0].index + reg(r)][l];
    u32 shift = place(r, i.op_sel & 4);
    d = (d & ~(0xffffu << shift)) | u32(Narrow(c[row][column])) << shift;
  });
}

u16 to_bf16(float x) {
  u32 b = bits(x);
  if (x != x)
    return u16(b >> 16 | 0x40);
  return u16((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

// Signed factors where neg_lo says so; clamp saturates.
template <u32 Size>
void wmma_i32(Wave& w, const Instruction& i) {
  Tile<i32> a, b;
  auto factor = [&](u32 operand, u32 n, u32 k) {
    u32 x = item(w, i.operands[1 + operand].index, n, k, Size);
    return i.neg_lo >> operand & 1 ? signed_field(i32(x), 0, Size) : i32(x);
  };
  for (u32 n = 0; n < kSide; ++n)
    for (u32 k = 0; k < kSide; ++k) {
      a[n][k] = factor(0, n, k);
      b[k][n] = factor(1, n, k);
    }
  Tile<i64> c;
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    i64 sum = i32(accumulator(w, i.operands[3], r, l));
    for (u32 k = 0; k < kSide; ++k)
      sum += a[row][k] * b[k][column];
    c[row][column] = i.clamp ? clamped<i32>(sum) : sum;
  });
  each_result(w, [&](u32 row, u32 column, u32 r, u32 l) {
    w.v[i.operands[0].index + r][l] = u32(c[row][column]);
  });
}

// clang-format off
constexpr Row rows[] = {
    {"v_wmma_f32_16x16x16_f16", wmma_f32<f16>, kPacked},
    {"v_wmma_f32_16x16x16_bf16", wmma_f32<bf16>, kPacked},
    {"v_wmma_f16_16x16x16_f16", wmma_16<f16, half>, kPacked},
    {"v_wmma_bf16_16x16x16_bf16", wmma_16<bf16, to_bf16>, kPacked},
    {"v_wmma_i32_16x16x16_iu8", wmma_i32<8>, kPacked | kClamp},
    {"v_wmma_i32_16x16x16_iu4", wmma_i32<4>, kPacked | kClamp},
};
// clang-format on

} // namespace

Table matrix_table() {
  return rows;
}

} // namespace rdna

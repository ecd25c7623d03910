// Reading and writing operands: a scalar, or a vector register's lanes.
#pragma once

#include "arithmetic.h"
#include "instruction.h"
#include "wave.h"

namespace rdna {

template <class T>
struct Lanes {
  alignas(64) T x[kMaxLanes];
  T& operator[](size_t lane) {
    return x[lane];
  }
};

// f(lane) for all lanes of the wave, active or not: loops of a known length,
// which the compiler turns into vector code.
template <class F>
inline __attribute__((always_inline)) void each(const Wave& w, F f) {
  for (size_t base = 0; base < w.lanes; base += 32) {
#pragma GCC ivdep
    for (size_t k = 0; k < 32; ++k)
      f(base + k);
  }
}
template <class F>
inline void each_active(const Wave& w, F f) {
  for (u64 left = w.exec(); left; left &= left - 1)
    f(u32(std::countr_zero(left)));
}

// Scalars ---------------------------------------------------------------------

inline u32 scalar(const Wave& w, const Operand& o) {
  if (o.kind == Operand::Kind::Constant)
    return o.value;
  switch (o.index) {
    case kNull:
      return 0;
    case kScc:
      return w.scc;
    case kVccz:
      return w.vcc() == 0;
    case kExecz:
      return w.exec() == 0;
  }
  return w.s[o.index];
}
inline u64 scalar64(const Wave& w, const Operand& o) {
  if (o.kind == Operand::Kind::Constant)
    return o.value64;
  return o.index == kNull ? 0 : w.pair(o.index);
}
// One bit per lane: a register in wave32, a pair in wave64.
inline u64 scalar_mask(const Wave& w, const Operand& o) {
  return w.lanes == 64 ? scalar64(w, o) : scalar(w, o);
}
inline float scalar_float(const Wave& w, const Operand& o) {
  u32 x = scalar(w, o);
  if (o.absolute)
    x &= ~kSign;
  return f32(o.negate ? x ^ kSign : x);
}

inline void set_scalar(Wave& w, const Operand& o, u32 x) {
  if (o.index == kNull)
    return;
  w.s[o.index] = x;
  if (o.index == kExec || o.index == kExec + 1)
    w.exec_changed();
}
inline void set_scalar64(Wave& w, const Operand& o, u64 x) {
  if (o.index == kNull)
    return;
  w.s[o.index] = u32(x);
  w.s[o.index + 1] = u32(x >> 32);
  if (o.index == kExec)
    w.exec_changed();
}
inline void set_scalar_mask(Wave& w, const Operand& o, u64 x) {
  if (w.lanes == 64)
    set_scalar64(w, o, x);
  else
    set_scalar(w, o, u32(x));
}

// Lanes of sources ------------------------------------------------------------

// Lane that DPP reads for a lane, -1 if it lies outside of the row.
int dpp_source(const Instruction& i, u32 lane);
// Whether DPP lets the lane be written.
bool dpp_writes(const Wave& w, const Instruction& i, u32 lane);
const u32* dpp_read(const Wave& w, const Instruction& i, u32 index, u32* room);

// The 32 bits of operand k: the register itself, or `room` filled. DPP applies
// to the first source, which `first` says it is.
inline const u32* read(
    const Wave& w,
    const Instruction& i,
    const Operand& o,
    Lanes<u32>& room,
    bool first = false) {
  if (o.vector()) {
    if (first && i.dpp != Dpp::None)
      return dpp_read(w, i, o.index, room.x);
    return w.v[o.index];
  }
  u32 x = scalar(w, o);
  each(w, [&](size_t l) { room[l] = x; });
  return room.x;
}
// The same with the signs of floats.
inline const u32* read_float(
    const Wave& w,
    const Instruction& i,
    const Operand& o,
    Lanes<u32>& room,
    bool first = false) {
  const u32* p = read(w, i, o, room, first);
  if (!o.negate && !o.absolute)
    return p;
  u32 keep = o.absolute ? ~kSign : ~0u, flip = o.negate ? kSign : 0;
  each(w, [&](size_t l) { room[l] = (p[l] & keep) ^ flip; });
  return room.x;
}
// The 16 bits of source k (from 0), with the signs of floats.
void read16(
    const Wave& w,
    const Instruction& i,
    const Operand& o,
    u32 k,
    Lanes<u16>& out);
inline void read64(const Wave& w, const Operand& o, Lanes<u64>& out) {
  if (o.vector()) {
    const u32 *low = w.v[o.index], *high = w.v[o.index + 1];
    each(w, [&](size_t l) { out[l] = low[l] | u64(high[l]) << 32; });
  } else {
    u64 x = scalar64(w, o);
    each(w, [&](size_t l) { out[l] = x; });
  }
}

// Lanes of results ------------------------------------------------------------

// What a lane writes to a register that both halves of the wave share.
inline void write_shared(Wave& w, u32 index, u32 lane, u32 x) {
  w.v[index][lane] = w.v[index][lane ^ 32] = x;
}
inline void write(Wave& w, u32 index, const u32* r) {
  u32* d = w.v[index];
  if (index >= w.first_shared && index < kVectorRegisters)
    each_active(w, [&](u32 l) { write_shared(w, index, l, r[l]); });
  else if (w.all_active)
    each(w, [&](size_t l) { d[l] = r[l]; });
  else
    each(
        w, [&](u32 l) { d[l] = (r[l] & w.active[l]) | (d[l] & ~w.active[l]); });
}
// As DPP and EXEC allow.
inline void write(Wave& w, const Instruction& i, Lanes<u32>& r) {
  u32 index = i.operands[0].index;
  if (i.dpp == Dpp::None || i.dpp == Dpp::Lanes8)
    return write(w, index, r.x);
  each_active(w, [&](u32 l) {
    if (!dpp_writes(w, i, l))
      return;
    if (index >= w.first_shared)
      write_shared(w, index, l, r[l]);
    else
      w.v[index][l] = r[l];
  });
}
inline void write64(Wave& w, u32 index, Lanes<u64>& r) {
  Lanes<u32> low, high;
  each(w, [&](size_t l) { low[l] = u32(r[l]); });
  each(w, [&](size_t l) { high[l] = u32(r[l] >> 32); });
  write(w, index, low.x);
  write(w, index + 1, high.x);
}
// One half of the result's register; the other stays, or is cleared if `whole`.
void write16(
    Wave& w,
    const Instruction& i,
    bool high,
    Lanes<u16>& r,
    bool whole = false);

// Clamp and output modifier of a float result.
inline float modified(const Instruction& i, float x) {
  if (i.omod == Omod::Times2)
    x *= 2;
  else if (i.omod == Omod::Times4)
    x *= 4;
  else if (i.omod == Omod::Half)
    x *= 0.5f;
  if (i.clamp)
    x = x > 0 ? (x < 1 ? x : 1) : 0;
  return x;
}
inline bool modifies(const Instruction& i) {
  return i.clamp || i.omod != Omod::None;
}

} // namespace rdna

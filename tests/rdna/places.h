// Where the lanes of a memory instruction read or write.
#pragma once

#include <cstring>

#include "operands.h"

namespace rdna {

struct Places {
  Lanes<u64> address;
  u8* host[kMaxLanes];
};

// Addresses of the active lanes of global_*: a pair of vector registers, or a
// scalar pair and a vector register of unsigned bytes; and the offset.
inline void global_addresses(
    const Wave& w,
    const Instruction& i,
    const Operand& vector,
    const Operand& base,
    Places& places) {
  const u32* low = w.v[vector.index];
  if (base.scalar() && base.index != kNull) {
    u64 from = w.pair(base.index) + i64(i.offset);
    each(w, [&](size_t l) { places.address[l] = from + low[l]; });
  } else {
    const u32* high = w.v[vector.index + 1];
    i64 offset = i.offset;
    each(w, [&](size_t l) {
      places.address[l] = (low[l] | u64(high[l]) << 32) + offset;
    });
  }
}

// Byte addresses in LDS.
inline void shared_addresses(
    const Wave& w,
    const Operand& vector,
    i32 offset,
    Places& places) {
  const u32* at = w.v[vector.index];
  each(w, [&](size_t l) { places.address[l] = u32(at[l] + offset); });
}

inline void resolve(
    const Wave& w,
    const Instruction& i,
    Space space,
    Act act,
    u32 bytes,
    Places& places) {
  u64 lanes = w.exec();
  if (lanes)
    w.memory->resolve(
        {w, i, space, act, bytes, lanes, places.address.x}, places.host);
}

// Moves N registers a lane.
template <int N>
void load_registers(Wave& w, u32 index, const Places& places) {
  each_active(w, [&](u32 l) {
    u32 x[N];
    std::memcpy(x, places.host[l], sizeof x);
    for (int k = 0; k < N; ++k)
      w.v[index + k][l] = x[k];
  });
}
template <int N>
void store_registers(const Wave& w, u32 index, const Places& places) {
  each_active(w, [&](u32 l) {
    u32 x[N];
    for (int k = 0; k < N; ++k)
      x[k] = w.v[index + k][l];
    std::memcpy(places.host[l], x, sizeof x);
  });
}

// A byte or a half: the whole register, extended as T is, or one half of it.
enum class Into { Whole, Low, High };

template <class T, Into Where>
void load_part(Wave& w, u32 index, const Places& places) {
  each_active(w, [&](u32 l) {
    T x;
    std::memcpy(&x, places.host[l], sizeof x);
    u32 extended = u32(i32(x));
    u32& d = w.v[index][l];
    if (Where == Into::Whole)
      d = extended;
    else if (Where == Into::Low)
      d = (d & 0xffff0000) | (extended & 0xffff);
    else
      d = (d & 0xffff) | extended << 16;
  });
}
template <class T, u32 Shift>
void store_part(const Wave& w, u32 index, const Places& places) {
  each_active(w, [&](u32 l) {
    T x = T(w.v[index][l] >> Shift);
    std::memcpy(places.host[l], &x, sizeof x);
  });
}

} // namespace rdna

// Atomics of global memory and LDS (RDNA3 ISA, "FLAT, Scratch and Global",
// "LDS & GDS"). Lanes follow one another in ascending order.
#include "places.h"
#include "table.h"

namespace rdna {
namespace {

template <class T>
T data(const Wave& w, u32 index, u32 lane) {
  u64 x = w.v[index][lane];
  if (sizeof(T) == 8)
    x |= u64(w.v[index + 1][lane]) << 32;
  return T(x);
}

// F(old, source, second source). `result`: register of the old values, or -1.
template <class T, auto F>
void apply(Wave& w, Places& places, int result, u32 source, u32 second) {
  each_active(w, [&](u32 l) {
    T old;
    std::memcpy(&old, places.host[l], sizeof old);
    T next = F(old, data<T>(w, source, l), data<T>(w, second, l));
    std::memcpy(places.host[l], &next, sizeof next);
    if (result < 0)
      return;
    w.v[result][l] = u32(old);
    if (sizeof(T) == 8)
      w.v[result + 1][l] = u32(u64(old) >> 32);
  });
}

// [result,] address, data, base. A second source follows the first.
template <class T, auto F>
void global_atomic(Wave& w, const Instruction& i) {
  u32 at = i.count - 3;
  Places places;
  global_addresses(w, i, i.operands[at], i.operands[at + 2], places);
  resolve(w, i, Space::Global, Act::Atomic, sizeof(T), places);
  u32 source = i.operands[at + 1].index;
  u32 second = std::min<u32>(source + sizeof(T) / 4, kVectorRegisters - 2);
  apply<T, F>(w, places, at ? i.operands[0].index : -1, source, second);
}
// [result,] address, data [, second data].
template <class T, auto F, bool Returns>
void ds_atomic(Wave& w, const Instruction& i) {
  u32 at = Returns;
  Places places;
  shared_addresses(w, i.operands[at], i.offset, places);
  resolve(w, i, Space::Shared, Act::Atomic, sizeof(T), places);
  u32 source = i.operands[at + 1].index;
  u32 second = i.count > at + 2 ? i.operands[at + 2].index : source;
  apply<T, F>(w, places, Returns ? i.operands[0].index : -1, source, second);
}

// One addition of Sign times the number of active lanes, at M0 + offset; all
// active lanes get the old value.
template <i32 Sign>
void ds_count(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  if (!exec)
    return;
  u32 first = std::countr_zero(exec);
  Places places;
  places.address[first] = (w.s[kM0] & 0xffff) + i.offset;
  w.memory->resolve(
      {w, i, Space::Shared, Act::Atomic, 4, u64(1) << first, places.address.x},
      places.host);
  u32 old;
  std::memcpy(&old, places.host[first], sizeof old);
  u32 next = old + Sign * std::popcount(exec);
  std::memcpy(places.host[first], &next, sizeof next);
  each_active(w, [&](u32 l) { w.v[i.operands[0].index][l] = old; });
}

// clang-format off
// o: the old value, x: the source, c: the second source.
#define FUNCTION(T, e) \
  [](T o [[maybe_unused]], T x, T c [[maybe_unused]]) -> T { return (e); }
#define GLOBAL(name, T, e) \
  {"global_atomic_" name, global_atomic<T, FUNCTION(T, e)>, kPlain}
#define DS(name, T, e) \
  {"ds_" name, ds_atomic<T, FUNCTION(T, e), false>, kPlain}
#define DS_RETURN(name, T, e) \
  {"ds_" name, ds_atomic<T, FUNCTION(T, e), true>, kPlain}
#define EVERYWHERE(name, suffix, T, e) \
  GLOBAL(name "_" suffix, T, e), DS(name "_" suffix, T, e), \
  DS_RETURN(name "_rtn_" suffix, T, e)

constexpr Row rows[] = {
    EVERYWHERE("add", "u32", u32, o + x),
    EVERYWHERE("sub", "u32", u32, o - x),
    EVERYWHERE("min", "u32", u32, std::min(o, x)),
    EVERYWHERE("max", "u32", u32, std::max(o, x)),
    EVERYWHERE("min", "i32", i32, std::min(o, x)),
    EVERYWHERE("max", "i32", i32, std::max(o, x)),
    EVERYWHERE("and", "b32", u32, o & x),
    EVERYWHERE("or", "b32", u32, o | x),
    EVERYWHERE("xor", "b32", u32, o ^ x),
    EVERYWHERE("inc", "u32", u32, o >= x ? 0 : o + 1),
    EVERYWHERE("dec", "u32", u32, o == 0 || o > x ? x : o - 1),
    EVERYWHERE("add", "f32", u32, bits(f32(o) + f32(x))),
    EVERYWHERE("min", "f32", u32, bits(min_number(f32(o), f32(x)))),
    EVERYWHERE("max", "f32", u32, bits(max_number(f32(o), f32(x)))),
    EVERYWHERE("add", "u64", u64, o + x),
    EVERYWHERE("sub", "u64", u64, o - x),
    EVERYWHERE("min", "u64", u64, std::min(o, x)),
    EVERYWHERE("max", "u64", u64, std::max(o, x)),
    EVERYWHERE("min", "i64", i64, std::min(o, x)),
    EVERYWHERE("max", "i64", i64, std::max(o, x)),
    EVERYWHERE("and", "b64", u64, o & x),
    EVERYWHERE("or", "b64", u64, o | x),
    EVERYWHERE("xor", "b64", u64, o ^ x),
    {"ds_append", ds_count<1>, kPlain},
    {"ds_consume", ds_count<-1>, kPlain},
    GLOBAL("swap_b32", u32, x),
    GLOBAL("swap_b64", u64, x),
    GLOBAL("cmpswap_b32", u32, o == c ? x : o),
    GLOBAL("cmpswap_b64", u64, o == c ? x : o),
    DS_RETURN("storexchg_rtn_b32", u32, x),
    DS_RETURN("storexchg_rtn_b64", u64, x),
    DS("cmpstore_b32", u32, o == c ? x : o),
    DS("cmpstore_b64", u64, o == c ? x : o),
    DS_RETURN("cmpstore_rtn_b32", u32, o == c ? x : o),
    DS_RETURN("cmpstore_rtn_b64", u64, o == c ? x : o),
    // Before gfx11 the sources are the other way round.
    DS("cmpst_b32", u32, o == x ? c : o),
    DS_RETURN("cmpst_rtn_b32", u32, o == x ? c : o),
};
// clang-format on

} // namespace

Table atomic_table() {
  return rows;
}

} // namespace rdna

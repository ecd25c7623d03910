// Loads and stores of global memory, by lanes and by scalars, and of scratch
// memory (RDNA3 ISA, "FLAT, Scratch and Global", "SMEM").
#include "places.h"
#include "table.h"

namespace rdna {
namespace {

// Loads: result, address, base. Stores: address, data, base.
template <int N>
void global_load(Wave& w, const Instruction& i) {
  Places places;
  global_addresses(w, i, i.operands[1], i.operands[2], places);
  resolve(w, i, Space::Global, Act::Load, 4 * N, places);
  load_registers<N>(w, i.operands[0].index, places);
}
template <int N>
void global_store(Wave& w, const Instruction& i) {
  Places places;
  global_addresses(w, i, i.operands[0], i.operands[2], places);
  resolve(w, i, Space::Global, Act::Store, 4 * N, places);
  store_registers<N>(w, i.operands[1].index, places);
}
template <class T, Into Where>
void global_load_part(Wave& w, const Instruction& i) {
  Places places;
  global_addresses(w, i, i.operands[1], i.operands[2], places);
  resolve(w, i, Space::Global, Act::Load, sizeof(T), places);
  // As 16 bits of true16 code, the half is in the operand's name.
  if (Where == Into::Low && i.operands[0].high)
    load_part<T, Into::High>(w, i.operands[0].index, places);
  else
    load_part<T, Where>(w, i.operands[0].index, places);
}
template <class T, u32 Shift>
void global_store_part(Wave& w, const Instruction& i) {
  Places places;
  global_addresses(w, i, i.operands[0], i.operands[2], places);
  resolve(w, i, Space::Global, Act::Store, sizeof(T), places);
  if (i.operands[1].high)
    store_part<T, 16>(w, i.operands[1].index, places);
  else
    store_part<T, Shift>(w, i.operands[1].index, places);
}

// Scratch: a lane's own bytes, which no other reads.
void scratch_places(
    Wave& w,
    const Instruction& i,
    const Operand& vector,
    const Operand& base,
    u32 bytes,
    Places& places) {
  u32 from = (base.scalar() ? scalar(w, base) : 0) + u32(i.offset);
  each_active(w, [&](u32 l) {
    u64 at = u32(from + (vector.vector() ? w.v[vector.index][l] : 0));
    if (at + bytes > w.scratch_bytes)
      throw Fault(
          "scratch byte " + std::to_string(at) + " of " +
          std::to_string(w.scratch_bytes) + ", lane " + std::to_string(l));
    places.host[l] = w.scratch.data() + size_t(l) * w.scratch_bytes + at;
  });
}
template <int N>
void scratch_load(Wave& w, const Instruction& i) {
  Places places;
  scratch_places(w, i, i.operands[1], i.operands[2], 4 * N, places);
  load_registers<N>(w, i.operands[0].index, places);
}
template <int N>
void scratch_store(Wave& w, const Instruction& i) {
  Places places;
  scratch_places(w, i, i.operands[0], i.operands[2], 4 * N, places);
  store_registers<N>(w, i.operands[1].index, places);
}
template <class T, Into Where>
void scratch_load_part(Wave& w, const Instruction& i) {
  Places places;
  scratch_places(w, i, i.operands[1], i.operands[2], sizeof(T), places);
  load_part<T, Where>(w, i.operands[0].index, places);
}
template <class T, u32 Shift>
void scratch_store_part(Wave& w, const Instruction& i) {
  Places places;
  scratch_places(w, i, i.operands[0], i.operands[2], sizeof(T), places);
  store_part<T, Shift>(w, i.operands[1].index, places);
}

// Scalar loads: a pair, an offset in a register or a constant, and the offset.
const u8* scalar_place(Wave& w, const Instruction& i, u32 bytes) {
  Places places;
  u64 address = scalar64(w, i.operands[1]) + i64(i.offset);
  const Operand& offset = i.operands[2];
  if (offset.scalar())
    address += scalar(w, offset);
  else if (offset.kind == Operand::Kind::Constant)
    address += i64(i32(offset.value));
  if (bytes >= 4)
    address &= ~u64(3);
  places.address[0] = address;
  w.memory->resolve(
      {w, i, Space::Scalar, Act::Load, bytes, 1, places.address.x},
      places.host);
  return places.host[0];
}
template <int N>
void s_load(Wave& w, const Instruction& i) {
  std::memcpy(w.s + i.operands[0].index, scalar_place(w, i, 4 * N), 4 * N);
}
template <class T>
void s_load_part(Wave& w, const Instruction& i) {
  T x;
  std::memcpy(&x, scalar_place(w, i, sizeof x), sizeof x);
  set_scalar(w, i.operands[0], u32(i32(x)));
}

// clang-format off
#define REGISTERS(prefix, function) \
  {prefix "_b32", function<1>, kPlain}, {prefix "_b64", function<2>, kPlain}, \
  {prefix "_b96", function<3>, kPlain}, \
  {prefix "_b128", function<4>, kPlain}
#define LOAD_PARTS(prefix, function) \
  {prefix "_u8", function<u8, Into::Whole>, kPlain}, \
  {prefix "_i8", function<i8, Into::Whole>, kPlain}, \
  {prefix "_u16", function<u16, Into::Whole>, kPlain}, \
  {prefix "_i16", function<i16, Into::Whole>, kPlain}, \
  {prefix "_d16_u8", function<u8, Into::Low>, kPlain}, \
  {prefix "_d16_i8", function<i8, Into::Low>, kPlain}, \
  {prefix "_d16_b16", function<u16, Into::Low>, kPlain}, \
  {prefix "_d16_hi_u8", function<u8, Into::High>, kPlain}, \
  {prefix "_d16_hi_i8", function<i8, Into::High>, kPlain}, \
  {prefix "_d16_hi_b16", function<u16, Into::High>, kPlain}
#define STORE_PARTS(prefix, function) \
  {prefix "_b8", function<u8, 0>, kPlain}, \
  {prefix "_b16", function<u16, 0>, kPlain}, \
  {prefix "_d16_hi_b8", function<u8, 16>, kPlain}, \
  {prefix "_d16_hi_b16", function<u16, 16>, kPlain}

constexpr Row rows[] = {
    REGISTERS("global_load", global_load),
    REGISTERS("global_store", global_store),
    LOAD_PARTS("global_load", global_load_part),
    STORE_PARTS("global_store", global_store_part),
    REGISTERS("scratch_load", scratch_load),
    REGISTERS("scratch_store", scratch_store),
    LOAD_PARTS("scratch_load", scratch_load_part),
    STORE_PARTS("scratch_store", scratch_store_part),
    {"s_load_b32", s_load<1>, kPlain},
    {"s_load_b64", s_load<2>, kPlain},
    {"s_load_b96", s_load<3>, kPlain},
    {"s_load_b128", s_load<4>, kPlain},
    {"s_load_b256", s_load<8>, kPlain},
    {"s_load_b512", s_load<16>, kPlain},
    {"s_load_u8", s_load_part<u8>, kPlain},
    {"s_load_i8", s_load_part<i8>, kPlain},
    {"s_load_u16", s_load_part<u16>, kPlain},
    {"s_load_i16", s_load_part<i16>, kPlain},
};
// clang-format on

} // namespace

Table global_table() {
  return rows;
}

} // namespace rdna

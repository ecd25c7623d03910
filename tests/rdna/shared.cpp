// Loads and stores of LDS (RDNA3 ISA, "LDS & GDS").
#include "places.h"
#include "table.h"

namespace rdna {
namespace {

// Loads: result, address. Stores: address, data, second data.
template <int N>
void ds_load(Wave& w, const Instruction& i) {
  Places places;
  shared_addresses(w, i.operands[1], i.offset, places);
  resolve(w, i, Space::Shared, Act::Load, 4 * N, places);
  load_registers<N>(w, i.operands[0].index, places);
}
template <int N>
void ds_store(Wave& w, const Instruction& i) {
  Places places;
  shared_addresses(w, i.operands[0], i.offset, places);
  resolve(w, i, Space::Shared, Act::Store, 4 * N, places);
  store_registers<N>(w, i.operands[1].index, places);
}
template <class T, Into Where>
void ds_load_part(Wave& w, const Instruction& i) {
  Places places;
  shared_addresses(w, i.operands[1], i.offset, places);
  resolve(w, i, Space::Shared, Act::Load, sizeof(T), places);
  load_part<T, Where>(w, i.operands[0].index, places);
}
template <class T, u32 Shift>
void ds_store_part(Wave& w, const Instruction& i) {
  Places places;
  shared_addresses(w, i.operands[0], i.offset, places);
  resolve(w, i, Space::Shared, Act::Store, sizeof(T), places);
  if (i.operands[1].high)
    store_part<T, 16>(w, i.operands[1].index, places);
  else
    store_part<T, Shift>(w, i.operands[1].index, places);
}

// Two items of N registers, at offsets in units of Scale bytes. The result may
// be the address, so both addresses are read first.
template <int N, i32 Scale>
void ds_load_2addr(Wave& w, const Instruction& i) {
  Places first, second;
  shared_addresses(w, i.operands[1], i.offset0 * Scale, first);
  shared_addresses(w, i.operands[1], i.offset1 * Scale, second);
  resolve(w, i, Space::Shared, Act::Load, 4 * N, first);
  resolve(w, i, Space::Shared, Act::Load, 4 * N, second);
  load_registers<N>(w, i.operands[0].index, first);
  load_registers<N>(w, i.operands[0].index + N, second);
}
template <int N, i32 Scale>
void ds_store_2addr(Wave& w, const Instruction& i) {
  Places first, second;
  shared_addresses(w, i.operands[0], i.offset0 * Scale, first);
  shared_addresses(w, i.operands[0], i.offset1 * Scale, second);
  resolve(w, i, Space::Shared, Act::Store, 4 * N, first);
  resolve(w, i, Space::Shared, Act::Store, 4 * N, second);
  store_registers<N>(w, i.operands[1].index, first);
  store_registers<N>(w, i.operands[2].index, second);
}

// clang-format off
constexpr Row rows[] = {
    {"ds_load_b32", ds_load<1>, kPlain},
    {"ds_load_b64", ds_load<2>, kPlain},
    {"ds_load_b96", ds_load<3>, kPlain},
    {"ds_load_b128", ds_load<4>, kPlain},
    {"ds_store_b32", ds_store<1>, kPlain},
    {"ds_store_b64", ds_store<2>, kPlain},
    {"ds_store_b96", ds_store<3>, kPlain},
    {"ds_store_b128", ds_store<4>, kPlain},
    {"ds_load_u8", ds_load_part<u8, Into::Whole>, kPlain},
    {"ds_load_i8", ds_load_part<i8, Into::Whole>, kPlain},
    {"ds_load_u16", ds_load_part<u16, Into::Whole>, kPlain},
    {"ds_load_i16", ds_load_part<i16, Into::Whole>, kPlain},
    {"ds_load_u8_d16", ds_load_part<u8, Into::Low>, kPlain},
    {"ds_load_u8_d16_hi", ds_load_part<u8, Into::High>, kPlain},
    {"ds_load_i8_d16", ds_load_part<i8, Into::Low>, kPlain},
    {"ds_load_i8_d16_hi", ds_load_part<i8, Into::High>, kPlain},
    {"ds_load_u16_d16", ds_load_part<u16, Into::Low>, kPlain},
    {"ds_load_u16_d16_hi", ds_load_part<u16, Into::High>, kPlain},
    {"ds_store_b8", ds_store_part<u8, 0>, kPlain},
    {"ds_store_b16", ds_store_part<u16, 0>, kPlain},
    {"ds_store_b8_d16_hi", ds_store_part<u8, 16>, kPlain},
    {"ds_store_b16_d16_hi", ds_store_part<u16, 16>, kPlain},
    {"ds_load_2addr_b32", ds_load_2addr<1, 4>, kPlain},
    {"ds_load_2addr_b64", ds_load_2addr<2, 8>, kPlain},
    {"ds_load_2addr_stride64_b32", ds_load_2addr<1, 256>, kPlain},
    {"ds_load_2addr_stride64_b64", ds_load_2addr<2, 512>, kPlain},
    {"ds_store_2addr_b32", ds_store_2addr<1, 4>, kPlain},
    {"ds_store_2addr_b64", ds_store_2addr<2, 8>, kPlain},
    {"ds_store_2addr_stride64_b32", ds_store_2addr<1, 256>, kPlain},
    {"ds_store_2addr_stride64_b64", ds_store_2addr<2, 512>, kPlain},
};
// clang-format on

} // namespace

Table shared_table() {
  return rows;
}

} // namespace rdna

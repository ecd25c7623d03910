// Instructions that move values between lanes (RDNA3 ISA, "DPP", "VOP3 &
// VOP3SD", "LDS & GDS": the last for ds_bpermute and ds_swizzle, which use no
// memory), and the reading and writing of operands that is not inline.
#include "operands.h"
#include "table.h"

namespace rdna {

int dpp_source(const Instruction& i, u32 lane) {
  int row = int(lane & ~15u), at = int(lane & 15), n = i.select[0];
  int l = int(lane);
  switch (i.dpp) {
    case Dpp::None:
      return l;
    case Dpp::QuadPerm:
      return (l & ~3) | i.select[l & 3];
    case Dpp::RowShl:
      return at + n < 16 ? l + n : -1;
    case Dpp::RowShr:
      return at >= n ? l - n : -1;
    case Dpp::RowRor:
      return row + ((at - n) & 15);
    case Dpp::RowMirror:
      return row + 15 - at;
    case Dpp::RowHalfMirror:
      return l ^ 7;
    case Dpp::RowShare:
      return row + n;
    case Dpp::RowXmask:
      return row + (at ^ n);
    case Dpp::Lanes8:
      return (l & ~7) | i.select[l & 7];
    case Dpp::WaveShl:
      return l < 63 ? l + 1 : -1;
    case Dpp::WaveRol:
      return (l + 1) & 63;
    case Dpp::WaveShr:
      return l - 1;
    case Dpp::WaveRor:
      return (l - 1) & 63;
    case Dpp::RowBcast15:
      return row - 1;
    case Dpp::RowBcast31:
      return l < 32 ? -1 : 31;
  }
  return -1;
}

// A lane whose source is outside of the row or inactive reads 0 ...
const u32* dpp_read(const Wave& w, const Instruction& i, u32 index, u32* room) {
  u64 exec = w.exec();
  for (u32 l = 0; l < w.lanes; ++l) {
    int from = dpp_source(i, l);
    bool valid = from >= 0 && (i.fetch_inactive || (exec >> from & 1));
    room[l] = valid ? w.v[index][from] : 0;
  }
  return room;
}

// ... and is written only if BOUND_CTRL says so.
bool dpp_writes(const Wave& w, const Instruction& i, u32 lane) {
  if (!(i.row_mask >> (lane >> 4) & 1) || !(i.bank_mask >> (lane >> 2 & 3) & 1))
    return false;
  if (i.bound_ctrl)
    return true;
  int from = dpp_source(i, lane);
  return from >= 0 && (i.fetch_inactive || (w.exec() >> from & 1));
}

void read16(
    const Wave& w,
    const Instruction& i,
    const Operand& o,
    u32 k,
    Lanes<u16>& out) {
  u32 shift = o.high || (i.op_sel >> k & 1) ? 16 : 0;
  if (o.vector()) {
    Lanes<u32> room;
    const u32* p = read(w, i, o, room, k == 0);
    each(w, [&](size_t l) { out[l] = u16(p[l] >> shift); });
  } else {
    bool constant = o.kind == Operand::Kind::Constant;
    u16 x = constant ? o.value16 : u16(scalar(w, o) >> shift);
    each(w, [&](size_t l) { out[l] = x; });
  }
  if (o.negate || o.absolute) {
    u16 keep = o.absolute ? 0x7fff : 0xffff, flip = o.negate ? 0x8000 : 0;
    each(w, [&](size_t l) { out[l] = (out[l] & keep) ^ flip; });
  }
}

void write16(
    Wave& w,
    const Instruction& i,
    bool high,
    Lanes<u16>& r,
    bool whole) {
  u32* d = w.v[i.operands[0].index];
  Lanes<u32> merged;
  if (whole)
    each(w, [&](size_t l) { merged[l] = r[l]; });
  else if (high)
    each(w, [&](size_t l) { merged[l] = (d[l] & 0xffff) | u32(r[l]) << 16; });
  else
    each(w, [&](size_t l) { merged[l] = (d[l] & 0xffff0000) | r[l]; });
  write(w, i, merged);
}

namespace {

u32 any_lane(const Wave& w, const Operand& o, u32 lane) {
  return o.vector() ? w.v[o.index][lane] : scalar(w, o);
}

// With no active lane, lane 0.
void v_readfirstlane_b32(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  u32 lane = exec ? std::countr_zero(exec) : 0;
  set_scalar(w, i.operands[0], any_lane(w, i.operands[1], lane));
}
// EXEC does not matter to the next two.
void v_readlane_b32(Wave& w, const Instruction& i) {
  u32 lane = scalar(w, i.operands[2]) & (w.lanes - 1);
  set_scalar(w, i.operands[0], any_lane(w, i.operands[1], lane));
}
void v_writelane_b32(Wave& w, const Instruction& i) {
  u32 lane = scalar(w, i.operands[2]) & (w.lanes - 1);
  w.v[i.operands[0].index][lane] = scalar(w, i.operands[1]);
}

// Bits of S0 below the lane, of lanes 0 to 31 or 32 to 63, and S1.
template <u32 First>
void count_below(Wave& w, const Instruction& i) {
  Lanes<u32> a, b, r;
  const u32* p = read(w, i, i.operands[1], a);
  const u32* q = read(w, i, i.operands[2], b);
  each(w, [&](size_t l) {
    u32 below = l > First ? std::min<u32>(l - First, 32) : 0;
    r[l] = std::popcount(p[l] & ones(below)) + q[l];
  });
  write(w, i.operands[0].index, r.x);
}

// Lanes of a row of 16 (X: of the other row of 32) by 4 bits each of S1 and S2;
// op_sel bit 0 is FI, bit 1 BOUND_CTRL.
template <bool X>
void permlane(Wave& w, const Instruction& i) {
  u64 select = scalar(w, i.operands[2]) | u64(scalar(w, i.operands[3])) << 32;
  u64 exec = w.exec();
  u32 to = i.operands[0].index, from = i.operands[1].index;
  Lanes<u32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 lane = (l & ~15u) | u32(select >> 4 * (l & 15) & 15);
    lane ^= X ? 16 : 0;
    bool valid = (i.op_sel & 1) || (exec >> lane & 1);
    r[l] = valid ? w.v[from][lane] : i.op_sel & 2 ? 0 : w.v[to][l];
  }
  write(w, to, r.x);
}
// Swaps the halves of a wave64, inactive lanes' values included; no operation
// in wave32.
void v_permlane64_b32(Wave& w, const Instruction& i) {
  if (w.lanes == 32)
    return;
  Lanes<u32> r;
  const u32* p = w.v[i.operands[1].index];
  each(w, [&](size_t l) { r[l] = p[l ^ 32]; });
  write(w, i.operands[0].index, r.x);
}
void v_swap_b32(Wave& w, const Instruction& i) {
  u32 *p = w.v[i.operands[0].index], *q = w.v[i.operands[1].index];
  each_active(w, [&](u32 l) { std::swap(p[l], q[l]); });
}

// The lane of a lane's address / 4; on gfx10 and gfx11 within 32 lanes.
u32 addressed_lane(const Wave& w, const Instruction& i, u32 address, u32 l) {
  u32 lane = (address + i.offset) / 4;
  bool halves = w.gfx == 10 || w.gfx == 11;
  return halves ? lane % 32 + (l & 32) : lane % w.lanes;
}

// A lane's value from the lane of its address / 4; inactive lanes give 0.
void ds_bpermute_b32(Wave& w, const Instruction& i) {
  const u32* address = w.v[i.operands[1].index];
  const u32* data = w.v[i.operands[2].index];
  u64 exec = w.exec();
  Lanes<u32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 lane = addressed_lane(w, i, address[l], l);
    r[l] = exec >> lane & 1 ? data[lane] : 0;
  }
  write(w, i.operands[0].index, r.x);
}
// A lane's value to the lane of its address / 4; the last of two lanes wins,
// lanes that nobody sends to get 0.
void ds_permute_b32(Wave& w, const Instruction& i) {
  const u32* address = w.v[i.operands[1].index];
  const u32* data = w.v[i.operands[2].index];
  Lanes<u32> r{};
  each_active(
      w, [&](u32 l) { r[addressed_lane(w, i, address[l], l)] = data[l]; });
  write(w, i.operands[0].index, r.x);
}
// The offset's pattern: bit 15 a permutation of each quad, else 32 lanes by
// AND, OR and XOR masks.
void ds_swizzle_b32(Wave& w, const Instruction& i) {
  const u32* data = w.v[i.operands[1].index];
  u64 exec = w.exec();
  u32 o = u32(i.offset);
  Lanes<u32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 lane = o & 0x8000
        ? (l & ~3u) | (o >> 2 * (l & 3) & 3)
        : (l & 32) | ((((l & 31) & (o & 31)) | (o >> 5 & 31)) ^ (o >> 10 & 31));
    r[l] = exec >> lane & 1 ? data[lane] : 0;
  }
  write(w, i.operands[0].index, r.x);
}

// clang-format off
constexpr Row rows[] = {
    {"v_readfirstlane_b32", v_readfirstlane_b32, kPlain},
    {"v_readlane_b32", v_readlane_b32, kPlain},
    {"v_writelane_b32", v_writelane_b32, kPlain},
    {"v_mbcnt_lo_u32_b32", count_below<0>, kPlain},
    {"v_mbcnt_hi_u32_b32", count_below<32>, kPlain},
    {"v_permlane16_b32", permlane<false>, kOpSel},
    {"v_permlanex16_b32", permlane<true>, kOpSel},
    {"v_permlane64_b32", v_permlane64_b32, kPlain},
    {"v_swap_b32", v_swap_b32, kPlain},
    {"ds_bpermute_b32", ds_bpermute_b32, kPlain},
    {"ds_permute_b32", ds_permute_b32, kPlain},
    {"ds_swizzle_b32", ds_swizzle_b32, kPlain},
};
// clang-format on

} // namespace

Table lanes_table() {
  return rows;
}

} // namespace rdna

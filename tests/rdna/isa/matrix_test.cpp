// Matrix products: layouts of operands by the ISA documents' tables, written
// here as what a register of a lane holds.
#include <doctest/doctest.h>

#include "rig.h"

using namespace rdna;

namespace {

// Row m, column k of A and so on, small integers: exact in every type.
int a_item(int m, int k) {
  return (m * 7 + k * 3) % 11 - 5;
}
int b_item(int k, int n) {
  return (k * 5 + n * 2) % 13 - 6;
}
int c_item(int m, int n) {
  return (m * 3 + n * 11) % 17 - 8;
}
int product(int m, int n) {
  int sum = c_item(m, n);
  for (int k = 0; k < 16; ++k)
    sum += a_item(m, k) * b_item(k, n);
  return sum;
}

u32 bf16_bits(float x) {
  return bits(x) >> 16;
}
u32 half_bits(float x) {
  return half(x);
}

// Stores the 16 items of each row of A and each column of B, `size` bits each.
template <class F>
void set_factors(Machine& m, u32 a, u32 b, u32 size, F encode) {
  u32 lanes = m.target.lanes;
  for (u32 reg = 0; reg < 8; ++reg)
    m.set(a + reg, 0), m.set(b + reg, 0);
  for (u32 l = 0; l < lanes; ++l) {
    // gfx11: all 16 items in each lane. gfx12: the lanes of 16 share them.
    u32 per = m.target.gfx >= 12 ? 256 / lanes : 16;
    u32 first = m.target.gfx >= 12 ? l / 16 * per : 0;
    for (u32 e = 0; e < per; ++e) {
      u32 reg = e * size / 32, shift = e * size % 32;
      u32 mask = size == 32 ? ~0u : (1u << size) - 1;
      m.wave.v[a + reg][l] |= (encode(a_item(l % 16, first + e)) & mask)
          << shift;
      m.wave.v[b + reg][l] |= (encode(b_item(first + e, l % 16)) & mask)
          << shift;
    }
  }
}
// Row of register r of lane l of an accumulator of 32 bits.
u32 row(const Target& t, u32 r, u32 l) {
  if (t.gfx >= 12)
    return t.lanes == 32 ? l / 16 * 8 + r : l / 16 * 4 + r;
  return t.lanes == 32 ? 2 * r + l / 16 : 4 * r + l / 16;
}

struct Product {
  const char* name;
  u32 size; // of items
  u32 (*encode)(int);
  bool integers;
};

std::string range(u32 first, u32 count) {
  std::string text = "v[" + std::to_string(first) + ":";
  return text + std::to_string(first + count - 1) + "]";
}

// Registers of a factor; one is written without brackets.
std::string factor(const Target& t, u32 first, u32 size) {
  u32 items = t.gfx >= 12 ? 256 / t.lanes : 16;
  u32 count = std::max(1u, items * size / 32);
  return count == 1 ? "v" + std::to_string(first) : range(first, count);
}

} // namespace

TEST_CASE("products with accumulators of 32 bits") {
  const Product products[] = {
      // clang-format off
      {"v_wmma_f32_16x16x16_f16", 16, [](int x) { return half_bits(float(x)); }, false},
      {"v_wmma_f32_16x16x16_bf16", 16, [](int x) { return bf16_bits(float(x)); }, false},
      {"v_wmma_i32_16x16x16_iu8", 8, [](int x) { return u32(x); }, true},
      {"v_wmma_i32_16x16x16_iu4", 4, [](int x) { return u32(x); }, true},
      // clang-format on
  };
  for (const Target& t : everywhere())
    for (const Product& p : products) {
      Machine m(t, 1); // EXEC does not matter
      set_factors(m, 16, 32, p.size, p.encode);
      u32 regs = 256 / t.lanes;
      for (u32 r = 0; r < regs; ++r)
        for (u32 l = 0; l < t.lanes; ++l) {
          int c = c_item(row(t, r, l), l % 16);
          m.wave.v[48 + r][l] = p.integers ? u32(c) : bits(float(c));
        }
      std::string text = std::string(p.name) + " " + range(64, regs) + ", " +
          factor(t, 16, p.size) + ", " + factor(t, 32, p.size) + ", " +
          range(48, regs) + (p.integers ? " neg_lo:[1,1,0]" : "");
      INFO(t.cpu, " wave", t.lanes, " ", text);
      REQUIRE_NOTHROW(m(text));
      for (u32 r = 0; r < regs; ++r)
        for (u32 l = 0; l < t.lanes; ++l) {
          int exact = product(row(t, r, l), l % 16);
          // Items of 4 bits are -8 to 7: all of them fit.
          u32 expected = p.integers ? u32(exact) : bits(float(exact));
          CAPTURE(r);
          CAPTURE(l);
          REQUIRE_EQ(m.wave.v[64 + r][l], expected);
        }
    }
}

TEST_CASE("products with accumulators of 16 bits") {
  for (const Target& t : everywhere())
    for (bool brain : {false, true})
      for (bool high : {false, true}) {
        if (t.gfx >= 12 && high)
          continue; // gfx12 packs two in a register
        auto encode = [&](int x) {
          return brain ? bf16_bits(float(x)) : half_bits(float(x));
        };
        Machine m(t);
        set_factors(m, 16, 32, 16, encode);
        u32 count = 256 / t.lanes, packed = t.gfx >= 12 ? 2 : 1;
        for (u32 r = 0; r < count / packed; ++r)
          m.set(48 + r, 0xdeadbeef), m.set(64 + r, 0xdeadbeef);
        auto place = [&](u32 r) {
          return t.gfx >= 12 ? r % 2 * 16 : high ? 16u : 0u;
        };
        for (u32 r = 0; r < count; ++r)
          for (u32 l = 0; l < t.lanes; ++l) {
            u32& c = m.wave.v[48 + r / packed][l];
            c &= ~(0xffffu << place(r));
            c |= encode(c_item(row(t, r, l), l % 16)) << place(r);
          }
        std::string name =
            brain ? "v_wmma_bf16_16x16x16_bf16" : "v_wmma_f16_16x16x16_f16";
        std::string text = name + " " + range(64, count / packed) + ", " +
            factor(t, 16, 16) + ", " + factor(t, 32, 16) + ", " +
            range(48, count / packed) + (high ? " op_sel:[0,0,1]" : "");
        INFO(t.cpu, " wave", t.lanes, " ", text);
        REQUIRE_NOTHROW(m(text));
        for (u32 r = 0; r < count; ++r)
          for (u32 l = 0; l < t.lanes; ++l) {
            u32 d = m.wave.v[64 + r / packed][l];
            // Sums are below 256 times 16: bf16 rounds them, to nearest even.
            float exact = float(product(row(t, r, l), l % 16));
            u32 expected = half_bits(exact);
            if (brain) {
              u32 word = bits(exact), rest = word & 0xffff;
              bool up = rest > 0x8000 || (rest == 0x8000 && (word >> 16 & 1));
              expected = (word >> 16) + up;
            }
            REQUIRE_EQ(d >> place(r) & 0xffff, expected);
            if (packed == 1)
              REQUIRE_EQ(d >> (16 - place(r)) & 0xffff, high ? 0xbeef : 0xdead);
          }
      }
}

TEST_CASE("signs, unsigned items, saturation and a constant accumulator") {
  for (const Target& t : {kGfx11, kGfx12}) {
    Machine m(t);
    set_factors(m, 16, 32, 16, [](int x) { return half_bits(float(x)); });
    std::string factors = factor(t, 16, 16) + ", " + factor(t, 32, 16);
    m("v_wmma_f32_16x16x16_f16 v[64:71], " + factors + ", 1.0");
    CHECK_EQ(f32(m.wave.v[64][3]), float(product(0, 3) - c_item(0, 3) + 1));
    // A's even items negated: the sum of the odd ones less that of the even.
    m("v_wmma_f32_16x16x16_f16 v[64:71], " + factors + ", 0 neg_lo:[1,0,0]");
    int sum = 0;
    for (int k = 0; k < 16; ++k)
      sum += (k % 2 ? 1 : -1) * a_item(0, k) * b_item(k, 3);
    CHECK_EQ(f32(m.wave.v[64][3]), float(sum));
    Machine n(t);
    for (u32 k = 16; k < 40; ++k)
      n.set(k, ~0u);
    std::string bytes = factor(t, 16, 8) + ", " + factor(t, 20, 8);
    n("v_wmma_i32_16x16x16_iu8 v[64:71], " + bytes + ", 1");
    CHECK_EQ(n.wave.v[64][0], 16 * 255 * 255 + 1);
    n("v_wmma_i32_16x16x16_iu8 v[64:71], " + bytes + ", 1 neg_lo:[0,1,0]");
    CHECK_EQ(n.wave.v[64][0], u32(16 * 255 * -1 + 1));
    for (u32 r = 48; r < 56; ++r)
      n.set(r, 0x7fffffff);
    n("v_wmma_i32_16x16x16_iu8 v[64:71], " + bytes + ", v[48:55] clamp");
    CHECK_EQ(n.wave.v[64][0], 0x7fffffff);
  }
}

TEST_CASE("a NaN among the items is a NaN of the row") {
  Machine m(kGfx12);
  for (u32 k = 16; k < 24; ++k)
    m.set(k, 0x3c003c00);
  m.wave.v[16][2] = 0x3c007c00; // infinity in row 2
  m.wave.v[20][5] = 0x3c000000; // 0 in column 5
  m("v_wmma_f32_16x16x16_f16 v[64:71], v[16:19], v[20:23], 0");
  CHECK_EQ(m.wave.v[66][5], 0x7fc00000);
  CHECK_EQ(m.wave.v[66][6], 0x7f800000);
  CHECK_EQ(m.wave.v[65][6], 0x41800000);
}

// Loads, stores and atomics.
#include <doctest/doctest.h>

#include <functional>

#include "rig.h"

using namespace rdna;

namespace {

template <class T>
T at(const std::vector<uint8_t>& bytes, size_t offset) {
  T x;
  std::memcpy(&x, bytes.data() + offset, sizeof x);
  return x;
}

// Byte k of both memories is (k * 7) % 256; v[2:3] of lane l is the address of
// global byte 64 * l, v4 is 64 * l, s[4:5] the address of byte 0.
Machine with_memory(const Target& target, u32 active = 0xfffffffd) {
  Machine m(target, active);
  for (size_t k = 0; k < TestMemory::kBytes; ++k)
    m.memory.global[k] = m.memory.shared[k] = u8(k * 7);
  for (u32 l = 0; l < kMaxLanes; ++l) {
    u64 address = TestMemory::kBase + 64 * l;
    m.wave.v[2][l] = u32(address);
    m.wave.v[3][l] = u32(address >> 32);
    m.wave.v[4][l] = 64 * l;
  }
  m.wave.s[4] = u32(TestMemory::kBase);
  m.wave.s[5] = u32(TestMemory::kBase >> 32);
  m.wave.scratch_bytes = 64;
  m.wave.scratch.resize(64 * kMaxLanes);
  for (size_t k = 0; k < m.wave.scratch.size(); ++k)
    m.wave.scratch[k] = u8(k * 7);
  return m;
}

u32 byte_of(size_t k) {
  return u8(k * 7);
}
u32 word_of(size_t k, u32 bytes = 4) {
  u32 x = 0;
  for (u32 b = 0; b < bytes; ++b)
    x |= byte_of(k + b) << (8 * b);
  return x;
}

// The ways of address of each space; byte 64 l + 12 of lane l.
struct Way {
  const char* prefix; // of the instruction
  const char* address; // after "v8, " of loads, before of stores
  const char* base; // last operand
  const char* offset;
};
const Way kWays[] = {
    {"global", "v[2:3]", ", off", " offset:12"},
    {"global", "v4", ", s[4:5]", " offset:12"},
    {"ds", "v4", "", " offset:12"},
    {"scratch", "v10", ", off", " offset:12"},
    {"scratch", "off", ", s8", " offset:4"},
};

} // namespace

TEST_CASE("loads of registers and of their parts") {
  struct Load {
    const char *name, *ds_name;
    u32 bytes;
    std::function<u32(size_t, u32)> expected; // of a byte and a register
  };
  auto whole = [](size_t k, u32 r) { return word_of(k + 4 * r); };
  const u32 before = 0xdeadbeef;
  auto low = [](u32 x) { return (0xdead0000) | (x & 0xffff); };
  auto high = [](u32 x) { return 0xbeef | x << 16; };
  const Load loads[] = {
      // clang-format off
      {"load_b32", "load_b32", 4, whole},
      {"load_b64", "load_b64", 8, whole},
      {"load_b96", "load_b96", 12, whole},
      {"load_b128", "load_b128", 16, whole},
      {"load_u8", "load_u8", 1, [](size_t k, u32) { return byte_of(k); }},
      {"load_i8", "load_i8", 1, [](size_t k, u32) { return u32(i8(byte_of(k))); }},
      {"load_u16", "load_u16", 2, [](size_t k, u32) { return word_of(k, 2); }},
      {"load_i16", "load_i16", 2, [](size_t k, u32) { return u32(i16(word_of(k, 2))); }},
      {"load_d16_u8", "load_u8_d16", 1, [&](size_t k, u32) { return low(byte_of(k)); }},
      {"load_d16_i8", "load_i8_d16", 1, [&](size_t k, u32) { return low(u32(i8(byte_of(k)))); }},
      {"load_d16_b16", "load_u16_d16", 2, [&](size_t k, u32) { return low(word_of(k, 2)); }},
      {"load_d16_hi_u8", "load_u8_d16_hi", 1, [&](size_t k, u32) { return high(byte_of(k)); }},
      {"load_d16_hi_i8", "load_i8_d16_hi", 1, [&](size_t k, u32) { return high(u32(i8(byte_of(k)))); }},
      {"load_d16_hi_b16", "load_u16_d16_hi", 2, [&](size_t k, u32) { return high(word_of(k, 2)); }},
      // clang-format on
  };
  for (const Target& target : everywhere())
    for (const Load& load : loads)
      for (const Way& way : kWays) {
        Machine m = with_memory(target);
        m.wave.memory = &m.memory;
        bool ds = std::string(way.prefix) == "ds";
        u32 count = (load.bytes + 3) / 4;
        m.set(10, 0);
        m.wave.s[8] = 8;
        for (u32 r = 0; r < 4; ++r)
          m.set(16 + r, before);
        std::string result =
            count == 1 ? "v16" : "v[16:" + std::to_string(15 + count) + "]";
        std::string text = std::string(way.prefix) + "_" +
            (ds ? load.ds_name : load.name) + " " + result + ", " +
            way.address + way.base + way.offset;
        INFO(target.cpu, " wave", target.lanes, " ", text);
        REQUIRE_NOTHROW(m(text));
        for (u32 l = 0; l < target.lanes; ++l)
          for (u32 r = 0; r < count; ++r) {
            bool on = 0xfffffffd >> l % 32 & 1;
            REQUIRE_EQ(
                m.wave.v[16 + r][l],
                on ? load.expected(64 * l + 12, r) : before);
          }
        CHECK_EQ(m.wave.v[16 + count][0], count < 4 ? before : m.wave.v[20][0]);
      }
}

TEST_CASE("stores of registers and of their parts") {
  struct Store {
    const char *name, *ds_name;
    u32 bytes, shift;
  };
  const Store stores[] = {
      {"store_b32", "store_b32", 4, 0},
      {"store_b64", "store_b64", 8, 0},
      {"store_b96", "store_b96", 12, 0},
      {"store_b128", "store_b128", 16, 0},
      {"store_b8", "store_b8", 1, 0},
      {"store_b16", "store_b16", 2, 0},
      {"store_d16_hi_b8", "store_b8_d16_hi", 1, 16},
      {"store_d16_hi_b16", "store_b16_d16_hi", 2, 16},
  };
  for (const Target& target : everywhere())
    for (const Store& store : stores)
      for (const Way& way : kWays) {
        Machine m = with_memory(target);
        m.wave.memory = &m.memory;
        bool ds = std::string(way.prefix) == "ds";
        bool scratch = std::string(way.prefix) == "scratch";
        u32 count = (store.bytes + 3) / 4;
        m.set(10, 0);
        m.wave.s[8] = 8;
        for (u32 r = 0; r < 4; ++r)
          for (u32 l = 0; l < kMaxLanes; ++l)
            m.wave.v[16 + r][l] = 0x81828384 + 0x10101010 * r + l * 0x00010001;
        std::string data =
            count == 1 ? "v16" : "v[16:" + std::to_string(15 + count) + "]";
        std::string text = std::string(way.prefix) + "_" +
            (ds ? store.ds_name : store.name) + " " + way.address + ", " +
            data + way.base + way.offset;
        INFO(target.cpu, " wave", target.lanes, " ", text);
        REQUIRE_NOTHROW(m(text));
        auto& bytes = ds ? m.memory.shared
            : scratch    ? m.wave.scratch
                         : m.memory.global;
        for (size_t k = 0; k < 64 * target.lanes; ++k) {
          u32 l = u32(k / 64), place = u32(k % 64) - 12;
          bool on = 0xfffffffd >> l % 32 & 1;
          u32 expected = byte_of(k);
          if (on && place < store.bytes)
            expected =
                m.wave.v[16 + place / 4][l] >> (8 * (place % 4) + store.shift) &
                255;
          CAPTURE(k);
          REQUIRE_EQ(bytes[k], expected);
        }
      }
}

TEST_CASE("two addresses of shared memory, in items and in 64 items") {
  for (const Target& target : everywhere())
    for (u32 size : {1, 2})
      for (u32 stride : {1, 64}) {
        Machine m = with_memory(target, ~0u);
        m.wave.memory = &m.memory;
        for (u32 l = 0; l < kMaxLanes; ++l)
          m.wave.v[4][l] = 8 * l;
        std::string name = stride == 1 ? "2addr" : "2addr_stride64";
        name += size == 1 ? "_b32" : "_b64";
        u32 item = 4 * size * stride;
        // The result may be the address.
        m.set(5, 0);
        std::string result = size == 1 ? "v[4:5]" : "v[4:7]";
        INFO(name);
        m("ds_load_" + name + " " + result + ", v4 offset0:1 offset1:3");
        for (u32 l = 0; l < target.lanes; ++l)
          for (u32 r = 0; r < 2 * size; ++r) {
            u32 part = r % size * 4, which = r / size == 0 ? 1 : 3;
            REQUIRE_EQ(
                m.wave.v[4 + r][l], word_of(8 * l + which * item + part));
          }
        for (u32 l = 0; l < kMaxLanes; ++l)
          m.wave.v[4][l] = 16 * l;
        for (u32 r = 0; r < 4; ++r)
          for (u32 l = 0; l < kMaxLanes; ++l)
            m.wave.v[8 + r][l] = 1000 * r + l;
        m.memory.shared.assign(TestMemory::kBytes, 0);
        // Lanes would overwrite one another at 64 items: one is active.
        m.wave.set_exec(2);
        m("ds_store_" + name +
          (size == 1 ? " v4, v8, v10" : " v4, v[8:9], v[10:11]") +
          " offset1:1");
        for (u32 r = 0; r < size; ++r) {
          CHECK_EQ(at<u32>(m.memory.shared, 16 + 4 * r), 1000 * r + 1);
          CHECK_EQ(
              at<u32>(m.memory.shared, 16 + item + 4 * r), 1000 * (r + 2) + 1);
        }
      }
}

TEST_CASE("scalar loads") {
  for (const Target& target : everywhere()) {
    Machine m = with_memory(target);
    m.wave.memory = &m.memory;
    for (u32 count : {1, 2, 4, 8, 16}) {
      m("s_load_b" + std::to_string(32 * count) +
        " s[16:" + std::to_string(15 + count) + "], s[4:5], 0x40");
      for (u32 r = 0; r < count; ++r)
        CHECK_EQ(m.wave.s[16 + r], word_of(64 + 4 * r));
    }
    m.wave.s[6] = 32;
    m(target.gfx >= 12 ? "s_load_b32 s16, s[4:5], s6 offset:0x8"
                       : "s_load_b32 s16, s[4:5], s6 offset:0x8");
    CHECK_EQ(m.wave.s[16], word_of(40));
    // Of four scalars that end in VCC, which LLVM does not print on gfx11.
    m("s_load_b64 vcc, s[4:5], 0x8");
    CHECK_EQ(m.wave.pair(kVcc), word_of(8) | u64(word_of(12)) << 32);
  }
  for (const Target& target : gfx12()) {
    Machine m = with_memory(target);
    m.wave.memory = &m.memory;
    m("s_load_b96 s[16:18], s[4:5], 0x4\ns_load_u8 s20, s[4:5], 0x13\n"
      "s_load_i8 s21, s[4:5], 0x13\ns_load_u16 s22, s[4:5], 0x13\n"
      "s_load_i16 s23, s[4:5], 0x13");
    CHECK_EQ(m.wave.s[18], word_of(12));
    CHECK_EQ(m.wave.s[20], byte_of(0x13));
    CHECK_EQ(m.wave.s[21], u32(i8(byte_of(0x13))));
    CHECK_EQ(m.wave.s[22], word_of(0x13, 2));
    CHECK_EQ(m.wave.s[23], u32(i16(word_of(0x13, 2))));
  }
}

TEST_CASE("a load of scalars into VCC that LLVM refuses is decoded") {
  // s_load_b128 s[104:107], s[4:5], 0x10: the result's field is 104.
  const u32 words[] = {
      0xf4000000 | 2u << 18 | 104u << 6 | 2, 0xf8000010, 0xbfb00000};
  std::vector<uint8_t> code(sizeof words);
  std::memcpy(code.data(), words, sizeof words);
  const Program& program = decode(kGfx11, 0x9000, code);
  CHECK_EQ(program.code[0].text, "s_load_b128 s[104:107], s[4:5], 16");
  Machine m = with_memory(kGfx11);
  m.wave.memory = &m.memory;
  uint64_t budget = 10;
  CHECK_EQ(run(m.wave, program, budget), Stop::Ended);
  CHECK_EQ(budget, 8);
  CHECK_EQ(m.wave.s[104], word_of(16));
  CHECK_EQ(m.wave.s[kVcc + 1], word_of(28));
}

namespace {

struct Atomic {
  const char* name; // "add_u32"; of LDS "add_rtn_u32" too
  u64 old, source, second, result;
};

std::string returning(const std::string& name) {
  size_t end = name.rfind('_');
  return name.substr(0, end) + "_rtn" + name.substr(end);
}

// All lanes but one inactive first; then what two lanes do in turn.
void check_atomic(
    const Target& target,
    const std::string& text,
    bool shared,
    bool returns,
    u32 bytes,
    const Atomic& a) {
  Machine m = with_memory(target, 1u << 3);
  m.wave.memory = &m.memory;
  m.wave.set_exec(1u << 3);
  auto& memory = shared ? m.memory.shared : m.memory.global;
  std::memcpy(memory.data() + 64 * 3 + 8, &a.old, bytes);
  m.set64(6, a.source);
  if (bytes == 4)
    m.set(7, u32(a.second));
  m.set64(8, a.second);
  m.set64(16, 0xdeadbeefdeadbeef);
  INFO(target.cpu, " ", text);
  REQUIRE_NOTHROW(m(text));
  u64 stored = 0, got = m.wave.v[16][3] | u64(m.wave.v[17][3]) << 32;
  std::memcpy(&stored, memory.data() + 64 * 3 + 8, bytes);
  CHECK_EQ(stored, a.result);
  if (bytes == 4)
    got = u32(got);
  u64 untouched = bytes == 4 ? 0xdeadbeef : 0xdeadbeefdeadbeef;
  CHECK_EQ(got, returns ? a.old : untouched);
  CHECK_EQ(memory[64 * 2 + 8], byte_of(64 * 2 + 8));
}

const Atomic kAtomics[] = {
    {"add_u32", 0xffffffff, 3, 0, 2},
    {"sub_u32", 1, 3, 0, 0xfffffffe},
    {"min_u32", 5, 0xffffffff, 0, 5},
    {"max_u32", 5, 0xffffffff, 0, 0xffffffff},
    {"min_i32", 5, 0xffffffff, 0, 0xffffffff},
    {"max_i32", 5, 0xffffffff, 0, 5},
    {"and_b32", 0xff00, 0x0ff0, 0, 0x0f00},
    {"or_b32", 0xff00, 0x0ff0, 0, 0xfff0},
    {"xor_b32", 0xff00, 0x0ff0, 0, 0xf0f0},
    {"inc_u32", 5, 7, 0, 6},
    {"inc_u32", 7, 7, 0, 0},
    {"dec_u32", 5, 7, 0, 4},
    {"dec_u32", 0, 7, 0, 7},
    {"dec_u32", 9, 7, 0, 7},
    {"add_f32", 0x3f800000, 0x40000000, 0, 0x40400000},
    {"add_u64", 0xffffffffffffffff, 3, 0, 2},
    {"sub_u64", 1, 3, 0, 0xfffffffffffffffe},
    {"min_u64", 5, 0xffffffffffffffff, 0, 5},
    {"max_u64", 5, 0x100000000, 0, 0x100000000},
    {"min_i64", 5, 0xffffffffffffffff, 0, 0xffffffffffffffff},
    {"max_i64", 5, 0xffffffffffffffff, 0, 5},
    {"and_b64", 0xff0000000000, 0x0ff000000000, 0, 0x0f0000000000},
    {"or_b64", 0xff0000000000, 0x0ff000000000, 0, 0xfff000000000},
    {"xor_b64", 0xff0000000000, 0x0ff000000000, 0, 0xf0f000000000},
};
const Atomic kFloatChoices[] = {
    {"min", 0x3f800000, 0xbf800000, 0, 0xbf800000},
    {"max", 0x3f800000, 0xbf800000, 0, 0x3f800000},
};

} // namespace

TEST_CASE("atomics of global memory and of LDS") {
  for (const Target& target : everywhere()) {
    std::string value = target.gfx >= 12 ? " th:TH_ATOMIC_RETURN" : " glc";
    auto both = [&](const std::string& name, const Atomic& a) {
      bool wide = name.ends_with("64");
      std::string data = wide ? "v[6:7]" : "v6",
                  result = wide ? "v[16:17]" : "v16";
      u32 bytes = wide ? 8 : 4;
      std::string global = "global_atomic_" + name + " ";
      check_atomic(
          target,
          global + "v[2:3], " + data + ", off offset:8",
          false,
          false,
          bytes,
          a);
      check_atomic(
          target,
          global + result + ", v4, " + data + ", s[4:5] offset:8" + value,
          false,
          true,
          bytes,
          a);
      check_atomic(
          target,
          "ds_" + name + " v4, " + data + " offset:8",
          true,
          false,
          bytes,
          a);
      check_atomic(
          target,
          "ds_" + returning(name) + " " + result + ", v4, " + data +
              " offset:8",
          true,
          true,
          bytes,
          a);
    };
    for (const Atomic& a : kAtomics)
      both(a.name, a);
    for (const Atomic& a : kFloatChoices)
      both(std::string(a.name) + (target.gfx >= 12 ? "_num_f32" : "_f32"), a);
  }
}

TEST_CASE("exchanges") {
  const Atomic swap{"", 5, 9, 0, 9}, same{"", 5, 9, 5, 9},
      other{"", 5, 9, 6, 5};
  for (const Target& target : everywhere()) {
    std::string value = target.gfx >= 12 ? " th:TH_ATOMIC_RETURN" : " glc";
    check_atomic(
        target,
        "global_atomic_swap_b32 v16, v4, v6, s[4:5] offset:8" + value,
        false,
        true,
        4,
        swap);
    check_atomic(
        target,
        "global_atomic_swap_b64 v[2:3], v[6:7], off offset:8",
        false,
        false,
        8,
        swap);
    check_atomic(
        target,
        "ds_storexchg_rtn_b32 v16, v4, v6 offset:8",
        true,
        true,
        4,
        swap);
    check_atomic(
        target,
        "ds_storexchg_rtn_b64 v[16:17], v4, v[6:7] offset:8",
        true,
        true,
        8,
        swap);
    for (const Atomic& a : {same, other}) {
      check_atomic(
          target,
          "global_atomic_cmpswap_b32 v16, v4, v[6:7], s[4:5] offset:8" + value,
          false,
          true,
          4,
          a);
      check_atomic(
          target,
          "global_atomic_cmpswap_b64 v[2:3], v[6:9], off offset:8",
          false,
          false,
          8,
          a);
      check_atomic(
          target, "ds_cmpstore_b32 v4, v6, v7 offset:8", true, false, 4, a);
      check_atomic(
          target,
          "ds_cmpstore_b64 v4, v[6:7], v[8:9] offset:8",
          true,
          false,
          8,
          a);
      check_atomic(
          target,
          "ds_cmpstore_rtn_b32 v16, v4, v6, v7 offset:8",
          true,
          true,
          4,
          a);
      check_atomic(
          target,
          "ds_cmpstore_rtn_b64 v[16:17], v4, v[6:7], v[8:9] offset:8",
          true,
          true,
          8,
          a);
    }
  }
}

TEST_CASE("lanes of an atomic follow one another") {
  Machine m = with_memory(kGfx11, 0x0000fff0);
  m.wave.memory = &m.memory;
  m.set(4, 0);
  std::memset(m.memory.shared.data(), 0, 8);
  m.set(6, 2);
  m("ds_add_rtn_u32 v16, v4, v6");
  for (u32 l = 4; l < 16; ++l)
    CHECK_EQ(m.wave.v[16][l], 2 * (l - 4));
  CHECK_EQ(at<u32>(m.memory.shared, 0), 24);
}

TEST_CASE("counters of LDS go up and down by the active lanes") {
  for (const Target& target : {kGfx11, kGfx12}) {
    Machine m = with_memory(target, 0x00ff0ff0);
    m.wave.memory = &m.memory;
    u32 start = 100;
    std::memcpy(m.memory.shared.data() + 24, &start, 4);
    m.wave.s[kM0] = 16;
    m("ds_append v16 offset:8");
    CHECK_EQ(at<u32>(m.memory.shared, 24), 116);
    CHECK_EQ(m.wave.v[16][4], 100);
    CHECK_EQ(m.wave.v[16][23], 100);
    CHECK_EQ(m.wave.v[16][0], kPoison);
    CHECK_EQ(m.memory.accesses.back().act, Act::Atomic);
    m("ds_consume v17 offset:8");
    CHECK_EQ(at<u32>(m.memory.shared, 24), 100);
    CHECK_EQ(m.wave.v[17][4], 116);
  }
}

TEST_CASE(
    "what is outside is a fault with the instruction; no lane, no access") {
  Machine m = with_memory(kGfx11);
  m.wave.memory = &m.memory;
  m.set64(2, 16);
  CHECK_THROWS_WITH_AS(
      m("global_load_b32 v0, v[2:3], off"),
      "wave 0, +0x0 global_load_b32 v0, v[2:3], off: outside",
      Fault);
  CHECK_THROWS_WITH_AS(
      m("s_nop 0\nscratch_load_b32 v0, off, off offset:62"),
      "wave 0, +0x4 scratch_load_b32 v0, off, off offset:62: scratch byte 62 of "
      "64, lane 0",
      Fault);
  size_t before = m.memory.accesses.size();
  m.wave.set_exec(0);
  m("global_load_b32 v0, v[2:3], off\nds_store_b32 v2, v0");
  CHECK_EQ(m.memory.accesses.size(), before);
}

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "arithmetic.h"
#include "llvm.h"
#include "memory.h"
#include "program.h"
#include "sdwa.h"
#include "text.h"
#include "wave.h"

namespace rdna {
namespace {

constexpr size_t kLongest = 64; // bytes that hold any instruction
constexpr size_t kMostBytes = 4 << 20; // of a shader

bool is_branch(const std::string& text) {
  return text.starts_with("s_branch") || text.starts_with("s_cbranch");
}

// A load of scalars whose result runs from s[104] into VCC, which LLVM refuses
// to print: "s_load_b128 s[104:107], s[2:3], 0x0".
std::string scalar_load_text(const u32* words) {
  constexpr const char* names[] = {"b32", "b64", "b128", "b256", "b512"};
  u32 operation = words[0] >> 18 & 255, result = words[0] >> 6 & 127;
  u32 base = (words[0] & 63) * 2, register_offset = words[1] >> 25;
  constexpr u32 kSmem = 0b111101, kNoRegister = 124;
  if (words[0] >> 26 != kSmem || operation >= std::size(names) ||
      register_offset != kNoRegister)
    return "";
  char text[96];
  snprintf(
      text,
      sizeof text,
      "s_load_%s s[%u:%u], s[%u:%u], %d",
      names[operation],
      result,
      result + (1u << operation) - 1,
      base,
      base + 1,
      signed_field(i32(words[1]), 0, 21));
  return text;
}

[[noreturn]] void
refuse(const Target& target, const Instruction& i, const std::string& why) {
  char place[32];
  snprintf(place, sizeof place, "+0x%x ", i.pc);
  throw Fault(target.cpu + " " + place + i.text + ": " + why);
}

class Decoder {
 public:
  Decoder(const Target& target, uint64_t address, std::span<const u8> code)
      : target_(target),
        code_(code.first(std::min(code.size(), kMostBytes))),
        text_of_(target.cpu, target.gfx, target.lanes) {
    program_.address = address;
  }

  Program decode() {
    size_t at = 0, furthest = 0;
    for (;;) {
      Instruction i = next(at);
      at += i.size;
      if (is_branch(i.text)) {
        // In words from the next instruction; first the byte.
        i.target = u32(at + 4 * i64(i16(i.operands[0].value)));
        furthest = std::max<size_t>(furthest, i.target);
      }
      bool last = i.text.starts_with("s_endpgm") && at > furthest;
      index_[i.pc] = u32(program_.code.size());
      program_.code.push_back(std::move(i));
      if (last)
        break;
    }
    resolve_branches();
    program_.size = at;
    program_.runs.resize(program_.code.size());
    return std::move(program_);
  }

 private:
  Instruction next(size_t at) {
    Instruction i;
    i.pc = u32(at);
    auto rest = code_.subspan(std::min(at, code_.size()));
    rest = rest.first(std::min(rest.size(), kLongest));
    size_t size = 0;
    i.text = text_of_(rest, size);
    if (size == 0)
      i.text = other_text(rest, size);
    if (size == 0)
      refuse(target_, i, "cannot be decoded: " + hexadecimal(rest));
    i.size = u32(size);
    std::vector<u32> words(size / 4);
    std::memcpy(words.data(), rest.data(), size);
    try {
      fill(i, words);
    } catch (const Fault& fault) {
      refuse(target_, i, fault.what());
    }
    return i;
  }

  // What LLVM refuses to print and RADV's compiler emits.
  std::string other_text(std::span<const u8> code, size_t& size) {
    u32 words[2];
    if (code.size() < sizeof words)
      return "";
    std::memcpy(words, code.data(), sizeof words);
    std::string text;
    if (target_.gfx == 11)
      text = scalar_load_text(words);
    else if (target_.gfx < 11)
      text = words[0] >> 31 ? pair_text(words) : older_text(words);
    size = text.empty() ? 0 : sizeof words;
    return text;
  }

  // V_CMPX of gfx9 as VOP3 writes a scalar pair besides EXEC; LLVM prints it if
  // the pair is EXEC only: "v_cmpx_le_u32_e64 exec, s12, v2".
  std::string pair_text(const u32* words) {
    constexpr u32 kPair = 255;
    u32 pair = words[0] & kPair;
    std::string text = text_of({(words[0] & ~kPair) | kExec, words[1]});
    size_t at = text.find(" exec,");
    if (target_.gfx > 9 || !text.starts_with("v_cmpx") || at == text.npos)
      return "";
    auto name = "s[" + std::to_string(pair) + ":" + std::to_string(pair + 1);
    return text.replace(at + 1, 4, pair == kVcc ? "vcc" : name + "]");
  }

  // Before gfx11: a comparison with DPP, as if without; a V_CNDMASK of SDWA
  // that extends the signs of its sources, as if it did not.
  std::string older_text(const u32* words) {
    constexpr u32 kVopc = 0b0111110, kVector = 256;
    constexpr u32 kDpp8 = 233, kDpp8Fetch = 234, kSdwa = 249, kDpp16 = 250;
    constexpr u32 kDppSigns = 15u << 20, kExtend = 1u << 19 | 1u << 27;
    u32 source = words[0] & 0x1ff;
    bool dpp8 = source == kDpp8 || source == kDpp8Fetch;
    bool dpp16 = source == kDpp16 && !(words[1] & kDppSigns);
    u32 plain[] = {words[0], words[1]};
    if (source == kSdwa)
      plain[1] &= ~kExtend;
    else if (words[0] >> 25 == kVopc && (dpp8 || dpp16))
      plain[0] = (words[0] & ~0x1ffu) | kVector | (words[1] & 255);
    else
      return "";
    return text_of(plain);
  }

  std::string text_of(const u32 (&words)[2]) {
    u8 bytes[sizeof words];
    std::memcpy(bytes, words, sizeof words);
    size_t size;
    return text_of_(bytes, size);
  }

  void fill(Instruction& i, std::span<const u32> words) {
    size_t pair = i.text.find(" :: ");
    parse(i, i.text.substr(0, pair), words);
    if (auto inner = wrap_sdwa(words, i))
      program_.others.push_back(std::move(inner));
    if (pair == i.text.npos)
      return;
    auto second = std::make_unique<Instruction>();
    second->pc = i.pc;
    second->text = i.text.substr(pair + 4);
    parse(*second, second->text, words);
    i.second = second.get();
    program_.others.push_back(std::move(second));
  }

  void resolve_branches() {
    for (Instruction& i : program_.code)
      if (is_branch(i.text)) {
        auto found = index_.find(i.target);
        if (found == index_.end())
          refuse(target_, i, "branches into an instruction");
        i.target = found->second;
      }
  }

  static std::string hexadecimal(std::span<const u8> code) {
    std::string text;
    char byte[4];
    for (u8 x : code.first(std::min<size_t>(code.size(), 16))) {
      snprintf(byte, sizeof byte, "%02x ", x);
      text += byte;
    }
    return text;
  }

  const Target& target_;
  std::span<const u8> code_;
  Disassembler text_of_;
  Program program_;
  std::unordered_map<u32, u32> index_; // byte offset: index
};

struct Cached {
  std::vector<u8> code;
  std::unique_ptr<Program> program;
};

} // namespace

const Program&
decode(const Target& target, uint64_t address, std::span<const uint8_t> code) {
  using Key = std::tuple<std::string, uint32_t, uint64_t>;
  static std::map<Key, std::vector<Cached>> cache;
  auto& programs = cache[{target.cpu, target.lanes, address}];
  // Other code may have been at the address before.
  for (Cached& c : programs)
    if (c.code.size() <= code.size() &&
        std::memcmp(c.code.data(), code.data(), c.code.size()) == 0)
      return *c.program;
  auto program =
      std::make_unique<Program>(Decoder(target, address, code).decode());
  std::vector<u8> copy(code.begin(), code.begin() + program->size);
  programs.push_back({std::move(copy), std::move(program)});
  return *programs.back().program;
}

} // namespace rdna

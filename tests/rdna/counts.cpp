#include "counts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <span>
#include <string_view>

#include "settings.h"

namespace rdna {

namespace {

constexpr uint64_t line_bytes = 128;

// The first prefix that fits names the class. "product": multiply-adds of
// floats and dot products; "math": the transcendental unit's.
constexpr std::pair<std::string_view, std::string_view> classes[] = {
    {"s_load", "scalar load"}, {"s_barrier", "barrier"},
    {"s_wait", "wait"},        {"s_delay", "wait"},
    {"s_nop", "wait"},         {"s_clause", "wait"},
    {"s_sleep", "wait"},       {"s_sendmsg", "wait"},
    {"s_branch", "branch"},    {"s_cbranch", "branch"},
    {"s_endpgm", "branch"},    {"s_", "scalar"},
    {"v_wmma", "matrix"},      {"v_fma", "product"},
    {"v_pk_fma", "product"},   {"v_mac", "product"},
    {"v_dual_fma", "product"}, {"v_dot", "product"},
    {"v_exp", "math"},         {"v_log", "math"},
    {"v_rcp", "math"},         {"v_rsq", "math"},
    {"v_sqrt", "math"},        {"v_sin", "math"},
    {"v_cos", "math"},         {"v_", "vector"},
    {"ds_", "shared"},         {"global_load", "load"},
    {"global_store", "store"}, {"global_atomic", "store"},
    {"scratch", "scratch"},    {"", "wait"}, // of caches
};

std::string_view class_of(std::string_view text) {
  return std::ranges::find_if(
             classes, [&](auto& c) { return text.starts_with(c.first); })
      ->second;
}

// Cycles of LDS: 32 banks of 4 bytes a compute unit, so many consecutive lanes
// at a time that they fill all banks; each bank gives one word a cycle.
uint32_t shared_cycles(const Access& a, uint32_t begin, uint32_t end) {
  constexpr uint32_t banks = 32;
  std::array<std::array<uint64_t, 64>, banks> words;
  std::array<uint8_t, banks> used{};
  uint32_t most = 0;
  for (uint32_t lane = begin; lane < end; ++lane) {
    if (!(a.lanes >> lane & 1)) {
      continue;
    }
    uint64_t last = (a.addresses[lane] + a.bytes - 1) / 4;
    for (uint64_t word = a.addresses[lane] / 4; word <= last; ++word) {
      auto& bank = words[word % banks];
      auto& count = used[word % banks];
      auto known = std::span(bank).first(count);
      if (std::ranges::find(known, word) == known.end()) {
        bank[count++] = word;
        most = std::max<uint32_t>(most, count);
      }
    }
  }
  return most;
}

uint32_t shared_conflicts(const Access& a) {
  uint32_t lanes = 128 / std::max(a.bytes, 4u), extra = 0;
  for (uint32_t begin = 0; begin < 64; begin += lanes) {
    extra += std::max(shared_cycles(a, begin, begin + lanes), 1u) - 1;
  }
  return extra;
}

} // namespace

Counts* counts() {
  static auto* counts = settings().counts.empty()
      ? nullptr
      : new Counts(settings().counts); // leaked: threads outlive main
  return counts;
}

Counts::Counts(std::string folder)
    : folder_(std::move(folder)),
      out_(std::fopen(
          (folder_ + "/dispatches-" + std::to_string(getpid())).c_str(),
          "w")) {
  if (!out_) {
    report("RDNA_COUNTS=" + folder_ + " is no folder to write in");
  }
}

Counts::~Counts() {
  if (out_) {
    std::fclose(out_);
  }
}

void Counts::begin(const Program& program) {
  program_ = &program;
  before_ = program.runs;
  tallies_.assign(program.code.size(), {});
}

void Counts::access(const Access& a) {
  Tally& t = tallies_[&a.instruction - program_->code.data()];
  auto lanes = uint32_t(std::popcount(a.lanes));
  t.lanes += lanes;
  t.bytes += uint64_t(lanes) * a.bytes;
  if (a.space == Space::Shared) {
    t.conflicts += shared_conflicts(a);
    return;
  }
  std::array<uint64_t, 128> lines;
  size_t count = 0;
  bool same = lanes > 1;
  uint64_t one = a.addresses[std::countr_zero(a.lanes)];
  for (uint64_t left = a.lanes; left; left &= left - 1) {
    uint64_t address = a.addresses[std::countr_zero(left)];
    same &= address == one;
    lines[count++] = address / line_bytes;
    lines[count++] = (address + a.bytes - 1) / line_bytes;
  }
  auto all = std::span(lines).first(count);
  std::ranges::sort(all);
  t.lines += std::ranges::unique(all).begin() - all.begin();
  uint64_t bytes = same ? a.bytes : uint64_t(lanes) * a.bytes;
  t.least += (bytes + line_bytes - 1) / line_bytes;
  t.uniform += same;
}

void Counts::end(const Dispatch& d, uint32_t hash) {
  std::map<std::string_view, uint64_t> executed;
  std::map<std::string_view, Tally> reached;
  auto& code = program_->code;
  for (size_t i = 0; i < code.size(); ++i) {
    auto name = class_of(code[i].text);
    executed[name] += program_->runs[i] - before_[i];
    auto& sum = reached[name];
    auto& t = tallies_[i];
    sum.lanes += t.lanes;
    sum.bytes += t.bytes;
    sum.lines += t.lines;
    sum.least += t.least;
    sum.uniform += t.uniform;
    sum.conflicts += t.conflicts;
  }
  if (!out_) {
    return;
  }
  std::fprintf(
      out_,
      R"({"hash": "%08x", "internal": %s, "continues": %s, "lanes": %u, "groups": %llu, )"
      R"("threads": %u, "registers": %u, "shared bytes": %u, )"
      R"("scratch bytes": %u)",
      hash,
      d.internal ? "true" : "false",
      d.first[0] || d.first[1] || d.first[2] ? "true" : "false",
      d.lanes,
      (unsigned long long)d.groups(),
      d.threads[0] * d.threads[1] * d.threads[2],
      d.registers(),
      d.shared_bytes(),
      d.scratch_bytes / d.lanes);
  for (auto [name, count] : executed) {
    auto& t = reached[name];
    std::fprintf(
        out_,
        R"(, "%s": {"count": %llu, "lanes": %llu, "bytes": %llu, )"
        R"("lines": %llu, "least": %llu, "uniform": %llu, "conflicts": %llu})",
        std::string(name).c_str(),
        (unsigned long long)count,
        (unsigned long long)t.lanes,
        (unsigned long long)t.bytes,
        (unsigned long long)t.lines,
        (unsigned long long)t.least,
        (unsigned long long)t.uniform,
        (unsigned long long)t.conflicts);
  }
  std::fputs("}\n", out_);
  std::fflush(out_); // the process may end without closing it
  write_code(hash);
}

void Counts::write_code(uint32_t hash) const {
  char name[16];
  std::snprintf(name, sizeof(name), "/%08x.txt", hash);
  auto* out = std::fopen((folder_ + name).c_str(), "w");
  if (!out) {
    return;
  }
  std::fputs("executed lanes lines least uniform conflicts\n", out);
  auto& code = program_->code;
  for (size_t i = 0; i < code.size(); ++i) {
    auto& t = tallies_[i];
    std::fprintf(
        out,
        "%8llu %8llu %8llu %8llu %8llu %8llu  0x%04x  %s\n",
        (unsigned long long)(program_->runs[i] - before_[i]),
        (unsigned long long)t.lanes,
        (unsigned long long)t.lines,
        (unsigned long long)t.least,
        (unsigned long long)t.uniform,
        (unsigned long long)t.conflicts,
        code[i].pc,
        code[i].text.c_str());
  }
  std::fclose(out);
}

} // namespace rdna

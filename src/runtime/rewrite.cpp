#include "runtime/rewrite.h"

#include <algorithm>

#include "runtime/rewrite_group.h"
#include "runtime/rewrite_moe.h"

namespace mlx::core::vulkan {

RewriteCounters& rewrite_counters() {
  static auto* counters = new RewriteCounters; // leaked: read at exit
  return *counters;
}

const char* name_of(Rule rule) {
  constexpr const char* names[] = {
      "siblings",
      "residual",
      "gate",
      "norm",
      "rope",
      "router",
      "experts",
      "combine",
      "attention"};
  return names[size_t(rule)];
}

const char* name_of(Miss miss) {
  constexpr const char* names[] = {
      "order", "overlap", "form", "registers", "kernel"};
  return names[size_t(miss)];
}

Program::Program(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments,
    SelectLog* log)
    : records(records), accesses(accesses), arguments(arguments), log(log) {
  touched_.resize(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    auto& t = touched_[i];
    for (const auto& a : of(i)) {
      uint64_t bit = uint64_t(1) << (a.base * 0x9e3779b97f4a7c15ull >> 58);
      t.any |= bit;
      t.written |= a.write ? bit : 0;
    }
  }
}

bool Program::conflict(uint32_t i, uint32_t j) const {
  auto &a = touched_[i], &b = touched_[j];
  if (!((a.written & b.any) | (a.any & b.written))) {
    return false;
  }
  for (const auto& x : of(i)) {
    for (const auto& y : of(j)) {
      if ((x.write || y.write) && overlap(x, y)) {
        return true;
      }
    }
  }
  return false;
}

uint32_t Program::place_of(uint32_t record) const {
  uint32_t g = group_of[record];
  return g == none     ? record
      : (g & of_heads) ? heads[g - of_heads].place
                       : groups[g].first();
}

bool Program::can_pass(uint32_t record, uint32_t group, uint32_t first) const {
  for (uint32_t k = record; k-- > first;) {
    if (group_of[k] != group && place_of(k) >= first && conflict(k, record)) {
      return false;
    }
  }
  // What was before `first` and has moved behind it. Only the last two groups
  // grow, so that those before two which end earlier do, too.
  int earlier = 0;
  for (size_t h = heads.size(); h-- > 0 && earlier < 2;) {
    if (heads[h].place <= first) {
      ++earlier;
      continue;
    }
    for (uint32_t k : heads[h].records()) {
      if (k < first && conflict(k, record)) {
        return false;
      }
    }
  }
  return true;
}

bool Program::miss(uint32_t record, Rule rule, Miss why) const {
  auto& row = rewrite_counters().rules[size_t(rule)];
  row.missed[size_t(why)].fetch_add(1, std::memory_order_relaxed);
  if (log) {
    log->missed(record, rule, why);
  }
  return false;
}

void Program::fire(std::span<const uint32_t> joined, Rule rule) const {
  rewrite_counters().rules[size_t(rule)].fired.fetch_add(
      joined.size(), std::memory_order_relaxed);
  for (uint32_t record : joined) {
    if (log) {
      log->joined(record, rule);
    }
  }
}

void Program::append_accesses(
    std::span<const uint32_t> members,
    std::vector<Access>& out) const {
  size_t begin = out.size();
  for (uint32_t member : members) {
    for (const auto& a : of(member)) {
      bool known = std::any_of(out.begin() + begin, out.end(), [&](auto& b) {
        // What the group itself has written, or reads already.
        return same_range(a, b) && (b.write || !a.write);
      });
      if (!known) {
        out.push_back(a);
      }
    }
  }
}

namespace {

const Kernel* find(const RopeCacheVariant& v, FusedKernels& kernels) {
  return kernels.find(v);
}
const Kernel* find(const FusedVariant& v, FusedKernels& kernels) {
  return std::visit([&](auto& v) { return kernels.find(v); }, v);
}

// Asks for the kernel of a group of several records.
template <typename G>
void complete(G& g, FusedKernels& kernels, bool& any, bool& complete) {
  if (g.size > 1) {
    any = true;
    g.kernel = find(g.variant, kernels);
    complete = complete && g.kernel;
  }
}

// False if there is nothing to do. A kernel that is missing is refused from
// then on, which changes what the groups are.
bool form_groups(Program& p, FusedKernels& kernels) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    p.groups.clear();
    p.heads.clear();
    p.last_norm = none;
    p.norms.fill(none);
    p.group_of.assign(p.records.size(), none);
    for (uint32_t i = 0; i < p.records.size(); ++i) {
      if (p.records[i].what.index() != 0) {
        match(p, i, kernels);
        match_heads(p, i, kernels);
      }
    }
    bool any = false, all = true;
    for (auto& g : p.groups) {
      complete(g, kernels, any, all);
    }
    for (auto& g : p.heads) {
      complete(g, kernels, any, all);
    }
    if (all) {
      return any;
    }
  }
  return false;
}

} // namespace

void rewrite(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log) {
  rewrite_experts(records, accesses, arguments, kernels, log);
  Program p(records, accesses, arguments, log);
  if (!form_groups(p, kernels)) {
    return;
  }
  std::vector<Access> fused; // accesses move while they are appended to
  auto replace = [&](const auto& g) {
    if (g.size < 2) {
      return;
    }
    fused.clear();
    p.append_accesses(g.records(), fused);
    Record made = build(p, g, arguments);
    for (uint32_t member : g.records()) {
      made.bytes += records[member].bytes;
      made.seconds += records[member].seconds;
    }
    made.first_access = static_cast<uint32_t>(accesses.size());
    made.access_count = static_cast<uint32_t>(fused.size());
    accesses.insert(accesses.end(), fused.begin(), fused.end());
    uint32_t place = p.place_of(g.members[0]);
    records[place] = made;
    if (log) {
      log->run(g.records(), place);
    }
  };
  std::for_each(p.groups.begin(), p.groups.end(), replace);
  std::for_each(p.heads.begin(), p.heads.end(), replace);
  p.keep(records, [&](uint32_t i) { return p.place_of(i) == i; });
}

void find_of_cuts(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments,
    FusedKernels& kernels) {
  for (auto cut = records.begin(); cut != records.end(); ++cut) {
    for (auto part :
         {std::vector<Record>(records.begin(), cut),
          std::vector<Record>(cut, records.end())}) {
      auto accesses_of = accesses;
      auto arguments_of = arguments;
      rewrite_experts(part, accesses_of, arguments_of, kernels, nullptr);
      Program p(part, accesses_of, arguments_of, nullptr);
      form_groups(p, kernels);
    }
  }
}

} // namespace mlx::core::vulkan

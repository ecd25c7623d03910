#include "runtime/rewrite.h"

#include <atomic>
#include <cstdio>
#include <exception>

#include "pipeline/pipeline.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

std::atomic<bool> preparing_cuts{false};

// Patterns in the order in which they are tried.
using PatternsByKind =
    std::array<std::vector<Pattern>, std::variant_size_v<Descriptor>>;

PatternsByKind patterns_by_kind() {
  PatternsByKind all;
  Families::each_pattern([&](auto& p) {
    p.rule = Rule(rule_names.find(p.name));
    all[p.kind].push_back(p);
  });
  return all;
}

// Whether `maker` wrote or read the operand that the edge means, and which.
bool links(
    const Records& p,
    const Edge& e,
    uint32_t from,
    uint32_t maker,
    int8_t& operand) {
  if (maker >= from) {
    return false;
  }
  const Access& made = p.output(maker);
  if (e.link != Edge::Output) {
    operand = e.operand;
    uint64_t begin = p.output_address(maker), at = p.address(from, operand);
    return e.link == Edge::Input ? at == p.address(maker, 0)
        : e.link == Edge::SameHeads
        ? p.heads_at(from, Heads::in) == p.heads_at(maker, Heads::out)
        : at >= begin && at - begin < made.end - made.begin;
  }
  for (int8_t i : {int8_t(0), int8_t(1)}) {
    if ((e.operand == i || e.operand == Edge::either) &&
        same_range(made, p.of(from)[i])) {
      operand = i;
      return true;
    }
  }
  return false;
}

// Whether operand i of record a holds just the heads that record b writes.
bool holds_heads(const Records& p, uint32_t a, uint32_t i, uint32_t b) {
  bool output = i + 1 == p.of(a).size();
  if (output && a == b) {
    return true;
  }
  const Heads* made = p.heads(a);
  auto side = output ? Heads::out : Heads::in;
  if (!made || (i != 0 && !output) ||
      p.heads_at(a, side) != p.heads_at(b, Heads::out)) {
    return false;
  }
  Heads h = *made;
  return h.align(side, *p.heads(b), Heads::out);
}

} // namespace

void trace(const Records& p, std::span<const Edge> edges, uint32_t* nodes) {
  uint32_t* to = nodes;
  for (auto& e : edges) {
    uint32_t from = nodes[e.from];
    *++to = none;
    for (uint32_t i = from; from != none && i-- > 0 && i + window >= from;) {
      int8_t operand;
      if (p.records[i].descriptor.index() == e.kind &&
          links(p, e, from, i, operand)) {
        *to = i;
        break;
      }
    }
  }
}

bool may_run_last(const Records& p, std::span<const uint32_t> members) {
  for (uint32_t member : members) {
    for (uint32_t k = member; member != none && ++k < p.records.size();) {
      bool other =
          std::find(members.begin(), members.end(), k) == members.end();
      if (other && conflict(p.of(member), p.of(k))) {
        return false;
      }
    }
  }
  return true;
}

Program::Program(const Records& all, const FusedKernels& kernels)
    : Records(all), kernels(kernels) {
  nodes_.resize(records.size());
  groups.reserve(std::min<size_t>(records.size(), 256));
  events.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    auto& t = nodes_[i];
    for (const auto& a : of(i)) {
      t.any |= bit_of(a);
      t.written |= a.write ? bit_of(a) : 0;
    }
  }
}

bool Program::can_pass(uint32_t record, const Group& g, uint32_t number) const {
  uint32_t first = g.members[0];
  for (uint32_t k = record; k-- > first;) {
    if (nodes_[k].group != number && nodes_[k].place >= first &&
        conflict(k, record) && !g.has(k)) {
      return false;
    }
  }
  // Records that were moved from before `first` to behind it. Only the last of
  // the groups that run last grow, so earlier ones end before `first`.
  size_t earlier = 0;
  for (size_t h = run_last_.size(); h-- > 0 && earlier < most_growing;) {
    auto& moved = groups[run_last_[h]];
    if (moved.place <= first) {
      ++earlier;
      continue;
    }
    for (uint32_t k : moved.records()) {
      if (k < first && conflict(k, record)) {
        return false;
      }
    }
  }
  return true;
}

bool Program::can_sink(
    uint32_t member,
    uint32_t from,
    const Group& g,
    uint32_t to) const {
  for (uint32_t k = from + 1; k < to; ++k) {
    if (conflict(member, k) && !g.has(k)) {
      return false;
    }
  }
  return true;
}

bool Program::can_move(
    const Group& g,
    uint32_t number,
    std::span<const uint32_t> added) const {
  if (!g.runs_last()) {
    return std::all_of(added.begin(), added.end(), [&](uint32_t record) {
      return can_pass(record, g, number);
    });
  }
  size_t before = g.size - added.size();
  for (size_t i = 0; i < g.size; ++i) {
    uint32_t member = g.members[i];
    if (!can_sink(member, i < before ? g.place : member, g, added.back())) {
      return false;
    }
  }
  return true;
}

bool Program::join(
    Match& match,
    uint32_t number,
    std::span<const uint32_t> added) {
  Group& changed = match.changed;
  Rule rule = match.pattern.rule;
  uint32_t record = added.back(), before = changed.size;
  if (before + added.size() > Group::most) {
    return miss(record, rule, Miss::Form);
  }
  for (uint32_t member : added) {
    if (!match.shares(member)) {
      return miss(record, rule, Miss::Overlap);
    }
    changed.members[changed.size++] = member;
  }
  if (!can_move(changed, number, added)) {
    return miss(record, rule, Miss::Order);
  }
  if (changed.size > 1) {
    if (!kernels.fits(changed.variant)) {
      return miss(record, rule, Miss::Registers);
    }
    if (kernels.refused(changed.variant)) {
      return miss(record, rule, Miss::Kernel);
    }
  }
  changed.place = changed.runs_last() ? record : changed.members[0];
  if (number == groups.size()) {
    groups.push_back(changed);
    if (changed.runs_last()) {
      run_last_.push_back(number);
    }
  } else {
    groups[number] = changed;
  }
  for (uint32_t i = 0; i < changed.size; ++i) {
    uint32_t member = changed.members[i];
    nodes_[member].group = number;
    nodes_[member].place = changed.place;
    if (i >= std::max(before, 1u)) {
      events.push_back({member, rule, Miss::Count});
    }
  }
  return true;
}

// Whether an edge allows the record's operand to overlap another of a member:
// the operand reads what the edge's maker wrote, or may overwrite it.
bool Match::allows(
    uint32_t record,
    uint32_t operand,
    uint32_t member,
    uint32_t other) const {
  for (size_t e = 0; e < pattern.edge_count(); ++e) {
    auto& edge = pattern.edges[e];
    uint32_t maker = nodes[e + 1];
    if (nodes[edge.from] != record || maker == none ||
        edge.link == Edge::Input) {
      continue;
    }
    auto is_made = [&](uint32_t node, uint32_t i) {
      return edge.link == Edge::SameHeads
          ? holds_heads(p, node, i, maker)
          : same_range(p.of(node)[i], p.output(maker));
    };
    bool fine = p.of(record)[operand].write
        ? edge.over && is_made(record, operand)
        : p.of(member)[other].write && operands[e] == int8_t(operand);
    if (fine && is_made(member, other)) {
      return true;
    }
  }
  return false;
}

bool Match::shares(uint32_t record) const {
  auto mine = p.of(record);
  for (uint32_t member : changed.records()) {
    if (!p.may_conflict(member, record)) {
      continue;
    }
    auto its = p.of(member);
    for (uint32_t i = 0; i < mine.size(); ++i) {
      for (uint32_t k = 0; k < its.size(); ++k) {
        if ((its[k].write || mine[i].write) && overlap(its[k], mine[i]) &&
            !allows(record, i, member, k)) {
          return false;
        }
      }
    }
  }
  return true;
}

bool Program::attempt_with(
    uint32_t number,
    const Pattern& pattern,
    uint32_t record,
    uint32_t maker,
    int8_t operand) {
  bool joins = pattern.to == Pattern::Joins;
  uint32_t others = joins ? number : none; // the group of the other nodes
  Match m{
      *this,
      pattern,
      {record, maker},
      {operand},
      number < groups.size() ? groups[number] : Group()};
  for (size_t e = 1; e < pattern.edge_count(); ++e) {
    auto& edge = pattern.edges[e];
    uint32_t& node = m.nodes[e + 1] = none;
    any_recent(edge.kind, record, [&](uint32_t k) {
      bool is = group_of(k) == others && k != m.nodes[e] &&
          links(*this, edge, m.nodes[edge.from], k, m.operands[e]);
      node = is ? k : none;
      return is;
    });
    if (node == none && !edge.optional) {
      return false;
    }
  }
  Verdict verdict = pattern.condition(m);
  if (verdict != Verdict::Yes) {
    auto why = verdict == Verdict::Form ? Miss::Form : Miss::Overlap;
    return verdict != Verdict::No && miss(record, pattern.rule, why);
  }
  uint32_t added = joins ? 1 : 1 + pattern.edge_count();
  uint32_t sorted[Match::most];
  std::copy_n(m.nodes, added, sorted);
  std::sort(sorted, sorted + added);
  return join(m, number, {sorted, added});
}

bool Program::attempt(
    const Pattern& pattern,
    uint32_t record,
    uint32_t maker,
    int8_t operand,
    uint32_t joined) {
  auto with = [&](uint32_t number) {
    return attempt_with(number, pattern, record, maker, operand);
  };
  if (pattern.to == Pattern::Joins) {
    return with(joined);
  }
  bool extends = pattern.to == Pattern::Extends &&
      any_growing(pattern.family, record, with);
  return extends || with(static_cast<uint32_t>(groups.size()));
}

bool Program::apply(const Pattern& pattern, uint32_t record) {
  if (pattern.edge_count() == 0) {
    return attempt(pattern, record, none, 0);
  }
  auto& edge = pattern.edges[0];
  uint32_t tried[Recent::most], count = 0;
  auto may_join = [&](uint32_t g) {
    return g != none && groups[g].parts.index() == pattern.family &&
        std::find(tried, tried + count, g) == tried + count &&
        (!groups[g].runs_last() ||
         any_growing(
             pattern.family, record, [&](uint32_t h) { return h == g; }));
  };
  return any_recent(edge.kind, record, [&](uint32_t k) {
    if (!(nodes_[record].any & nodes_[k].any)) {
      return false;
    }
    uint32_t g = group_of(k);
    bool fine = pattern.to == Pattern::Joins ? may_join(g) : g == none;
    int8_t operand = 0;
    if (!fine || !links(*this, edge, record, k, operand)) {
      return false;
    }
    tried[count++] = g;
    return attempt(pattern, record, k, operand, g);
  });
}

void Program::match() {
  static auto& patterns = *new auto(patterns_by_kind()); // leaked, as above
  groups.clear();
  run_last_.clear();
  events.clear();
  recent_ = {};
  for (uint32_t i = 0; i < records.size(); ++i) {
    nodes_[i].group = none;
    nodes_[i].place = i;
    size_t kind = records[i].descriptor.index();
    if (kind != 0) {
      for (auto& pattern : patterns[kind]) {
        if (apply(pattern, i)) {
          break;
        }
      }
      auto& r = recent_[kind];
      r.at[r.count++ % Recent::most] = i;
    }
  }
}

void Program::append_accesses(
    std::span<const uint32_t> members,
    std::vector<Access>& out) const {
  uint64_t bits = 0;
  for (uint32_t member : members) {
    for (const auto& a : of(member)) {
      bool known =
          bits & bit_of(a) && std::any_of(out.begin(), out.end(), [&](auto& b) {
            // The group itself wrote it, or reads it already.
            return same_range(a, b) && (b.write || !a.write);
          });
      bits |= bit_of(a);
      if (!known) {
        out.push_back(a);
      }
    }
  }
}

namespace {

// Returns false if no group forms. A kernel that does not compile is refused
// from then on, which changes the groups.
bool form_groups(Program& p, FusedKernels& kernels) {
  bool any, all;
  do {
    p.match();
    any = false;
    all = true;
    for (auto& g : p.groups) {
      if (g.size > 1) {
        any = true;
        g.kernel = kernels.find(g.variant);
        all = all && g.kernel;
      }
    }
  } while (!all);
  return any;
}

// Starts the kernels of the groups and of the records in none. Returns the last
// one that is being compiled; without any, `last`.
const Kernel*
start(const Program& p, FusedKernels& kernels, const Kernel* last = nullptr) {
  for (uint32_t i = 0; i < p.records.size(); ++i) {
    uint32_t g = p.group_of(i);
    bool joined = g != none && p.groups[g].size > 1;
    auto* kernel = joined ? p.groups[g].kernel : p.records[i].kernel;
    if (p.place_of(i) == i && kernel && !kernel->settled()) {
      kernels.start(*kernel);
      last = kernel;
    }
  }
  return last;
}

void publish(const Program& p, SelectLog* log) {
  std::array<uint32_t, rule_names.count> joined{};
  for (auto& e : p.events) {
    e.miss == Miss::Count ? void(++joined[size_t(e.rule)])
                          : count_missed(e.rule, e.miss);
    if (log) {
      e.miss == Miss::Count ? log->joined(e.record, e.rule)
                            : log->missed(e.record, e.rule, e.miss);
    }
  }
  for (size_t rule = 0; rule < joined.size(); ++rule) {
    if (joined[rule]) {
      count_joined(Rule(rule), joined[rule]);
    }
  }
}

// The record of a group, without its accesses.
Record build(const Program& p, const Group& g, std::vector<std::byte>& all) {
  Record r;
  r.kernel = g.kernel;
  auto use = [&](const void* block, size_t size, uint64_t groups) {
    r.grid = linear(groups);
    r.args_size = static_cast<uint32_t>(size);
    r.args_in_memory = r.kernel->args_in_memory(size);
    std::memcpy(room_for_args(all, r), block, size);
  };
  std::visit([&](auto& parts) { parts.build(p, g, use); }, g.parts);
  for (uint32_t member : g.records()) {
    r.bytes += p.records[member].bytes;
    r.flops += p.records[member].flops;
    r.seconds += p.records[member].seconds;
  }
  return r;
}

} // namespace

const Kernel* rewrite(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log) {
  Program p({records, accesses, arguments}, kernels);
  bool any = form_groups(p, kernels);
  if (auto* compiling = start(p, kernels)) {
    return compiling;
  }
  publish(p, log);
  if (!any) {
    return nullptr;
  }
  std::vector<Access> joined; // accesses move while they are appended to
  for (auto& g : p.groups) {
    if (g.size < 2) {
      continue;
    }
    joined.clear();
    p.append_accesses(g.records(), joined);
    Record made = build(p, g, arguments);
    made.first_access = static_cast<uint32_t>(accesses.size());
    made.access_count = static_cast<uint32_t>(joined.size());
    accesses.insert(accesses.end(), joined.begin(), joined.end());
    records[g.place] = made;
    if (log) {
      log->run(g.records(), g.place);
    }
  }
  size_t kept = 0;
  for (uint32_t i = 0; i < records.size(); ++i) {
    if (p.place_of(i) == i) {
      if (kept != i) {
        records[kept] = records[i];
      }
      ++kept;
    }
  }
  records.resize(kept);
  return nullptr;
}

const Kernel* start_of_cuts(
    const std::vector<Record>& records,
    const std::vector<Access>& accesses,
    const std::vector<std::byte>& arguments,
    FusedKernels& kernels) {
  const Kernel* last = nullptr;
  for (auto cut = records.begin(); cut != records.end(); ++cut) {
    for (auto part :
         {std::vector<Record>(records.begin(), cut),
          std::vector<Record>(cut, records.end())}) {
      Program p({part, accesses, arguments}, kernels);
      form_groups(p, kernels);
      last = start(p, kernels, last);
    }
  }
  return last;
}

void prepare_cuts(bool on) {
  preparing_cuts = on;
}

CompiledFusions::CompiledFusions(PipelineTable& pipelines, const Target& target)
    : pipelines_(pipelines), target_(target) {}

const Kernel* CompiledFusions::find(const JoinedKernel& variant) {
  auto is = [&](auto& known) { return known.first == variant; };
  auto at = std::find_if(known_.begin(), known_.end(), is);
  try {
    if (at == known_.end()) {
      auto get = [&](auto& v) { return &pipelines_.get(v); };
      at = known_.insert(at, {variant, std::visit(get, variant)});
    }
    if (at->second->failed()) {
      pipelines_.finish(*at->second); // throws why
    }
    return at->second;
  } catch (const std::exception& e) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] A joined kernel is left out, its parts run instead: %s\n",
        e.what());
    refused_.push_back(variant);
    return nullptr;
  }
}

void CompiledFusions::start(const Kernel& kernel) {
  pipelines_.start(kernel);
}

bool CompiledFusions::refused(const JoinedKernel& variant) const {
  return std::find(refused_.begin(), refused_.end(), variant) != refused_.end();
}

bool CompiledFusions::fits(const JoinedKernel& variant) const {
  auto* product = std::get_if<FusedQmvVariant>(&variant);
  return fit_registers(target_.policy, variant) &&
      (!product || fits_shared_memory(target_.caps, *product));
}

bool CompiledFusions::fits_heads(uint64_t count) const {
  return count <= target_.policy.rotated_heads;
}

const Kernel* CompiledFusions::rewrite(Batch& b) {
  if (preparing_cuts) {
    auto* cuts = start_of_cuts(b.records, b.accesses, b.arguments, *this);
    if (cuts) {
      return cuts;
    }
  }
  if (!config().debug_select) {
    return vulkan::rewrite(b.records, b.accesses, b.arguments, *this);
  }
  SelectLog log(b.records, b.accesses, b.arguments);
  auto* compiling =
      vulkan::rewrite(b.records, b.accesses, b.arguments, *this, &log);
  if (!compiling) {
    std::fputs(log.text(b.records).c_str(), stderr);
  }
  return compiling;
}

} // namespace mlx::core::vulkan

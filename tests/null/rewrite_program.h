// Lists of records for rewrite.h, and an interpreter of them: a memory of cells
// of four bytes, in which products, sums, gates and turned heads are hashes of
// what they read. Workgroups run in random order, each item by itself, so that
// what a joined kernel reads too late or writes too early shows.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/rope.h"
#include "kernels/rows.h"
#include "pipeline/pipeline.h"
#include "runtime/order.h"
#include "runtime/rewrite.h"

namespace rewriting {

using namespace mlx::core::vulkan;

inline QmvVariant usual_matvec() {
  QmvVariant v{{{Type::f32, {4, 32, CODE_INTEGER, SCALE_AS_T, true}, true}, 0}};
  v.OUTS = 1;
  v.BLOCK = 2;
  return v;
}

// Of a few dozen rows: an item and its partners in a fragment each.
inline QmmFragmentsVariant usual_fragments() {
  QmmFragmentsVariant v{usual_matvec(), 32, 2, 1, 1, 8, 32, 1, 2};
  v.use_matrices(false);
  return v;
}

// Cells [at, at + count) of a buffer.
struct Cells {
  uint64_t buffer;
  uint32_t at = 0, count = 4;
  uint64_t address() const {
    return (buffer << 20) + 4 * at;
  }
  Access access(bool write) const {
    return {buffer << 20, 4 * at, 4 * (at + count), write};
  }
};

inline uint64_t fired(Rule rule) {
  return rewrite_counters().rules[size_t(rule)].fired;
}
inline uint64_t missed(Rule rule, Miss why) {
  return rewrite_counters().rules[size_t(rule)].missed[size_t(why)];
}

struct BuiltKernel : Kernel {
  BuiltKernel() {
    state_ = State::Built;
  }
};

class Kernels : public FusedKernels {
 public:
  void start(const Kernel&) override {}
  const Kernel* find(const JoinedKernel& joined) override {
    bool heads = std::holds_alternative<RopeCacheVariant>(joined);
    if (heads ? refuses_heads : refuses_next()) {
      refused_.push_back(joined);
      return nullptr;
    }
    for (auto& k : known_) {
      if (k.first == joined) {
        return &k.second;
      }
    }
    auto& kernel = known_
                       .emplace_back(
                           std::piecewise_construct,
                           std::forward_as_tuple(joined),
                           std::forward_as_tuple())
                       .second;
    auto describe = [&](auto& v) {
      auto defines = v.defines();
      kernel.name = log_name(v.file, defines);
    };
    std::visit(describe, joined);
    return &kernel;
  }
  bool refused(const JoinedKernel& v) const override {
    return std::find(refused_.begin(), refused_.end(), v) != refused_.end();
  }
  bool fits_heads(uint64_t count) const override {
    return count <= most_heads;
  }
  bool fits(const JoinedKernel& v) const override {
    return fit_registers(policy, v);
  }
  // The variant of a kernel that this has found, if it is a V.
  template <typename V>
  const V* get(const Kernel* kernel) const {
    for (auto& k : known_) {
      if (&k.second == kernel) {
        return std::get_if<V>(&k.first);
      }
    }
    return nullptr;
  }
  template <typename V>
  size_t count() const {
    return std::count_if(known_.begin(), known_.end(), [](auto& k) {
      return std::holds_alternative<V>(k.first);
    });
  }
  bool refuses_heads = false;
  uint64_t most_heads = ~uint64_t(0);
  int refuses = 0; // how many to refuse first
  Policy policy; // of the widest class

 private:
  bool refuses_next() {
    return refuses > 0 && refuses-- > 0;
  }
  std::deque<std::pair<JoinedKernel, BuiltKernel>> known_;
  std::vector<JoinedKernel> refused_;
};

class List {
 public:
  std::vector<Record> records;
  std::vector<Access> accesses;
  std::vector<std::byte> arguments;

  // y = x @ w^T; scales and biases come after w in its buffer.
  List& product(
      Cells x,
      Cells w,
      Cells y,
      RowsVariant v = usual_matvec(),
      bool in_memory = false) {
    ProductArgs args{};
    args.M = args.m_tiles = 1;
    args.N = y.count;
    args.K = x.count;
    Cells scales{w.buffer, w.at + w.count, 1},
        side{w.buffer, w.at + w.count + 1, 1};
    add({x, w, scales, side},
        {y},
        ProductRecord{v},
        &args,
        sizeof args,
        in_memory);
    return *this;
  }
  List& sum(Cells a, Cells b, Cells y, Type t = Type::f32) {
    uint64_t n = y.count;
    add({a, b}, {y}, AddRecord{t}, &n, 8);
    return *this;
  }
  List& gate(Cells gate, Cells up, Cells y, bool up_first = false) {
    uint64_t n = y.count;
    GateRecord descriptor{Type::f32, GATE_SILU, up_first};
    up_first ? add({up, gate}, {y}, descriptor, &n, 8)
             : add({gate, up}, {y}, descriptor, &n, 8);
    return *this;
  }
  List& norm(Cells x, Cells w, Cells y, uint64_t rows = 1) {
    NormArgs args{};
    args.rows = {rows, x.count, 0, 1, x.count};
    NormRecord descriptor{
        Type::f32, w.count > 0, true, 32, heads_of(x.count, {})};
    w.count ? add({x, w}, {y}, descriptor, &args, sizeof args)
            : add({x}, {y}, descriptor, &args, sizeof args);
    return *this;
  }
  // Three axes at most, which become the last ones; axes of one head have no
  // strides.
  static Heads heads_of(uint32_t D, std::initializer_list<Heads::Axis> axes) {
    Heads h{.D = D};
    auto* to = std::end(h.axes) - axes.size();
    for (auto a : axes) {
      *to++ = a.extent > 1 ? a : Heads::Axis{};
    }
    return h;
  }
  // Rows of n items, from one to the next `step`; as heads they have these
  // axes, or one.
  List& norm_heads(
      Cells x,
      Cells w,
      Cells y,
      uint32_t n,
      int64_t step = 0,
      std::initializer_list<Heads::Axis> axes = {}) {
    NormArgs args{};
    Heads::Axis all{int(y.count / n), int(step ? step : n), int(n)};
    Heads heads = axes.size() ? heads_of(n, axes) : heads_of(n, {all});
    args.rows = {y.count / n, step ? step : n, 0, 1, n};
    args.w_stride = 1;
    args.eps = 0.5f;
    NormRecord descriptor{Type::f32, w.count > 0, true, 32, heads};
    w.count ? add({x, w}, {y}, descriptor, &args, sizeof args)
            : add({x}, {y}, descriptor, &args, sizeof args);
    return *this;
  }
  // Of B x N x L heads of D items, of which 2 half_dims turn.
  struct Turn {
    uint32_t D = 2, half_dims = 1, N = 2, L = 1, B = 1;
    int64_t b = 0, n = 0, t = 0; // x's strides; all 0: without gaps
    bool traditional = false;
    float scale = 1;
    int64_t d = 1;
  };
  List& rope(Cells x, Cells offset, Cells y, Turn turn, Cells freqs = {0}) {
    RopeArgs args{};
    bool dense = !turn.b && !turn.n && !turn.t;
    args.b_stride = dense ? turn.N * turn.L * turn.D : turn.b;
    args.n_stride = dense ? turn.L * turn.D : turn.n;
    args.t_stride = dense ? turn.D : turn.t;
    args.d_stride = turn.d;
    args.offset_stride = offset.count > 1;
    args.freqs_stride = 1;
    args.B = turn.B;
    args.N = turn.N;
    args.L = turn.L;
    args.D = turn.D;
    args.half_dims = turn.half_dims;
    args.heads = 1;
    args.columns = turn.D;
    args.scale = turn.scale;
    args.log2_base = 13;
    RopeRecord descriptor{Type::f32, turn.traditional, freqs.buffer != 0};
    int row = int(turn.D), head = row * int(turn.L);
    if (turn.d == 1) {
      descriptor.heads = heads_of(
          turn.D,
          {{int(turn.B), int(args.b_stride), head * int(turn.N)},
           {int(turn.N), int(args.n_stride), head},
           {int(turn.L), int(args.t_stride), row}});
    }
    freqs.buffer ? add({x, offset, freqs}, {y}, descriptor, &args, sizeof args)
                 : add({x, offset}, {y}, descriptor, &args, sizeof args);
    return *this;
  }
  // All of src; from each `run` of its items to the next `step` in dst. The
  // heads are runs, or these.
  List&
  copy(Cells src, Cells dst, uint32_t run, int step, const Heads& heads = {}) {
    CopyRecord descriptor{4, heads};
    if (heads.D == 0) {
      descriptor.heads =
          heads_of(run, {{int(src.count / run), int(run), step}});
    }
    uint64_t count = src.count;
    add({src}, {dst}, descriptor, &count, 8);
    return *this;
  }
  List& other(std::initializer_list<Cells> reads, Cells y, uint64_t salt = 1) {
    add(reads, {y}, {}, &salt, 8);
    return *this;
  }

  void rewrite(FusedKernels& kernels) {
    mlx::core::vulkan::rewrite(records, accesses, arguments, kernels);
  }

  const std::byte* args_of(const Record& r) const {
    return r.args_in_memory ? arguments.data() + r.args_offset : r.pushed;
  }
  RopeCacheArgs heads(size_t i) const {
    RopeCacheArgs a;
    std::memcpy(&a, args_of(records[i]), sizeof a);
    return a;
  }
  FusedMatvecArgs<MAX_SETS> fused(size_t i) const {
    FusedMatvecArgs<MAX_SETS> a{};
    std::memcpy(&a, args_of(records[i]), records[i].args_size);
    return a;
  }

 protected:
  void add(
      std::initializer_list<Cells> reads,
      std::initializer_list<Cells> writes,
      const Descriptor& descriptor,
      const void* params,
      size_t size,
      bool in_memory = false) {
    Record& r = records.emplace_back();
    r.descriptor = descriptor;
    r.first_access = uint32_t(accesses.size());
    std::vector<std::byte> block;
    auto put = [&](const void* p, size_t n) {
      auto* b = static_cast<const std::byte*>(p);
      block.insert(block.end(), b, b + n);
    };
    for (bool write : {false, true}) {
      for (auto& c : write ? writes : reads) {
        uint64_t address = c.address();
        put(&address, 8);
        accesses.push_back(c.access(write));
      }
    }
    put(params, size);
    r.access_count = uint32_t(accesses.size()) - r.first_access;
    r.args_size = uint32_t(block.size());
    r.args_in_memory = in_memory;
    if (in_memory) {
      r.args_offset = uint32_t(arguments.size());
      arguments.insert(arguments.end(), block.begin(), block.end());
      arguments.resize((arguments.size() + 15) / 16 * 16);
    } else {
      std::memcpy(r.pushed, block.data(), block.size());
    }
  }
};

class Machine {
 public:
  explicit Machine(uint32_t seed) : random_(seed) {}
  virtual ~Machine() = default;

  // In the order of the records, or in that of order() with a shuffle.
  void run(const List& list, const Kernels& kernels, uint64_t shuffle = 0) {
    if (!shuffle) {
      for (auto& r : list.records) {
        run(list, r, kernels);
      }
      return;
    }
    auto o = order(list.records, list.accesses, {.shuffle = shuffle});
    for (auto i : o.records) {
      run(list, list.records[i], kernels);
    }
  }
  const std::map<uint64_t, uint64_t>& memory() const {
    return memory_;
  }

 protected:
  // Records of other kinds; false: it is none of them.
  virtual bool run_more(const List&, const Record&, const Kernels&) {
    return false;
  }

  static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ (b + 0x9e3779b97f4a7c15ull)) * 0xbf58476d1ce4e5b9ull;
    return a ^ (a >> 29);
  }
  uint64_t get(uint64_t address) {
    auto [it, fresh] = memory_.try_emplace(address, mix(address, 99));
    return it->second;
  }
  void put(uint64_t address, uint64_t v) {
    memory_[address] = v;
  }
  std::vector<uint32_t> shuffled(size_t n) {
    std::vector<uint32_t> order(n);
    for (uint32_t i = 0; i < n; ++i) {
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }
  using Row = std::vector<uint64_t>;
  Row row(uint64_t x, uint32_t k) {
    Row r;
    for (uint32_t i = 0; i < k; ++i) {
      r.push_back(get(x + 4 * i));
    }
    return r;
  }
  // w: 0 for none.
  Row normed(uint64_t x, uint64_t w, uint32_t k) {
    Row r = row(x, k);
    uint64_t all = 3;
    for (auto v : r) {
      all = mix(all, v);
    }
    for (uint32_t i = 0; i < k; ++i) {
      r[i] = mix(mix(all, r[i]), w ? get(w + 4 * i) : 0);
    }
    return r;
  }
  uint64_t
  dot(const Row& x, uint64_t w, uint64_t scales, uint64_t side, uint32_t n) {
    uint64_t v = mix(get(w + 4 * n), mix(get(scales), get(side)));
    for (auto item : x) {
      v = mix(v, item);
    }
    return v;
  }
  static uint64_t sum_of(uint64_t a, uint64_t b) {
    return mix(a, 5) + mix(b, 5);
  }
  static uint64_t gate_of(uint64_t gate, uint64_t up) {
    return mix(mix(gate, 17), up);
  }

  // The row of a head, turned at a position that depends on all of these.
  Row turned(Row row, const RopePart& q, uint32_t b, uint32_t t) {
    uint64_t position = mix(get(q.offset + 4 * b * q.offset_stride), t);
    position = mix(position, uint64_t(1000 * q.scale + q.log2_base));
    Row r = row;
    for (uint32_t i = 0; i < 2 * q.half_dims; ++i) {
      bool traditional = q.flags & ROPE_TRADITIONAL;
      uint32_t h = q.half_dims, pair = traditional ? i / 2 : i % h;
      uint32_t other = traditional ? i ^ 1 : i < h ? i + h : i - h;
      uint64_t f = q.freqs ? get(q.freqs + 4 * pair * q.freqs_stride) : pair;
      r[i] = mix(mix(row[i], row[other] + (other < i)), mix(position, f));
    }
    return r;
  }
  void put_row(uint64_t to, const Row& r) {
    for (size_t i = 0; i < r.size(); ++i) {
      put(to + 4 * i, r[i]);
    }
  }
  struct Head {
    const RopePart* part;
    uint32_t b, n, t;
    uint64_t in(uint64_t address, RopeStrides s) const {
      return address + 4 * (int(b) * s.b + int(n) * s.n + int(t) * s.t);
    }
  };
  static std::vector<Head> all_heads(const RopePart& q, uint32_t B) {
    std::vector<Head> heads;
    for (uint32_t i = 0; i < B * q.N * q.L; ++i) {
      heads.push_back({&q, i / (q.N * q.L), i / q.L % q.N, i % q.L});
    }
    return heads;
  }
  void run_rope(const std::byte* bytes, bool freqs, bool traditional) {
    auto word = [&](size_t i) {
      uint64_t v;
      std::memcpy(&v, bytes + 8 * i, 8);
      return v;
    };
    RopeArgs a;
    std::memcpy(&a, bytes + 8 * (3 + freqs), sizeof a);
    RopePart q{};
    q.offset = word(1);
    q.freqs = freqs ? word(2) : 0;
    q.offset_stride = int(a.offset_stride);
    q.freqs_stride = int(a.freqs_stride);
    q.N = a.N;
    q.L = a.L;
    q.half_dims = a.half_dims;
    q.flags = traditional ? ROPE_TRADITIONAL : 0;
    q.scale = a.scale;
    q.log2_base = a.log2_base;
    q.x_strides = {int(a.b_stride), int(a.n_stride), int(a.t_stride)};
    q.y_strides = {int(a.N * a.L * a.D), int(a.L * a.D), int(a.D)};
    auto heads = all_heads(q, a.B);
    for (auto i : shuffled(heads.size())) {
      auto& h = heads[i];
      Row x;
      for (uint32_t d = 0; d < a.D; ++d) {
        x.push_back(get(h.in(word(0), q.x_strides) + 4 * d * a.d_stride));
      }
      put_row(h.in(word(2 + freqs), q.y_strides), turned(x, q, h.b, h.t));
    }
  }
  void run_copy(const std::byte* bytes, const Heads& h) {
    uint64_t at[2];
    std::memcpy(at, bytes, 16);
    for (auto i : shuffled(h.count() * h.D)) {
      int64_t rest = i / h.D, from = i % h.D, to = from;
      for (auto& a : h.axes) {
        from += rest % a.extent * a.in;
        to += rest % a.extent * a.out;
        rest /= a.extent;
      }
      put(at[1] + 4 * to, get(at[0] + 4 * from));
    }
  }
  // Head by head, as workgroups may come.
  void run_heads(const RopeCacheArgs& a, int lanes) {
    std::vector<Head> heads;
    for (auto& q : a.parts) {
      if (q.groups) {
        REQUIRE(q.blocks == (q.N * lanes + 127) / 128);
        auto more = all_heads(q, q.groups / (q.blocks * q.L));
        heads.insert(heads.end(), more.begin(), more.end());
      }
    }
    for (auto i : shuffled(heads.size())) {
      auto& h = heads[i];
      auto& q = *h.part;
      uint64_t from = h.in(q.x, q.x_strides);
      Row r =
          q.flags & ROPE_NORMED ? normed(from, q.weight, q.D) : row(from, q.D);
      if (q.normed) {
        put_row(h.in(q.normed, q.normed_strides), r);
      }
      if (q.half_dims) {
        r = turned(r, q, h.b, h.t);
        put_row(h.in(q.y, q.y_strides), r);
      }
      if (q.cache) {
        put_row(h.in(q.cache, q.cache_strides), r);
      }
    }
  }

  void run(const List& list, const Record& r, const Kernels& kernels) {
    if (auto* v = kernels.get<FusedQmvVariant>(r.kernel)) {
      return run_fused(list, r, v->GATE, v->NORM);
    }
    if (auto* v = kernels.get<FusedFragmentsVariant>(r.kernel)) {
      return run_fused(list, r, v->GATE, false);
    }
    if (run_more(list, r, kernels)) {
      return;
    }
    if (auto* v = kernels.get<RopeCacheVariant>(r.kernel)) {
      RopeCacheArgs a;
      std::memcpy(&a, list.args_of(r), sizeof a);
      return run_heads(a, v->LANES);
    }
    if (auto* rope = std::get_if<RopeRecord>(&r.descriptor)) {
      return run_rope(list.args_of(r), rope->freqs, rope->traditional);
    }
    if (auto* copy = std::get_if<CopyRecord>(&r.descriptor)) {
      return run_copy(list.args_of(r), copy->heads);
    }
    auto word = [&](size_t i) {
      uint64_t v;
      std::memcpy(&v, list.args_of(r) + 8 * i, 8);
      return v;
    };
    auto accesses =
        std::span(list.accesses).subspan(r.first_access, r.access_count);
    uint32_t n = uint32_t(accesses.back().end - accesses.back().begin) / 4;
    if (std::get_if<ProductRecord>(&r.descriptor)) {
      uint32_t k = uint32_t(accesses[0].end - accesses[0].begin) / 4;
      for (auto i : shuffled(n)) {
        put(word(4) + 4 * i,
            dot(row(word(0), k), word(1), word(2), word(3), i));
      }
    } else if (auto* norm = std::get_if<NormRecord>(&r.descriptor)) {
      size_t operands = norm->weight ? 3 : 2;
      NormArgs a;
      std::memcpy(&a, list.args_of(r) + 8 * operands, sizeof a);
      uint64_t w = norm->weight ? word(1) : 0, y = word(operands - 1);
      for (auto i : shuffled(a.rows.count)) {
        uint64_t x = word(0) +
            4 *
                (i / a.rows.inner * a.rows.outer_stride +
                 i % a.rows.inner * a.rows.inner_stride);
        put_row(y + 4 * i * a.rows.n, normed(x, w, a.rows.n));
      }
    } else if (auto* g = std::get_if<GateRecord>(&r.descriptor)) {
      for (auto i : shuffled(n)) {
        put(word(2) + 4 * i,
            gate_of(
                get(word(g->operand) + 4 * i),
                get(word(1 - g->operand) + 4 * i)));
      }
    } else if (std::get_if<AddRecord>(&r.descriptor)) {
      for (auto i : shuffled(n)) {
        put(word(2) + 4 * i,
            sum_of(get(word(0) + 4 * i), get(word(1) + 4 * i)));
      }
    } else {
      uint64_t v = word(r.args_size / 8 - 1);
      for (auto& a : accesses) {
        for (uint64_t at = a.begin; !a.write && at < a.end; at += 4) {
          v = mix(v, get(a.base + at));
        }
      }
      for (uint32_t i = 0; i < n; ++i) {
        put(word(accesses.size() - 1) + 4 * i, mix(v, i));
      }
    }
  }

  // Item by item, as workgroups may come.
  void run_fused(const List& list, const Record& r, bool gates, bool norms) {
    FusedMatvecArgs<MAX_SETS> a{};
    std::memcpy(&a, list.args_of(r), r.args_size);
    std::vector<std::pair<uint32_t, uint32_t>> items; // set, output
    uint32_t sets = gates ? 1 : a.set_count;
    for (uint32_t s = 0; s < sets; ++s) {
      for (uint32_t n = 0; n < a.sets[s].N; ++n) {
        items.push_back({s, n});
      }
    }
    auto y_of = [&](uint32_t s, uint32_t n) {
      auto& m = a.sets[s];
      Row x = norms ? normed(a.x, a.norm_weight, a.K) : row(a.x, a.K);
      return dot(x, m.w, m.scales, m.side, n);
    };
    for (auto i : shuffled(items.size())) {
      auto [s, n] = items[i];
      if (norms && i == 0) {
        Row made = normed(a.x, a.norm_weight, a.K);
        for (uint32_t k = 0; k < a.K; ++k) {
          put(a.normed + 4 * k, made[k]);
        }
      }
      auto& m = a.sets[s];
      uint64_t y = y_of(s, n);
      if (gates) {
        uint64_t up = y_of(1, n);
        put(m.y + 4 * n, y);
        put(a.sets[1].y + 4 * n, up);
        put(a.gated + 4 * n, gate_of(y, up));
      } else if (m.addend) {
        uint64_t sum = sum_of(y, get(m.addend + 4 * n));
        put(m.y + 4 * n, y);
        put(m.sum + 4 * n, sum);
      } else {
        put(m.y + 4 * n, y);
      }
    }
  }

  std::mt19937 random_;
  std::map<uint64_t, uint64_t> memory_;
};

} // namespace rewriting

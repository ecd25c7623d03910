// Lists of records for rewrite.h, and an interpreter of them: a memory of cells
// of four bytes, in which products, sums and gates are hashes of what they
// read. Workgroups run in random order, each item by itself, so that what a
// joined kernel reads too late or writes too early shows.
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

#include "kernels/rows.h"
#include "pipeline/pipeline.h"
#include "runtime/order.h"
#include "runtime/rewrite.h"
#include "runtime/rewrite_variants.h"

namespace rewriting {

using namespace mlx::core::vulkan;

inline QmvVariant usual_matvec() {
  QmvVariant v{{{Type::f32, {4, 32, CODE_INTEGER, SCALE_AS_T, true}, true}, 0}};
  v.OUTS = 1;
  v.BLOCK = 2;
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

class Kernels : public FusedKernels {
 public:
  const Kernel* find(const FusedQmvVariant& v) override {
    if (refuses > 0) {
      --refuses;
      refused_.push_back(v);
      return nullptr;
    }
    for (auto& k : all) {
      if (k.first == v) {
        return &k.second;
      }
    }
    Kernel& kernel = all.emplace_back(
                            std::piecewise_construct,
                            std::forward_as_tuple(v),
                            std::forward_as_tuple())
                         .second;
    kernel.args_size = uint32_t(
        offsetof(FusedMatvecArgs<MAX_SETS>, sets) + v.SETS * sizeof(MatvecSet));
    return &kernel;
  }
  bool refused(const FusedQmvVariant& v) const override {
    return std::find(refused_.begin(), refused_.end(), v) != refused_.end();
  }
  bool fits(const FusedQmvVariant& v) const override {
    return fits_registers(caps, v);
  }
  const Kernel* find(const RouterVariant& v) override {
    return find_in(routers, v, 6 * 8 + sizeof(RouterArgs));
  }
  const Kernel* find(const ExpertVariant& v) override {
    return find_in(experts, v, sizeof(ExpertArgs));
  }
  bool fits(const ExpertVariant& v) const override {
    return fits_registers(caps, v);
  }
  template <typename V>
  static const V* variant_in(
      const std::deque<std::pair<V, Kernel>>& all,
      const Kernel* kernel) {
    for (auto& k : all) {
      if (&k.second == kernel) {
        return &k.first;
      }
    }
    return nullptr;
  }
  const FusedQmvVariant* variant_of(const Kernel* kernel) const {
    return variant_in(all, kernel);
  }
  std::deque<std::pair<FusedQmvVariant, Kernel>> all;
  std::deque<std::pair<RouterVariant, Kernel>> routers;
  std::deque<std::pair<ExpertVariant, Kernel>> experts;
  int refuses = 0; // how many to refuse first
  Caps caps; // of the widest class

 private:
  template <typename V>
  const Kernel*
  find_in(std::deque<std::pair<V, Kernel>>& all, const V& v, size_t args_size) {
    if (refuses > 0) {
      --refuses;
      return nullptr;
    }
    for (auto& k : all) {
      if (k.first == v) {
        return &k.second;
      }
    }
    Kernel& kernel = all.emplace_back(
                            std::piecewise_construct,
                            std::forward_as_tuple(v),
                            std::forward_as_tuple())
                         .second;
    kernel.args_size = uint32_t(args_size);
    return &kernel;
  }
  std::vector<FusedQmvVariant> refused_;
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
      QmvVariant v = usual_matvec(),
      bool in_memory = false) {
    ProductArgs args{};
    args.M = args.m_tiles = 1;
    args.N = y.count;
    args.K = x.count;
    Cells scales{w.buffer, w.at + w.count, 1},
        side{w.buffer, w.at + w.count + 1, 1};
    add({x, w, scales, side},
        {y},
        MatvecRecord{v},
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
    GateRecord what{Type::f32, GATE_SILU, up_first};
    up_first ? add({up, gate}, {y}, what, &n, 8)
             : add({gate, up}, {y}, what, &n, 8);
    return *this;
  }
  List& norm(Cells x, Cells w, Cells y, uint64_t rows = 1) {
    NormArgs args{};
    args.rows.count = rows;
    args.rows.n = x.count;
    NormRecord what{Type::f32, w.count > 0, true, 32};
    w.count ? add({x, w}, {y}, what, &args, sizeof args)
            : add({x}, {y}, what, &args, sizeof args);
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
  FusedMatvecArgs<MAX_SETS> fused(size_t i) const {
    FusedMatvecArgs<MAX_SETS> a{};
    std::memcpy(&a, args_of(records[i]), records[i].args_size);
    return a;
  }

 protected:
  void add(
      std::initializer_list<Cells> reads,
      std::initializer_list<Cells> writes,
      const Descriptor& what,
      const void* params,
      size_t size,
      bool in_memory = false) {
    Record& r = records.emplace_back();
    r.what = what;
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

  void run(const List& list, const Record& r, const Kernels& kernels) {
    if (auto* v = kernels.variant_of(r.kernel)) {
      return run_fused(list, r, *v);
    }
    if (run_more(list, r, kernels)) {
      return;
    }
    auto word = [&](size_t i) {
      uint64_t v;
      std::memcpy(&v, list.args_of(r) + 8 * i, 8);
      return v;
    };
    auto accesses =
        std::span(list.accesses).subspan(r.first_access, r.access_count);
    uint32_t n = uint32_t(accesses.back().end - accesses.back().begin) / 4;
    if (std::get_if<MatvecRecord>(&r.what)) {
      uint32_t k = uint32_t(accesses[0].end - accesses[0].begin) / 4;
      for (auto i : shuffled(n)) {
        put(word(4) + 4 * i,
            dot(row(word(0), k), word(1), word(2), word(3), i));
      }
    } else if (auto* norm = std::get_if<NormRecord>(&r.what)) {
      Row made = normed(word(0), norm->weight ? word(1) : 0, n);
      for (auto i : shuffled(n)) {
        put(word(norm->weight ? 2 : 1) + 4 * i, made[i]);
      }
    } else if (auto* g = std::get_if<GateRecord>(&r.what)) {
      for (auto i : shuffled(n)) {
        put(word(2) + 4 * i,
            gate_of(
                get(word(g->operand) + 4 * i),
                get(word(1 - g->operand) + 4 * i)));
      }
    } else if (std::get_if<AddRecord>(&r.what)) {
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
  void run_fused(const List& list, const Record& r, const FusedQmvVariant& v) {
    FusedMatvecArgs<MAX_SETS> a{};
    std::memcpy(&a, list.args_of(r), r.args_size);
    std::vector<std::pair<uint32_t, uint32_t>> items; // set, output
    uint32_t sets = v.GATE ? 1 : a.set_count;
    for (uint32_t s = 0; s < sets; ++s) {
      for (uint32_t n = 0; n < a.sets[s].N; ++n) {
        items.push_back({s, n});
      }
    }
    auto y_of = [&](uint32_t s, uint32_t n) {
      auto& m = a.sets[s];
      Row x = v.NORM ? normed(a.x, a.norm_weight, a.K) : row(a.x, a.K);
      return dot(x, m.w, m.scales, m.side, n);
    };
    for (auto i : shuffled(items.size())) {
      auto [s, n] = items[i];
      if (v.NORM && i == 0) {
        Row made = normed(a.x, a.norm_weight, a.K);
        for (uint32_t k = 0; k < a.K; ++k) {
          put(a.normed + 4 * k, made[k]);
        }
      }
      auto& m = a.sets[s];
      uint64_t y = y_of(s, n);
      if (v.GATE) {
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

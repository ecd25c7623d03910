// Lists of what layers of experts do, for rewrite_moe.h, and their interpreter,
// after rewrite_program.h. An order is hashes, not positions, so that what is
// taken by it is a hash of that and of the whole row.
#pragma once

#include "null/rewrite_program.h"

namespace rewriting {

inline QmvVariant gathered_matvec() {
  QmvVariant v = usual_matvec();
  v.BATCH = BATCH_GATHER;
  return v;
}

// Cells of an index, by up to two axes.
struct Indices {
  Cells cells;
  int64_t outer = 0, inner = 1;
};

class ExpertList : public List {
 public:
  // Those of a List, in a row with its own.
  template <typename... Args>
  ExpertList& product(Args... args) {
    return List::product(args...), *this;
  }
  template <typename... Args>
  ExpertList& sum(Args... args) {
    return List::sum(args...), *this;
  }
  template <typename... Args>
  ExpertList& gate(Args... args) {
    return List::gate(args...), *this;
  }
  template <typename... Args>
  ExpertList& norm(Args... args) {
    return List::norm(args...), *this;
  }
  ExpertList&
  other(std::initializer_list<Cells> reads, Cells y, uint64_t salt = 1) {
    return List::other(reads, y, salt), *this;
  }
  ExpertList& softmax(Cells x, Cells y, uint32_t rows = 1, int chunks = 1) {
    SoftmaxVariant v{Type::f32, 32, chunks, true};
    RowArgs args{rows, y.count / rows, 0, 1, y.count / rows};
    return put({x}, y, SoftmaxRecord{v, rows, y.count / rows}, args);
  }
  ExpertList& sort(Cells x, Cells y, uint32_t rows = 1) {
    uint64_t n = y.count / rows;
    return put({x}, y, ArgSortRecord{Type::f32, rows, uint32_t(n)}, n);
  }
  // The index has `pitch` cells a row, of which it names k.
  ExpertList&
  take(Cells x, Cells index, Cells y, uint32_t rows = 1, uint32_t pitch = 4) {
    uint64_t k = y.count / rows;
    TakeRecord descriptor{4, rows, x.count / rows, uint32_t(k), pitch};
    return put({x, index}, y, descriptor, k);
  }
  ExpertList& sum_up(Cells x, Cells y, uint32_t rows, uint32_t inner) {
    uint32_t extent = x.count / rows / inner;
    return put({x}, y, SumRecord{Type::f32, rows, extent, inner}, uint64_t(0));
  }
  ExpertList& per_row(Cells a, Cells b, Cells y, bool divides) {
    PerRowRecord descriptor{Type::f32, divides, b.count, y.count / b.count};
    return put({a, b}, y, descriptor, uint64_t(0));
  }
  // Of `products` rows of N = y.count / products. x has one row, or one each.
  ExpertList& product_of(
      Cells x,
      Cells w,
      Indices lhs,
      Indices rhs,
      Cells y,
      uint32_t products = 2,
      uint32_t inner = 2,
      QmvVariant v = gathered_matvec()) {
    StackedProductArgs args{};
    args.M = args.m_tiles = 1;
    args.N = y.count / products;
    args.K = 4;
    auto& s = args.stack;
    s.x_matrix = x.count > 4 ? 4 : 0;
    s.w_matrix = 16;
    s.batch = products;
    s.ndim = 2;
    s.shape[0] = int(products / inner);
    s.shape[1] = int(inner);
    s.strides[0][0] = lhs.outer;
    s.strides[0][1] = lhs.inner;
    s.strides[1][0] = rhs.outer;
    s.strides[1][1] = rhs.inner;
    Cells scales{w.buffer, w.at + w.count, 1},
        side{w.buffer, w.at + w.count + 1, 1};
    add({x, w, scales, side, lhs.cells, rhs.cells},
        {y},
        GatheredRecord{v},
        &args,
        sizeof args,
        true);
    return *this;
  }

 private:
  template <typename Args>
  ExpertList& put(
      std::initializer_list<Cells> reads,
      Cells y,
      const Descriptor& descriptor,
      const Args& args) {
    add(reads, {y}, descriptor, &args, sizeof args, sizeof args > 64);
    return *this;
  }
};

class ExpertMachine : public Machine {
 public:
  using Machine::Machine;

 private:
  Row gates_of(uint64_t x, uint32_t n) {
    return normed(x, 0, n);
  }
  static uint64_t place(const Row& gates, uint32_t p) {
    return mix(all_of(gates), p);
  }
  static uint64_t all_of(const Row& gates) {
    uint64_t v = 7;
    for (auto g : gates) {
      v = mix(v, g);
    }
    return v;
  }
  static uint64_t taken(const Row& gates, uint64_t index) {
    return mix(all_of(gates), index);
  }
  static uint64_t total_of(const Row& items) {
    return mix(all_of(items), 0);
  }
  static uint64_t scaled(uint64_t a, uint64_t b, bool divides) {
    return mix(mix(a, b), divides);
  }

  uint64_t
  product(const ExpertSet& s, const ExpertArgs& a, uint32_t b, uint32_t n) {
    int64_t i = b / s.inner, j = b % s.inner;
    int64_t l = i * s.lhs_strides[0] + j * s.lhs_strides[1];
    int64_t r = i * s.rhs_strides[0] + j * s.rhs_strides[1];
    uint64_t v = mix(get(s.rhs + 4 * r), a.x_matrix ? get(s.lhs + 4 * l) : 0);
    Row x = row(a.x + 4 * l * a.x_matrix, a.K);
    return mix(v, dot(x, s.w, s.scales, s.side, n));
  }

  bool run_more(const List& list, const Record& r, const Kernels& kernels)
      override {
    auto* args = list.args_of(r);
    if (kernels.get<RouterVariant>(r.kernel)) {
      run_router(args);
      return true;
    }
    if (auto* v = kernels.get<ExpertVariant>(r.kernel)) {
      ExpertArgs a;
      std::memcpy(&a, args, sizeof a);
      v->GATE ? run_gate(a) : run_mix(a, *v);
      return true;
    }
    auto accesses =
        std::span(list.accesses).subspan(r.first_access, r.access_count);
    uint64_t at[8] = {};
    std::memcpy(at, args, 8 * accesses.size());
    return run_plain(r, at, args + 8 * accesses.size());
  }

  void run_router(const std::byte* bytes) {
    uint64_t at[6];
    RouterArgs a;
    std::memcpy(at, bytes, sizeof at);
    std::memcpy(&a, bytes + sizeof at, sizeof a);
    for (auto r : shuffled(a.rows)) {
      Row gates = gates_of(at[0] + 4 * r * a.n, a.n);
      Row chosen;
      for (uint32_t i = 0; i < a.n; ++i) {
        put(at[1] + 4 * (r * a.n + i), gates[i]);
        put(at[2] + 4 * (r * a.n + i), place(gates, i));
      }
      for (uint32_t i = 0; i < a.k && at[3]; ++i) {
        chosen.push_back(taken(gates, place(gates, a.first + i)));
        put(at[3] + 4 * (r * a.k + i), chosen[i]);
      }
      if (at[4]) {
        uint64_t total = total_of(chosen);
        put(at[4] + 4 * r, total);
        for (uint32_t i = 0; i < a.k && at[5]; ++i) {
          put(at[5] + 4 * (r * a.k + i), scaled(chosen[i], total, true));
        }
      }
    }
  }

  void run_gate(const ExpertArgs& a) {
    uint32_t products = a.groups / a.n_tiles;
    for (auto i : shuffled(products * a.N)) {
      uint32_t b = i / a.N, n = i % a.N;
      uint64_t gate = product(a.sets[0], a, b, n);
      uint64_t up = product(a.sets[1], a, b, n);
      put(a.sets[0].y + 4 * i, gate);
      put(a.sets[1].y + 4 * i, up);
      put(a.gated + 4 * i, gate_of(gate, up));
    }
  }

  void run_mix(const ExpertArgs& a, const ExpertVariant& v) {
    uint32_t rows = a.groups / a.n_tiles;
    for (auto i : shuffled(rows * a.N)) {
      uint32_t r = i / a.N, n = i % a.N;
      Row weighted;
      for (uint32_t e = 0; e < v.EXPERTS; ++e) {
        uint32_t b = r * v.EXPERTS + e;
        uint64_t y = product(a.sets[0], a, b, n);
        weighted.push_back(scaled(y, get(a.weights + 4 * b), false));
        put(a.sets[0].y + 4 * (b * a.N + n), y);
        put(a.weighted + 4 * (b * a.N + n), weighted[e]);
      }
      uint64_t mixed = total_of(weighted);
      uint64_t sum = a.addend ? sum_of(mixed, get(a.addend + 4 * i)) : 0;
      put(a.mixed + 4 * i, mixed);
      if (a.addend) {
        put(a.sum + 4 * i, sum);
      }
    }
  }

  bool run_plain(const Record& r, const uint64_t* at, const std::byte* more) {
    if (auto* s = std::get_if<SoftmaxRecord>(&r.descriptor)) {
      for (uint32_t i = 0; i < s->rows; ++i) {
        Row gates = gates_of(at[0] + 4 * i * s->n, s->n);
        for (uint32_t k = 0; k < s->n; ++k) {
          put(at[1] + 4 * (i * s->n + k), gates[k]);
        }
      }
    } else if (auto* o = std::get_if<ArgSortRecord>(&r.descriptor)) {
      for (uint32_t i = 0; i < o->rows * o->n; ++i) {
        Row gates = row(at[0] + 4 * (i / o->n * o->n), o->n);
        put(at[1] + 4 * i, place(gates, i % o->n));
      }
    } else if (auto* t = std::get_if<TakeRecord>(&r.descriptor)) {
      for (uint32_t i = 0; i < t->rows * t->k; ++i) {
        uint32_t row_at = i / t->k;
        Row gates = row(at[0] + 4 * row_at * t->n, t->n);
        uint64_t index = get(at[1] + 4 * (row_at * t->pitch + i % t->k));
        put(at[2] + 4 * i, taken(gates, index));
      }
    } else if (auto* u = std::get_if<SumRecord>(&r.descriptor)) {
      for (uint32_t i = 0; i < u->rows * u->inner; ++i) {
        Row items;
        for (uint32_t e = 0; e < u->extent; ++e) {
          uint32_t from = (i / u->inner * u->extent + e) * u->inner;
          items.push_back(get(at[0] + 4 * (from + i % u->inner)));
        }
        put(at[1] + 4 * i, total_of(items));
      }
    } else if (auto* p = std::get_if<PerRowRecord>(&r.descriptor)) {
      for (uint32_t i = 0; i < p->rows * p->n; ++i) {
        uint64_t b = get(at[1] + 4 * (i / p->n));
        put(at[2] + 4 * i, scaled(get(at[0] + 4 * i), b, p->divides));
      }
    } else if (std::holds_alternative<GatheredRecord>(r.descriptor)) {
      StackedProductArgs q;
      std::memcpy(&q, more, sizeof q);
      auto& s = q.stack;
      ExpertSet set{
          at[1],
          at[2],
          at[3],
          at[4],
          at[5],
          at[6],
          {s.strides[0][0], s.strides[0][1]},
          {s.strides[1][0], s.strides[1][1]},
          uint32_t(s.shape[1]),
          0};
      ExpertArgs a{};
      a.x = at[0];
      a.x_matrix = s.x_matrix;
      a.K = q.K;
      for (auto i : shuffled(s.batch * q.N)) {
        put(at[6] + 4 * i, product(set, a, i / q.N, i % q.N));
      }
    } else {
      return false;
    }
    return true;
  }
};

} // namespace rewriting

#include "kernels/exchange.h"
#include "ops/reduce/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

// Reductions of rows and of columns.
ReduceProblem
along_rows(const char* op, Type in, Type out, uint64_t outputs, uint64_t n) {
  return {
      .op = op,
      .in = in,
      .out = out,
      .outputs = outputs,
      .extent = n,
      .kept_extent = outputs,
      .kept_stride = static_cast<int64_t>(n),
      .reduced_stride = 1};
}
ReduceProblem
along_columns(const char* op, Type in, Type out, uint64_t outputs, uint64_t n) {
  ReduceProblem p = along_rows(op, in, out, outputs, n);
  p.kept_stride = 1;
  p.reduced_stride = outputs;
  return p;
}

void add(VariantSet& set, const ReduceProblem& p) {
  std::visit([&](const auto& v) { set.add(v); }, plan_reduce(p).variant);
}

// Rows and columns, plain or with what needs nests and 64-bit offsets.
void add_both(VariantSet& set, const char* op, Type in, Type out, bool plain) {
  for (auto p :
       {along_rows(op, in, out, 4096, 128),
        along_columns(op, in, out, 4096, 128)}) {
    p.even = plain;
    p.large = !plain;
    add(set, p);
  }
}

void add_reductions(VariantSet& set) {
  for (Type t : float_types) {
    // The last is a vector, of which parts are reduced first.
    for (auto [outputs, n] :
         {std::pair<uint64_t, uint64_t>{4096, 16},
          {4096, 128},
          {8, 512},
          {64, 4096},
          {1, 1 << 24}}) {
      for (bool aligned : {false, true}) {
        ReduceProblem p = along_rows("Sum", t, t, outputs, n);
        p.aligned = aligned;
        add(set, p);
      }
      add(set, along_columns("Sum", t, t, 128, n));
    }
    // By fours.
    for (uint64_t n : {8, 32, 16384}) {
      for (const char* op : {"Sum", "Max"}) {
        ReduceProblem p = along_columns(op, t, t, 8192, n);
        p.aligned = true;
        p.even = n > 8;
        add(set, p);
      }
    }
  }
  for (const char* op : {"Sum", "Prod", "Min", "Max"}) {
    bool ordered = op[0] == 'M';
    add_both(set, op, Type::f32, Type::f32, false);
    add_both(set, op, Type::i64, Type::i64, false);
    add_both(set, op, Type::u64, Type::u64, true);
    add_both(set, op, Type::c64, Type::c64, ordered);
    add_both(set, op, Type::f64, Type::f64, ordered);
    if (ordered) {
      add_both(set, op, Type::i8, Type::i8, false);
      add_both(set, op, Type::u16, Type::u16, true);
    } else {
      add_both(set, op, Type::bool_, Type::i32, true);
    }
  }
  for (Type t : {Type::bool_, Type::f16, Type::f64, Type::i64, Type::c64}) {
    add_both(set, "And", t, Type::bool_, true);
    add_both(set, "Or", t, Type::bool_, t != Type::bool_);
  }
}

void add_arg_reductions(VariantSet& set) {
  auto add =
      [&](const char* op, Type t, uint64_t outputs, uint64_t n, bool even) {
        ArgReducePlan plan = plan_arg_reduce({
            .op = op,
            .in = t,
            .outputs = outputs,
            .extent = n,
            .kept_stride = static_cast<int64_t>(n),
            .even = even,
            .large = !even,
        });
        set.add(plan.variant);
        if (plan.parts.splits > 1) {
          set.add(plan.join());
        }
      };
  for (Type t : float_types) {
    add("ArgMax", t, 4096, 16, true);
    add("ArgMax", t, 4096, 128, true);
    add("ArgMax", t, 1, 151936, true);
  }
  add("ArgMin", Type::f32, 1, 151936, false);
  for (Type t : {Type::bool_, Type::u8, Type::u64}) {
    add("ArgMin", t, 64, 512, false);
  }
  add("ArgMax", Type::i64, 1, 151936, true);
  for (const char* op : {"ArgMin", "ArgMax"}) {
    add(op, Type::c64, 64, 512, true);
    add(op, Type::f64, 1, 151936, true);
  }
}

void add_scans(VariantSet& set) {
  auto add = [&](const char* op,
                 Type t,
                 Type u,
                 bool reverse,
                 bool inclusive,
                 std::initializer_list<const char*> steps,
                 int lanes = 256) {
    for (const char* step : steps) {
      for (bool fours : {false, true}) {
        if (!fours || (step[0] != 'T' && lanes > 1)) {
          set.add(ScanVariant{
              .T = t,
              .U = u,
              .Acc = accumulator(u),
              .OP = op,
              .REVERSE = reverse,
              .INCLUSIVE = inclusive,
              .STEP = step,
              .FOURS = fours,
              .LANES = lanes});
        }
      }
    }
  };
  auto whole = {"Lines"};
  auto long_lines = {"Lines", "Totals", "Parts"};
  for (const char* op : {"Sum", "Prod", "Min", "Max", "LogSum"}) {
    for (bool inclusive : {false, true}) {
      add(op, Type::f32, Type::f32, false, inclusive, whole);
      add(op, Type::f32, Type::f32, true, inclusive, whole, 16);
    }
    add(op, Type::c64, Type::c64, false, true, whole);
    add(op, Type::c64, Type::c64, false, true, whole, 1);
    add(op, Type::f64, Type::f64, false, true, long_lines);
  }
  for (const char* op : {"Sum", "Max"}) {
    add(op, Type::f32, Type::f32, true, false, {"Totals", "Parts"});
    add(op, Type::f32, Type::f32, true, false, whole, 1);
  }
  for (const char* op : {"Sum", "Min"}) {
    add(op, Type::i64, Type::i64, false, false, long_lines);
  }
  add("LogSum", Type::f16, Type::f16, false, true, whole, 128);
  for (int lanes : {1, 32, 256}) {
    add("Sum", Type::bool_, Type::i32, false, true, whole, lanes);
  }
  add("Min", Type::u8, Type::u8, false, false, whole, 64);
}

// Between ranks (ops/distributed.cpp).
void add_exchanges(VariantSet& set) {
  for (Type t : all_types) {
    if (t == Type::f64) { // on the CPU
      continue;
    }
    for (auto* op : {"Sum", "Min", "Max"}) {
      for (int quads : {1, 4}) {
        set.add(ExchangeVariant{t, accumulator(t), op, false, quads});
      }
    }
  }
  for (Type t : {Type::u8, Type::u16, Type::u32, Type::u64}) {
    for (int quads : {1, 4}) {
      set.add(ExchangeVariant{t, accumulator(t), "Sum", true, quads});
    }
  }
}

} // namespace

void add_reduce_variants(VariantSet& set, const Caps&) {
  add_exchanges(set);
  add_reductions(set);
  add_arg_reductions(set);
  add_scans(set);
}

} // namespace mlx::core::vulkan

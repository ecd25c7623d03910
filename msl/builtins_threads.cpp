// Functions of several threads: barriers, SIMD-groups, atomics.
#include <string_view>

#include "msl/names.h"
#include "msl/translator.h"

namespace msl {

namespace {

using Home = Value::Home;

constexpr std::string_view reductions =
    "sum product min max and or xor prefix_inclusive_sum prefix_exclusive_sum "
    "prefix_inclusive_product prefix_exclusive_product broadcast_first";
constexpr std::string_view moves =
    "broadcast shuffle shuffle_xor shuffle_up shuffle_down shuffle_rotate_up "
    "shuffle_rotate_down";

struct AtomicRow {
  std::string_view name; // of atomic_fetch_<name>_explicit
  const char* glsl;
};
constexpr AtomicRow atomic_rows[] = {
    {"add", "atomicAdd"},
    {"sub", "atomicAdd"},
    {"min", "atomicMin"},
    {"max", "atomicMax"},
    {"and", "atomicAnd"},
    {"or", "atomicOr"},
    {"xor", "atomicXor"}};

} // namespace

Value Translator::barrier(const std::string& name, Values& arguments) {
  writing_->pure = false;
  independent_ = independent_ && name == "atomic_thread_fence";
  bool device = !arguments.empty() &&
      arguments[0].text.find("device") != std::string::npos;
  bool narrow = target_.subgroup < 32;
  auto put = [&](const char* text) {
    writing_->masked ? emit_everywhere(text) : emit(text);
  };
  if (device) {
    put("memoryBarrierBuffer();");
  }
  if (name == "atomic_thread_fence") {
    put("memoryBarrier();");
  } else if (name == "simdgroup_barrier" && !narrow) {
    uses_simd_ = true;
    put("subgroupBarrier();");
  } else {
    put("barrier();");
  }
  return plain_value(types_.nothing(), "");
}

// Written as a statement, because its place in control flow matters.
Value Translator::effect(Ty type, const std::string& text) {
  writing_->pure = false;
  auto* v = variable("seen", type, Space::Thread);
  declare_variable(v, text);
  return load(of_variable(v));
}

std::optional<Value> Translator::simd_function(
    const std::string& full,
    Values& arguments) {
  std::string name = full.substr(5);
  size_t n = arguments.size();
  bool reduces = has_word(reductions, name) && n == 1;
  bool moved = has_word(moves, name) && n == 2;
  bool fills = name.starts_with("shuffle_and_fill_") && n >= 3 && n <= 4;
  bool votes = (name == "any" || name == "all" || name == "ballot") && n == 1;
  bool asks = (name == "is_first" || name == "active_threads_mask") && n == 0;
  if (!reduces && !moved && !fills && !votes && !asks) {
    return {};
  }
  uses_simd_ = true;
  writing_->pure = false;
  bool narrow = target_.subgroup < 32;
  Ty result = types_.scalar(Scalar::Bool);
  std::vector<Ty> takes;
  if (reduces || moved || fills) {
    result = load(arguments[0]).type;
    bool small = result->is_vector() && result->is_integer() &&
        result->scalar < Scalar::I32;
    bool long_sum = reduces && name != "broadcast_first" &&
        result->is_integer() && result->scalar > Scalar::U32;
    bool bits = reduces && result->is_floating() &&
        (name == "and" || name == "or" || name == "xor");
    if (!result->is_numeric() || small || long_sum || bits) {
      fail(
          "`{}` of `{}` is not supported; convert to float, int or uint.",
          full,
          result);
    }
    if (reduces && result->is_bool() && name != "broadcast_first") {
      result = types_.scalar(Scalar::I32);
    }
    takes.assign(fills ? 2 : 1, result);
  } else if (votes) {
    takes = {types_.scalar(Scalar::Bool)};
  }
  takes.resize(n, types_.scalar(Scalar::U32)); // lanes
  std::string text = narrow ? mask_text() : "";
  bool apart = narrow && !writing_->guard.empty();
  for (size_t i = 0; i < n; ++i) {
    Value a = convert(arguments[i], takes[i]);
    a = apart ? temporary(a, "of") : a;
    text += (text.empty() ? "" : ", ") + a.text;
  }
  Value r = plain_value(result, "msl_" + full + "(" + text + ")");
  bool mask = name == "ballot" || name == "active_threads_mask";
  r.type = mask ? types_.scalar(Scalar::U32) : result;
  r = rounded(r);
  if (narrow) {
    auto* v = variable(name, r.type, Space::Thread);
    declare_everywhere(v, r.text);
    r = load(of_variable(v));
  }
  return mask ? convert(r, types_.scalar(Scalar::U64)) : r;
}

// Atomic operations that GLSL lacks, by compare and exchange until it succeeds.
Value Translator::atomic_float(
    const std::string& operation,
    const std::string& memory,
    const Value& operand) {
  Ty u = types_.scalar(Scalar::U32);
  Value x = temporary(operand, "operand");
  auto* seen = variable("seen", u, Space::Thread);
  auto* last = variable("last", u, Space::Thread);
  declare_variable(seen, memory);
  declare_variable(last, "~" + mark(*seen));
  std::string now = "uintBitsToFloat(" + mark(*seen) + ")";
  std::string next = operation == "add" ? now + " + " + x.text
      : operation == "sub"              ? now + " - " + x.text
      : operation == "min"              ? "msl_min(" + now + ", " + x.text + ")"
                           : "msl_max(" + now + ", " + x.text + ")";
  open(
      "BOUNDED_WHILE(" + mark(*last) + " != " + mark(*seen) +
      ", competitors()) {");
  emit(mark(*last) + " = " + mark(*seen) + ";");
  emit(
      mark(*seen) + " = atomicCompSwap(" + memory + ", " + mark(*last) +
      ", floatBitsToUint(" + next + "));");
  close();
  return plain_value(types_.scalar(Scalar::F32), now);
}

// Whether the value equalled `*expected`, which otherwise becomes the value.
Value Translator::atomic_exchange(
    const std::string& memory,
    Ty t,
    Values& arguments) {
  bool real = t->is_floating();
  Ty stored = real ? types_.scalar(Scalar::U32) : t;
  auto coded = [&](const Value& v) {
    Value x = convert(v, t);
    return real ? "floatBitsToUint(" + x.text + ")" : x.text;
  };
  Value expected = dereference(arguments[1]);
  Value want =
      temporary(plain_value(stored, coded(load(expected))), "expected");
  Value got = effect(
      stored,
      "atomicCompSwap(" + memory + ", " + want.text + ", " +
          coded(arguments[2]) + ")");
  store(
      expected,
      real ? plain_value(t, "uintBitsToFloat(" + got.text + ")") : got);
  Value same =
      plain_value(types_.scalar(Scalar::Bool), got.text + " == " + want.text);
  same.prec = Prec::Equality;
  return same;
}

std::optional<Value> Translator::atomic_function(
    const std::string& full,
    Values& arguments) {
  constexpr std::string_view suffix = "_explicit";
  std::string name = full.substr(7); // atomic_
  if (name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  while (!arguments.empty() &&
         arguments.back().type->kind == TypeData::Kind::Flags) {
    arguments.pop_back(); // memory orders: all are relaxed
  }
  size_t n = arguments.size();
  if (n == 0) {
    return {};
  }
  Value p = decayed(load(arguments[0]));
  if (!p.type->is_pointer() || !p.type->element->is_scalar()) {
    fail("`{}` takes a pointer to an atomic.", full);
  }
  Value at = dereference(p);
  Ty t = types_.scalar(at.type->scalar);
  bool real = t->scalar == Scalar::F32;
  bool shared = at.home == Home::Local && at.base &&
      at.base->space() == Space::Threadgroup;
  if (t->scalar != Scalar::I32 && t->scalar != Scalar::U32 && !real) {
    fail("atomics are supported for int, uint and float; use one of these.");
  }
  if (at.home != Home::Device && !shared) {
    fail("`{}` works in device and threadgroup memory.", full);
  }
  std::string kind = t->scalar == Scalar::I32 ? "i32" : "u32";
  std::string memory =
      shared ? at.text : "Ptr_" + kind + "(" + access_address(at) + ").v[0]";
  auto coded = [&](const Value& v) {
    Value x = convert(v, t);
    return real ? "floatBitsToUint(" + x.text + ")" : x.text;
  };
  Ty stored = real ? types_.scalar(Scalar::U32) : t;
  auto decoded = [&](const Value& v) {
    return real ? plain_value(t, "uintBitsToFloat(" + v.text + ")") : v;
  };
  std::string zero = kind == "i32" ? "0" : "0u";
  if (name == "load" && n == 1) {
    return decoded(effect(stored, "atomicOr(" + memory + ", " + zero + ")"));
  }
  if ((name == "store" || name == "init") && n == 2) {
    writing_->pure = false;
    emit("atomicExchange(" + memory + ", " + coded(arguments[1]) + ");");
    return plain_value(types_.nothing(), "");
  }
  if (name == "exchange" && n == 2) {
    return decoded(effect(
        stored, "atomicExchange(" + memory + ", " + coded(arguments[1]) + ")"));
  }
  if (name.starts_with("compare_exchange") && n == 3) {
    return atomic_exchange(memory, t, arguments);
  }
  for (auto& row : atomic_rows) {
    if (name != "fetch_" + std::string(row.name) || n != 2) {
      continue;
    }
    writing_->pure = false;
    Value x = convert(arguments[1], t);
    bool bits = row.name == "and" || row.name == "or" || row.name == "xor";
    if (real && !bits) {
      return atomic_float(std::string(row.name), memory, x);
    }
    if (!real) {
      x = row.name == "sub" ? arithmetic("-", literal(t, int64_t(0)), x) : x;
      return effect(
          t, std::string(row.glsl) + "(" + memory + ", " + x.text + ")");
    }
  }
  fail("`{}` of `{}` is not supported.", full, t);
}

} // namespace msl

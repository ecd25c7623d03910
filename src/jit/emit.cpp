#include "jit/emit.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "kernels/quant/fused.h"

namespace mlx::core::vulkan {

namespace {

std::string value(int i) {
  return "v" + std::to_string(i);
}

// Whether `t` is a 16-bit float, to which a store rounds values.
bool is_half(Type t) {
  return info_of(t).kind == Kind::FLOAT && info_of(t).size < 4;
}

bool is_inexact(Type t) {
  return info_of(t).kind >= Kind::FLOAT;
}

// Whether the results are exact in a 16-bit float type if the operands are.
bool keeps_precision(std::string_view function) {
  constexpr std::array exact{
      "Abs",
      "Ceil",
      "Floor",
      "Maximum",
      "Minimum",
      "Negative",
      "Round",
      "Select",
      "Sign"};
  return std::find(exact.begin(), exact.end(), function) != exact.end();
}

class Emitter {
 public:
  explicit Emitter(const FusedGraph& g) : g_(g) {
    int n = count();
    used_.resize(n);
    for (size_t k = 0; k < g.ops.size(); ++k) {
      int self = static_cast<int>(g.inputs.size() + k);
      for (int a : g.ops[k].args) {
        if (a < 0 || a >= self) {
          throw std::invalid_argument(
              "[vulkan] A fused operation uses a value that comes later.");
        }
        used_[a] = true;
      }
    }
    for (int o : g.outputs) {
      if (o < 0 || o >= n) {
        throw std::invalid_argument(
            "[vulkan] A fused output is not a value of the graph.");
      }
    }
  }

  std::string text() {
    compute();
    std::string body = std::move(out_);
    out_.clear();
    line("#pragma STDC FP_CONTRACT OFF");
    if (has_doubles()) {
      line("#define FLOAT64 1");
    }
    if (body.find("round_bf16(") != body.npos) {
      line("#define NUMBERS_FIRST 1");
    }
    arguments();
    line("#include \"common/elementwise.glsl\"");
    line("#include \"common/run_time.glsl\"");
    line("#include \"common/binary_ops.glsl\"");
    line("#include \"common/ternary_ops.glsl\"");
    line("");
    return std::move(out_) + body;
  }

 private:
  int count() const {
    return static_cast<int>(g_.inputs.size() + g_.ops.size());
  }
  Type type_of_value(int i) const {
    int n = static_cast<int>(g_.inputs.size());
    return i < n ? g_.inputs[i].type : g_.ops[i - n].type;
  }
  bool has_doubles() const {
    for (int v = 0; v < count(); ++v) {
      if (type_of_value(v) == Type::f64) {
        return true;
      }
    }
    return false;
  }
  void line(const std::string& s) {
    out_ += s;
    out_ += '\n';
  }
  // "float", "Ptr_bf16" and a name, with a separator in front of each.
  std::string entry(int v, std::string name) const {
    Type t = type_of_value(v);
    return ", " + std::string(info_of(t).value) + ", Ptr_" +
        std::string(name_of(t)) + ", " + name + ")";
  }
  std::string parameter(int v, std::string name) const {
    return std::string(info_of(type_of_value(v)).value) + " " + name;
  }

  // Inputs are named like their values, results y0, y1, ...
  void arguments() {
    int operands = 0;
    std::string inputs, results;
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      const auto& in = g_.inputs[i];
      int v = static_cast<int>(i);
      if (in.strided()) {
        inputs += " F(" + std::to_string(operands++) + entry(v, value(v));
      } else if (!in.constant) {
        inputs += " S(0" + entry(v, value(v));
      }
    }
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      auto n = std::to_string(o);
      results += " F(" + n + entry(g_.outputs[o], "y" + n);
    }
    // GLSL arrays need at least one item.
    line("#define OPERANDS " + std::to_string(std::max(operands, 1)));
    line("#define EACH_INPUT(F, S)" + inputs);
    line("#define EACH_RESULT(F)" + results);
  }

  // Declares every value that is no parameter, and sets the results.
  void compute() {
    std::string parameters = "UIndex i";
    int n = static_cast<int>(g_.inputs.size());
    for (int v = 0; v < n; ++v) {
      if (!g_.inputs[v].constant) {
        parameters += ", " + parameter(v, value(v));
      }
    }
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      parameters +=
          ", out " + parameter(g_.outputs[o], "y" + std::to_string(o));
    }
    line("void compute(" + parameters + ") {");
    for (int v = 0; v < count(); ++v) {
      if (v >= n) {
        line("  " + declare(v) + expression(g_.ops[v - n], v) + ";");
      } else if (g_.inputs[v].constant) {
        line("  " + declare(v) + constant(g_.inputs[v]) + ";");
      }
    }
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      line("  y" + std::to_string(o) + " = " + value(g_.outputs[o]) + ";");
    }
    line("}");
  }

  std::string declare(int v) const {
    return parameter(v, value(v)) + " = ";
  }
  static std::string constant(const FusedInput& in) {
    std::string literal = glsl_constant(in.type, in.bits);
    return is_inexact(in.type) ? "run_time(" + literal + ")" : literal;
  }
  bool is_constant(size_t v) const {
    return v < g_.inputs.size() && g_.inputs[v].constant;
  }
  std::string argument(const FusedOp& op, size_t k) const {
    // A literal exponent lets compilers drop branches. Expressions of it alone,
    // its two halves, are exact.
    size_t v = op.args[k];
    bool exponent = op.function == "Power" && k == 1 && is_constant(v);
    return exponent ? glsl_constant(g_.inputs[v].type, g_.inputs[v].bits)
                    : value(op.args[k]);
  }
  std::string expression(const FusedOp& op, int self) const {
    std::string call;
    for (size_t k = 0; k < op.args.size(); ++k) {
      call += (k == 0 ? "" : ", ") + argument(op, k);
    }
    bool exact;
    if (op.function.empty()) {
      exact = op.args.size() == 1 && type_of_value(op.args[0]) == op.type;
    } else {
      call = op.function + "(" + call + ")";
      exact = keeps_precision(op.function);
    }
    std::string type(name_of(op.type));
    call = "to_" + type + "(" + call + ")";
    // store() rounds values that no operation uses.
    if (is_half(op.type) && !exact && used_[self]) {
      call = "round_" + type + "(" + call + ")";
    }
    bool cast_constant = op.function.empty() && is_constant(op.args[0]);
    return cast_constant && is_inexact(op.type) ? "run_time(" + call + ")"
                                                : call;
  }

  const FusedGraph& g_;
  std::vector<bool> used_; // values that an operation uses
  std::string out_;
};

std::string hex(uint64_t v) {
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  do {
    s.insert(s.begin(), digits[v & 15]);
    v >>= 4;
  } while (v);
  return "0x" + s;
}

std::string float_constant(uint32_t bits) {
  return "uintBitsToFloat(" + hex(bits) + "u)";
}

std::string double_constant(uint32_t low, uint32_t high) {
  return "packDouble2x32(uvec2(" + hex(low) + "u, " + hex(high) + "u))";
}

} // namespace

std::string emit_fused(const FusedGraph& graph) {
  return Emitter(graph).text();
}

std::optional<GateRecord> gate_of(const FusedGraph& g) {
  if (g.inputs.size() != 2 || g.outputs.size() != 1) {
    return {};
  }
  Type t = g.inputs[0].type;
  // 16 bits only: an H200's compiler contracts f32 steps differently in places.
  bool floats = is_half(t);
  for (auto& in : g.inputs) {
    floats = floats && in.type == t && in.strided();
  }
  // Ignores casts of a type to itself, such as broadcasts.
  std::vector<int> value{0, 1};
  std::vector<const FusedOp*> ops;
  std::vector<std::array<int, 2>> args; // sorted
  for (auto& op : g.ops) {
    floats = floats && op.type == t;
    if (op.args.empty() || op.args.size() > 2) {
      return {};
    }
    int a = value[op.args[0]], b = value[op.args.back()];
    if (op.function.empty()) {
      value.push_back(a);
      continue;
    }
    value.push_back(static_cast<int>(2 + ops.size()));
    ops.push_back(&op);
    args.push_back({std::min(a, b), std::max(a, b)});
  }
  auto is = [&](int op, std::string_view name, int a, int b) {
    return ops[op]->function == name && args[op] == std::array{a, b};
  };
  if (!floats || ops.size() != 3 || value[g.outputs[0]] != 4) {
    return {};
  }
  for (int gate : {0, 1}) {
    if (is(0, "Sigmoid", gate, gate) && is(1, "Multiply", gate, 2) &&
        is(2, "Multiply", 1 - gate, 3)) {
      return GateRecord{t, GATE_SILU, static_cast<uint32_t>(gate)};
    }
  }
  return {};
}

std::string glsl_constant(Type type, uint64_t bits) {
  auto low = static_cast<uint32_t>(bits),
       high = static_cast<uint32_t>(bits >> 32);
  auto& t = info_of(type);
  std::string value(t.value), name(t.name);
  std::string item = t.size == 1 ? hex(low & 0xff)
      : t.size == 2              ? hex(low & 0xffff)
                                 : hex(low);
  switch (t.kind) {
    case Kind::BOOL:
      return (bits & 0xff) != 0 ? "true" : "false";
    case Kind::UINT:
    case Kind::INT:
      return t.size == 8 ? value + "((uint64_t(" + hex(high) +
              "u) << 32) | uint64_t(" + hex(low) + "u))"
                         : value + "(" + item + "u)";
    case Kind::FLOAT:
      return t.size == 8       ? double_constant(low, high)
          : t.size == 4        ? float_constant(low)
          : type == Type::bf16 ? float_constant((low & 0xffff) << 16)
                               : name + "_to_f32(uint" +
              std::to_string(8 * t.size) + "_t(" + item + "u))";
    case Kind::COMPLEX:
      return "vec2(" + float_constant(low) + ", " + float_constant(high) + ")";
  }
  return "";
}

} // namespace mlx::core::vulkan

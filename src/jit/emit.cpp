#include "jit/emit.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

namespace mlx::core::vulkan {

namespace {

std::string value(int i) {
  return "v" + std::to_string(i);
}

bool is_half(Type t) {
  return t == Type::f16 || t == Type::bf16;
}

bool is_inexact(Type t) {
  return is_half(t) || t == Type::f32 || t == Type::c64;
}

// The result of these on values of a 16-bit float type is one already.
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
    line("#pragma STDC FP_CONTRACT OFF");
    line("#include \"common/types.glsl\"");
    line("#include \"common/forms.glsl\"");
    line("#include \"common/binary_ops.glsl\"");
    line("#include \"common/ternary_ops.glsl\"");
    line("");
    arguments();
    line("#include \"common/args.glsl\"");
    line("");
    line("layout(local_size_x = 256) in;");
    line("");
    run_time();
    item();
    line("");
    quad();
    line("");
    main_body();
    return std::move(out_);
  }

 private:
  int count() const {
    return static_cast<int>(g_.inputs.size() + g_.ops.size());
  }
  Type type_of_value(int i) const {
    int n = static_cast<int>(g_.inputs.size());
    return i < n ? g_.inputs[i].type : g_.ops[i - n].type;
  }
  void line(const std::string& s) {
    out_ += s;
    out_ += '\n';
  }
  template <typename F>
  void for_strided(F&& f) {
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      if (g_.inputs[i].strided()) {
        f(std::to_string(i));
      }
    }
  }

  void arguments() {
    std::string pointers;
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      if (!g_.inputs[i].constant) {
        pointers += " Ptr_" + std::string(name_of(g_.inputs[i].type)) + " x" +
            std::to_string(i) + ";";
      }
    }
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      pointers += " Ptr_" + std::string(name_of(type_of_value(g_.outputs[o]))) +
          " y" + std::to_string(o) + ";";
    }
    line("#if DENSE");
    line("#define ARGS" + pointers + " uint64_t n;");
    line("#define COUNT A.n");
    line("#else");
    std::string strides;
    for_strided(
        [&](const std::string& i) { strides += " int64_t s" + i + "[DIMS];"; });
    line("#define ARGS" + pointers + " STRIDED_ARGS" + strides);
    line("#define COUNT A.rows");
    line("#endif");
  }

  // Makes float constants values of run time, as they are in an unfused graph:
  // where a driver computes with constants itself, it may round otherwise than
  // its GPU does. Counts are below 2^63. No single bit of ZERO may be known: as
  // `COUNT >> 63` it let NVIDIA's compiler fold cos(1.1), whose last bit is
  // set.
  void run_time() {
    line("#define ZERO (0u - uint(COUNT >> 63))");
    line("float run_time(float x) {");
    line("  return uintBitsToFloat(floatBitsToUint(x) | ZERO);");
    line("}");
    line("vec2 run_time(vec2 x) {");
    line("  return uintBitsToFloat(floatBitsToUint(x) | ZERO);");
    line("}");
    line("");
  }

  // One item: loads, operations, stores. All loads come first, since an output
  // may share its memory with an input.
  void item() {
    std::string parameters = "Index at";
    for_strided([&](const std::string& i) { parameters += ", Index at" + i; });
    line("void item(" + parameters + ") {");
    body(
        [](const std::string& i) { return "load(A.x" + i + ", at" + i + ")"; });
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      line(
          "  store(A.y" + std::to_string(o) + ", at, " + value(g_.outputs[o]) +
          ");");
    }
    line("}");
  }

  // Four items at once.
  void quad() {
    auto pointer = [&](int v) {
      return "Ptr_" + std::string(name_of(type_of_value(v)));
    };
    line("#if FORM == 3");
    line("void quad(UIndex u) {");
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      if (g_.inputs[i].strided()) {
        int v = static_cast<int>(i);
        std::string x = "x" + std::to_string(i);
        line(
            std::string("  ") + glsl_type(type_of_value(v)) + " " + x +
            "[4] = LOAD4(" + pointer(v) + ", A." + x + ", u);");
      }
    }
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      line(
          std::string("  ") + glsl_type(type_of_value(g_.outputs[o])) + " y" +
          std::to_string(o) + "[4];");
    }
    line("  for (int k = 0; k < 4; ++k) {");
    body([](const std::string& i) { return "x" + i + "[k]"; });
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      line("  y" + std::to_string(o) + "[k] = " + value(g_.outputs[o]) + ";");
    }
    line("  }");
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      std::string y = "y" + std::to_string(o);
      line(
          "  STORE4(" + pointer(g_.outputs[o]) + ", A." + y + ", u, " + y +
          ");");
    }
    line("}");
    line("#endif");
  }

  // Declares every value; `read` is an input's item.
  template <typename Read>
  void body(Read&& read) {
    int v = 0;
    for (; v < static_cast<int>(g_.inputs.size()); ++v) {
      const auto& in = g_.inputs[v];
      std::string i = std::to_string(v);
      std::string from = in.constant ? constant(in)
          : in.scalar                ? "load(A.x" + i + ", 0)"
                                     : read(i);
      line("  " + declare(v) + from + ";");
    }
    for (const auto& op : g_.ops) {
      line("  " + declare(v) + expression(op, v) + ";");
      ++v;
    }
  }
  std::string declare(int v) const {
    return std::string(glsl_type(type_of_value(v))) + " " + value(v) + " = ";
  }
  static std::string constant(const FusedInput& in) {
    std::string literal = glsl_constant(in.type, in.bits);
    return is_inexact(in.type) ? "run_time(" + literal + ")" : literal;
  }
  bool is_constant(size_t v) const {
    return v < g_.inputs.size() && g_.inputs[v].constant;
  }
  std::string argument(const FusedOp& op, size_t k) const {
    // An exponent chooses among ways that are worth leaving out; what is
    // computed from it alone, its two halves, is exact.
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
    // store() rounds what is only an output.
    if (is_half(op.type) && !exact && used_[self]) {
      call = "round_" + type + "(" + call + ")";
    }
    bool cast_constant = op.function.empty() && is_constant(op.args[0]);
    return cast_constant && is_inexact(op.type) ? "run_time(" + call + ")"
                                                : call;
  }

  void main_body() {
    std::string same = "Index(i)";
    for_strided([&](const std::string&) { same += ", Index(i)"; });
    line("#if FORM == 3");
    line("void main() {");
    line("  UIndex quads = UIndex(A.n / 4u);");
    line("  UIndex units = quads + UIndex(A.n & 3u);");
    line("  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;");
    line("  for (UIndex u = flat_index(); u < units; u += step) {");
    line("    if (u < quads) {");
    line("      quad(u);");
    line("    } else {");
    line("      UIndex i = u + 3u * quads;");
    line("      item(" + same + ");");
    line("    }");
    line("  }");
    line("}");
    line("#elif FORM == 0");
    line("void main() {");
    line("  UIndex n = UIndex(A.n);");
    line("  UIndex step = UIndex(group_count()) * gl_WorkGroupSize.x;");
    line("  for (UIndex i = flat_index(); i < n; i += step) {");
    line("    item(" + same + ");");
    line("  }");
    line("}");
    line("#else");
    line("void main() {");
    line("  uint per_row = (A.last + STRIDED_WORK - 1u) / STRIDED_WORK;");
    line("  UIndex t = flat_index();");
    line("  UIndex row = t / UIndex(per_row);");
    line("  if (row < UIndex(A.rows)) {");
    std::string walk = "at + Index(c)";
    for_strided([&](const std::string& i) {
      line("    Index base" + i + " = Index(0);");
      line("    Index step" + i + " = Index(A.s" + i + "[A.ndim - 1]);");
      walk += ", base" + i + " + Index(c) * step" + i;
    });
    line("    UIndex rest = row;");
    line("    for (int d = A.ndim - 2; d >= 0; --d) {");
    line("      UIndex extent = UIndex(uint(A.shape[d]));");
    line("      UIndex next = rest / extent;");
    line("      Index k = Index(rest - next * extent);");
    for_strided([&](const std::string& i) {
      line("      base" + i + " += k * Index(A.s" + i + "[d]);");
    });
    line("      rest = next;");
    line("    }");
    line("    Index at = Index(row * UIndex(A.last));");
    line("    uint c = uint(t - row * UIndex(per_row));");
    line("    for (; c < A.last; c += per_row) {");
    line("      item(" + walk + ");");
    line("    }");
    line("  }");
    line("}");
    line("#endif");
  }

  const FusedGraph& g_;
  std::vector<bool> used_; // by an operation
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

} // namespace

std::string emit_fused(const FusedGraph& graph) {
  return Emitter(graph).text();
}

const char* glsl_type(Type type) {
  switch (type) {
    case Type::bool_:
      return "bool";
    case Type::u8:
      return "uint8_t";
    case Type::u16:
      return "uint16_t";
    case Type::u32:
      return "uint32_t";
    case Type::u64:
      return "uint64_t";
    case Type::i8:
      return "int8_t";
    case Type::i16:
      return "int16_t";
    case Type::i32:
      return "int32_t";
    case Type::i64:
      return "int64_t";
    case Type::f16:
    case Type::bf16:
    case Type::f32:
      return "float";
    case Type::c64:
      return "vec2";
  }
  return "";
}

std::string glsl_constant(Type type, uint64_t bits) {
  auto low = static_cast<uint32_t>(bits);
  switch (type) {
    case Type::bool_:
      return (bits & 0xff) != 0 ? "true" : "false";
    case Type::u8:
    case Type::i8:
      return std::string(glsl_type(type)) + "(" + hex(low & 0xff) + "u)";
    case Type::u16:
    case Type::i16:
      return std::string(glsl_type(type)) + "(" + hex(low & 0xffff) + "u)";
    case Type::u32:
    case Type::i32:
      return std::string(glsl_type(type)) + "(" + hex(low) + "u)";
    case Type::u64:
    case Type::i64:
      return std::string(glsl_type(type)) + "((uint64_t(" + hex(bits >> 32) +
          "u) << 32) | uint64_t(" + hex(low) + "u))";
    case Type::f16:
      return "f16_to_f32(uint16_t(" + hex(low & 0xffff) + "u))";
    case Type::bf16:
      return float_constant((low & 0xffff) << 16);
    case Type::f32:
      return float_constant(low);
    case Type::c64:
      return "vec2(" + float_constant(low) + ", " +
          float_constant(static_cast<uint32_t>(bits >> 32)) + ")";
  }
  return "";
}

} // namespace mlx::core::vulkan

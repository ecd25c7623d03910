#include "ops/custom/plan.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

#include "pipeline/key.h"

namespace mlx::core::vulkan {

namespace {

constexpr std::string_view function_prefix = "custom_kernel_";

[[noreturn]] void bad_text(std::string_view name) {
  throw std::invalid_argument(
      "[metal_kernel] " + std::string(name) +
      ": this is not a kernel as mx.fast.metal_kernel of MLX 0.32 makes them. "
      "Was the graph exported by another version of MLX?");
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) {
    return false;
  }
  text.remove_prefix(word.size());
  return true;
}

// Takes the text up to `end`, and `end` itself.
std::string_view take_until(
    std::string_view& text,
    std::string_view end,
    std::string_view name) {
  auto at = text.find(end);
  if (at == text.npos) {
    bad_text(name);
  }
  auto taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

// Parses "  const device float* x [[buffer(0)]],".
msl::Argument argument_of(std::string_view line, std::string_view name) {
  msl::Argument a;
  auto words = take_until(line, " [[buffer(", name);
  if (!take(words, "  ")) {
    bad_text(name);
  }
  a.output = !take(words, "const ");
  a.constant = take(words, "constant ");
  if (!a.constant && !take(words, "device ")) {
    bad_text(name);
  }
  a.atomic = take(words, "atomic<");
  auto type = take_until(words, " ", name);
  a.name = words;
  if (type.empty()) {
    bad_text(name);
  }
  a.reference = type.back() == '&';
  type.remove_suffix(a.atomic ? 2 : 1); // also the '>'
  a.type = type;
  return a;
}

// Parses "template <typename T, int N>\n" and "<float, 4>".
std::vector<msl::TemplateValue> templates_of(
    std::string_view parameters,
    std::string_view values,
    std::string_view name) {
  std::vector<msl::TemplateValue> result;
  auto next = [](std::string_view& list) {
    auto end = std::min(list.find(", "), list.size());
    auto item = list.substr(0, end);
    list.remove_prefix(std::min(end + 2, list.size()));
    return item;
  };
  while (!parameters.empty()) {
    auto parameter = next(parameters);
    auto value = next(values);
    auto kind = take_until(parameter, " ", name);
    msl::TemplateValue t{std::string(parameter), std::string(value)};
    if (kind == "int") {
      int64_t n = 0;
      std::from_chars(value.data(), value.data() + value.size(), n);
      t.value = n;
    } else if (kind == "bool") {
      t.value = value == "1";
    }
    result.push_back(std::move(t));
  }
  return result;
}

// The suffix of an argument that holds an input's shape, strides or ndim.
std::string_view info_suffix(
    const msl::Argument& a,
    const std::vector<msl::Argument>& all) {
  for (auto suffix : {"_shape", "_strides", "_ndim"}) {
    if (!a.name.ends_with(suffix) || !a.constant) {
      continue;
    }
    std::string_view of(a.name);
    of.remove_suffix(std::string_view(suffix).size());
    for (auto& b : all) {
      if (!b.output && b.name == of && &b < &a) {
        return suffix;
      }
    }
  }
  return {};
}

// Removes the template values and dtypes that MLX appends to the name.
std::string user_name(
    std::string_view name,
    const std::vector<msl::Argument>& arguments,
    std::string_view values) {
  std::string suffix;
  if (!values.empty()) {
    suffix = "__";
    for (size_t i = 0; i < values.size(); ++i) {
      bool separator = values.substr(i, 2) == ", ";
      suffix += separator || values[i] == '-' ? '_' : values[i];
      i += separator;
    }
  }
  for (auto& a : arguments) {
    if (info_suffix(a, arguments).empty()) {
      suffix += '_' + a.type;
      suffix += a.reference ? "s" : a.constant ? "c" : "";
    }
  }
  take(name, function_prefix);
  if (name.ends_with(suffix)) {
    name.remove_suffix(suffix.size());
  }
  return std::string(name);
}

} // namespace

std::string CustomSource::title() const {
  return (glsl ? "[vulkan_kernel] " : "[metal_kernel] ") + source.name;
}

size_t comment_length(std::string_view text) {
  if (text.starts_with("//")) {
    return std::min(text.find('\n'), text.size());
  }
  if (text.starts_with("/*")) {
    auto end = text.find("*/", 2);
    return end == text.npos ? text.size() : end + 2;
  }
  return 0;
}

CustomSource parse_custom_source(
    std::string_view name,
    std::string_view text,
    size_t arguments) {
  CustomSource kernel;
  auto& s = kernel.source;
  std::string function = "[[kernel]] void " + std::string(name) + "(\n";
  auto header = take_until(text, function, name);
  for (size_t i = 0; i < arguments; ++i) {
    auto line = take_until(text, "\n", name);
    s.arguments.push_back(argument_of(line, name));
    // MLX closes the signature early if no attribute follows.
    if (i + 1 == arguments && line.ends_with(",")) {
      while (!take_until(text, "\n", name).ends_with(") {")) {
      }
    }
  }
  std::string_view values;
  auto tail = text.rfind("\n}\n\ntemplate [[host_name(");
  if (header.ends_with(">\n") && tail != text.npos) {
    auto at = header.rfind("template <");
    if (at == header.npos) {
      bad_text(name);
    }
    auto parameters = header.substr(at + 10);
    parameters.remove_suffix(2);
    auto rest = text.substr(tail);
    take_until(rest, "decltype(" + std::string(name) + "<", name);
    values = take_until(rest, ">) ", name);
    s.templates = templates_of(parameters, values, name);
    header = header.substr(0, at);
  } else {
    tail = text.rfind("\n}\n");
    if (tail == text.npos) {
      bad_text(name);
    }
  }
  s.body = text.substr(0, tail);
  if (take(header, glsl_marker) && take(header, " subgroup_size=")) {
    kernel.glsl = true;
    auto size = take_until(header, "\n", name);
    std::from_chars(
        size.data(), size.data() + size.size(), kernel.subgroup_size);
  }
  s.header = header;
  s.name = user_name(name, s.arguments, values);
  return kernel;
}

namespace {

struct MslType {
  std::string_view name;
  Type type;
};
constexpr MslType msl_types[] = {
    {"bool", Type::bool_},
    {"uint8_t", Type::u8},
    {"uint16_t", Type::u16},
    {"uint32_t", Type::u32},
    {"uint64_t", Type::u64},
    {"int8_t", Type::i8},
    {"int16_t", Type::i16},
    {"int", Type::i32},
    {"int32_t", Type::i32},
    {"int64_t", Type::i64},
    {"float16_t", Type::f16},
    {"bfloat16_t", Type::bf16},
    {"float", Type::f32},
    {"complex64_t", Type::c64},
};

Type type_named_in_msl(
    const CustomSource& kernel,
    std::string_view type,
    std::string_view of) {
  for (auto& t : msl_types) {
    if (t.name == type) {
      return t.type;
    }
  }
  kernel.refuse(
      "`" + std::string(of) + "` is " + std::string(type) +
      ", which kernels on the GPU do not have. Use float32, or run the "
      "operation on the CPU with stream=mx.cpu.");
}

// GLSL keywords that are likely names of arrays or template arguments.
constexpr std::string_view keywords[] = {
    "active",    "attribute", "buffer",   "case",      "cast",       "centroid",
    "coherent",  "common",    "const",    "default",   "discard",    "filter",
    "flat",      "half",      "highp",    "in",        "inout",      "input",
    "interface", "invariant", "layout",   "long",      "lowp",       "mediump",
    "noise",     "out",       "output",   "partition", "patch",      "precise",
    "precision", "public",    "readonly", "resource",  "restrict",   "sample",
    "shared",    "short",     "smooth",   "static",    "subroutine", "switch",
    "template",  "texture",   "this",     "uniform",   "union",      "unsigned",
    "using",     "varying",   "volatile", "writeonly"};

bool is_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Calls f for every identifier of a text outside of comments.
template <typename F>
void each_word(std::string_view text, F&& f) {
  while (!text.empty()) {
    size_t n = comment_length(text);
    if (n == 0 && (is_letter(text[0]) || is_digit(text[0]))) {
      while (n < text.size() && (is_letter(text[n]) || is_digit(text[n]))) {
        ++n;
      }
      f(text.substr(0, n));
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
}

void check_names(const CustomSource& kernel) {
  std::set<std::string_view> seen;
  auto check = [&](std::string_view name) {
    bool word = !name.empty() && !is_digit(name[0]) &&
        std::all_of(name.begin(), name.end(), [](char c) {
          return is_letter(c) || is_digit(c);
        });
    bool keyword = std::find(std::begin(keywords), std::end(keywords), name) !=
        std::end(keywords);
    if (!word || keyword || name.starts_with("gl_")) {
      kernel.refuse(
          "`" + std::string(name) + "` is " +
          (keyword ? "a word of GLSL" : "no name in GLSL") +
          "; give the input, output or template argument another one.");
    }
    if (!seen.insert(name).second) {
      kernel.refuse(
          "the name `" + std::string(name) +
          "` is given twice among inputs, outputs and template arguments.");
    }
  };
  for (auto& a : kernel.source.arguments) {
    check(a.name);
  }
  for (auto& t : kernel.source.templates) {
    check(t.name);
  }
}

// Rejects variables that count within one of a grid's several dispatches.
void check_built_ins(const CustomSource& kernel) {
  auto check = [&](std::string_view word) {
    std::string_view better = word == "gl_WorkGroupID"
        ? "threadgroup_position_in_grid"
        : word == "gl_GlobalInvocationID" ? "thread_position_in_grid"
        : word == "gl_NumWorkGroups"      ? "threadgroups_per_grid"
                                          : "";
    if (!better.empty()) {
      kernel.refuse(
          std::string(word) +
          " counts within one dispatch, of which a grid may have several. Use "
          "" +
          std::string(better) + ".");
    }
  };
  each_word(kernel.source.header, check);
  each_word(kernel.source.body, check);
}

// Macros x_loc(i) of inputs whose shape, strides and ndim the source names. An
// input without dimensions has no such arguments, and always offset 0.
std::string locations(const msl::Source& s) {
  std::string macros;
  auto member = [&](const std::string& name) {
    auto& all = s.arguments;
    auto it = std::find_if(
        all.begin(), all.end(), [&](auto& a) { return a.name == name; });
    return it == all.end() ? std::string()
                           : "ARGUMENTS.p" + std::to_string(it - all.begin());
  };
  for (auto& a : s.arguments) {
    if (a.output || !info_suffix(a, s.arguments).empty()) {
      continue;
    }
    std::string define = "#define " + a.name + "_loc(i) ";
    auto shape = member(a.name + "_shape");
    auto strides = member(a.name + "_strides");
    if (a.reference) {
      macros += define + "0\n#define " + a.name + "_ndim 0\n";
    } else if (
        !shape.empty() && !strides.empty() &&
        !member(a.name + "_ndim").empty()) {
      macros += define + "item_location(i, " + shape + ", " + strides + ", " +
          a.name + "_ndim)\n";
    }
  }
  return macros;
}

// Identifiers of GLSL that may make threads depend on one another, or on the
// size of their workgroup.
constexpr std::string_view group_words[] = {
    "barrier",
    "groupMemoryBarrier",
    "include",
    "memoryBarrierShared",
    "shared",
    "thread_position_in_threadgroup",
    "thread_index_in_threadgroup",
    "threads_per_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "dispatch_threads_per_threadgroup"};

// Whether a vulkan_kernel's threads may be regrouped. Conservative.
bool is_independent(const CustomSource& kernel) {
  bool dependent = false;
  auto look = [&](std::string_view word) {
    dependent = dependent || word.starts_with("gl_") ||
        word.starts_with("subgroup") ||
        std::ranges::find(group_words, word) != std::end(group_words);
  };
  each_word(kernel.source.header, look);
  each_word(kernel.source.body, look);
  return !dependent;
}

} // namespace

msl::Translation glsl_of(const CustomSource& kernel, bool whole_loops) {
  check_names(kernel);
  check_built_ins(kernel);
  auto& s = kernel.source;
  std::vector<Define> defines;
  std::vector<std::string> names; // which the defines refer to
  names.reserve(s.arguments.size());
  std::string block, locals, macros;
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    auto& a = s.arguments[i];
    Type type = type_named_in_msl(kernel, a.type, a.name);
    std::string pointer = "Ptr_" + std::string(name_of(type));
    std::string member = "p" + std::to_string(i);
    block += "  " + pointer + ' ' + member + ";\n";
    auto suffix = info_suffix(a, s.arguments);
    if (suffix.empty()) {
      defines.emplace_back(names.emplace_back("T_" + a.name), type);
      locals += pointer + ' ' + a.name + " = ARGUMENTS." + member + ";\n";
    } else if (suffix == "_ndim") {
      macros += "#define " + a.name + " load(ARGUMENTS." + member + ", 0)\n";
    } else {
      macros += "#define " + a.name + "(i) load(ARGUMENTS." + member + ", i)\n";
    }
  }
  macros += locations(s);
  for (auto& t : s.templates) {
    if (auto* type = std::get_if<std::string>(&t.value)) {
      defines.emplace_back(t.name, type_named_in_msl(kernel, *type, t.name));
    } else if (auto* n = std::get_if<int64_t>(&t.value)) {
      defines.emplace_back(t.name, *n);
    } else {
      defines.emplace_back(t.name, std::get<bool>(t.value) ? "true" : "false");
    }
  }
  msl::Translation made;
  made.independent = is_independent(kernel);
  // #line keeps the user's line numbers, under a name for messages.
  made.glsl = define_block(defines, false) +
      "#include \"common/types.glsl\"\n"
      "struct KernelArguments {\n" +
      block + "  uvec3 base, grid, threads;\n" +
      (whole_loops
           ? "  uint whole_loops_kernel;\n  uint64_t whole_loops_report;\n"
           : "") +
      "};\n"
      "layout(MSL_LOCAL_SIZE) in;\n"
      "#include \"common/custom.glsl\"\n" +
      macros + "#line 1 \"header of " + s.name + "\"\n" + s.header +
      (whole_loops ? "\nvoid whole_loops_of() {\n" : "\nvoid main() {\n") +
      (made.independent ? "if (any(greaterThanEqual(thread_position_in_grid, "
                          "threads_per_grid))) return;\n"
                        : "") +
      locals + "#line 1 \"source of " + s.name + "\"\n" + s.body + "\n}\n" +
      (whole_loops
           ? "\n#include \"common/whole_loops.glsl\"\nvoid main() {\n"
             "  whole_loops_of();\n  check_whole_loops("
             "ARGUMENTS.whole_loops_report, ARGUMENTS.whole_loops_kernel);\n}\n"
           : "");
  return made;
}

std::string loops_of(const CustomSource& kernel) {
  constexpr size_t most = 8;
  std::vector<std::string> lines;
  auto look = [&](std::string_view text, const char* where) {
    each_word(text, [&](std::string_view word) {
      if (word == "for" || word == "while" || word == "do") {
        auto line = 1 + std::count(text.data(), word.data(), '\n');
        lines.push_back("line " + std::to_string(line) + " of the " + where);
      }
    });
  };
  look(kernel.source.body, kernel.glsl ? "source" : "body");
  look(kernel.source.header, "header");
  std::string all;
  for (size_t i = 0; i < std::min(lines.size(), most); ++i) {
    all += (i ? ", " : "") + lines[i];
  }
  return all + (lines.size() > most ? " and others" : "");
}

uint32_t sure_subgroup(const Caps& caps, uint32_t wanted) {
  uint32_t least = caps.least_subgroup();
  uint32_t most = std::max(caps.max_subgroup_size, least);
  bool granted = least == most
      ? wanted == least
      : caps.required_subgroup_size && wanted >= least && wanted <= most;
  return wanted && granted ? wanted : least;
}

std::vector<ExactDispatch> exact_dispatches(
    const std::array<uint32_t, 3>& threads,
    const std::array<uint32_t, 3>& group,
    uint32_t most) {
  struct Range {
    uint32_t base, count, threads;
  };
  std::array<std::vector<Range>, 3> axes;
  for (int i = 0; i < 3; ++i) {
    uint32_t full = threads[i] / group[i], rest = threads[i] % group[i];
    for (uint32_t at = 0; at < full; at += std::min(most, full - at)) {
      axes[i].push_back({at, std::min(most, full - at), group[i]});
    }
    if (rest) {
      axes[i].push_back({full, 1, rest});
    }
  }
  std::vector<ExactDispatch> result;
  for (auto& z : axes[2]) {
    for (auto& y : axes[1]) {
      for (auto& x : axes[0]) {
        result.push_back(
            {{x.base, y.base, z.base},
             {x.count, y.count, z.count},
             {x.threads, y.threads, z.threads}});
      }
    }
  }
  return result;
}

} // namespace mlx::core::vulkan

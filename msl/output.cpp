// Lines, names and the text of the whole shader.
#include <algorithm>
#include <cctype>

#include "msl/translator.h"

namespace msl {

namespace {

// u_ before the user's name keeps it apart from words of GLSL and of this
// project's dialect: none of those begins with u_ (tests/translate_test.cpp).
std::string safe_name(const std::string& wish) {
  std::string s = "u_";
  for (char c : wish) {
    bool word = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (word && !(c == '_' && s.back() == '_')) { // GLSL keeps a double _
      s += c;
    }
  }
  return s;
}

constexpr char mark_begin = '\x01';
constexpr char mark_end = '\x02';

} // namespace

void Translator::emit(const std::string& text) {
  writing_->lines.push_back(
      {writing_->indent, writing_->guard, text, nullptr, ""});
}

void Translator::emit_everywhere(const std::string& text) {
  writing_->lines.push_back({writing_->indent, "", text, nullptr, ""});
}

void Translator::open(const std::string& text) {
  emit(text);
  ++writing_->indent;
  if (!writing_->guard.empty()) {
    ++writing_->guard_depth;
  }
}

// for (v = ...; ...; ...) {
void Translator::open_for(Variable* v, const std::string& rest) {
  auto& w = *writing_;
  w.lines.push_back({w.indent, w.guard, " = " + rest + ") {", v, "for ("});
  ++w.indent;
  w.guard_depth += !w.guard.empty();
}

// A loop that ends by break. Every turn but the first begins with step().
void Translator::open_stepping(const std::function<void()>& step) {
  auto* first = variable("first", types_.scalar(Scalar::Bool), Space::Thread);
  std::string name = mark(*first);
  open_for(first, "true;; " + name + " = false");
  open("if (!" + name + ") {");
  step();
  close();
}

void Translator::open_else() {
  close("} else {");
  ++writing_->indent;
  writing_->guard_depth += !writing_->guard.empty();
}

void Translator::break_unless(const Value& condition) {
  emit("if (!" + within(condition, Prec::Atom) + ") {");
  emit("  break;");
  emit("}");
}

void Translator::close(const std::string& text) {
  --writing_->indent;
  if (!writing_->guard.empty()) {
    --writing_->guard_depth;
  }
  emit(text);
}

Variable* Translator::variable(const std::string& wish, Ty type, Space space) {
  auto& v = variables_.emplace_back();
  v.id = static_cast<int>(variables_.size());
  v.wish = wish;
  v.type = type;
  v.space = space;
  v.global = space == Space::Threadgroup;
  v.function = writing_ ? writing_->id : 0;
  return &v;
}

std::string Translator::mark(const Variable& v) const {
  return mark_begin + std::to_string(v.id) + mark_end;
}

Value Translator::of_variable(Variable* v) {
  if (v->whole) {
    std::string at = std::to_string(v->part);
    Base* b = base_of(v, "", v->type);
    if (!v->type->is_array()) {
      return base_item(b, v->type, at);
    }
    Value x = plain_value(v->type, at);
    x.home = v->coded ? Value::Home::Coded : Value::Home::Local;
    x.base = b;
    return x;
  }
  Value x = plain_value(v->type, mark(*v));
  x.home = v->coded ? Value::Home::Coded : Value::Home::Local;
  x.variable = v;
  x.read_only = v->read_only;
  bool pointer = v->type->is_pointer();
  x.base = pointer ? v->points_to : base_of(v, "", v->type);
  x.slot = pointer && !v->type->is_address() ? &v->points_to : nullptr;
  if (v->type->is_array()) { // its items are what can be written to
    x.text.clear();
  }
  return x;
}

void Translator::declare_everywhere(Variable* v, const std::string& init) {
  writing_->lines.push_back({writing_->indent, "", " = " + init + ";", v, ""});
}

void Translator::declare_variable(Variable* v, const std::string& init) {
  auto& w = *writing_;
  std::string text = init.empty() ? ";" : " = " + init + ";";
  if (w.guard.empty() || w.guard_depth > 0) {
    w.lines.push_back({w.indent, w.guard, text, v, ""});
    return;
  }
  // Declared before the guard, so that statements behind it see the name.
  w.lines.push_back({w.indent, "", ";", v, ""});
  if (!init.empty()) {
    emit(mark(*v) + text);
  }
}

std::vector<Line> Translator::captured(const std::function<void()>& body) {
  std::vector<Line> kept;
  kept.swap(writing_->lines);
  body();
  kept.swap(writing_->lines);
  return kept;
}

// Tries to translate; if that fails, undoes everything and returns false.
bool Translator::attempt(const std::function<void()>& body) {
  auto* writing = writing_;
  auto* scope = scope_;
  Writing before = writing ? *writing : Writing{};
  bool discarding = discarding_;
  try {
    body();
    return true;
  } catch (const Error&) {
    writing_ = writing;
    scope_ = scope;
    discarding_ = discarding;
    if (writing) {
      *writing = std::move(before);
    }
    return false;
  }
}

// Collects lines that will be enclosed in braces.
std::vector<Line> Translator::captured_inside(
    const std::function<void()>& body) {
  auto& w = *writing_;
  int guarded = !w.guard.empty();
  ++w.indent;
  w.guard_depth += guarded;
  auto lines = captured(body);
  --w.indent;
  w.guard_depth -= guarded;
  return lines;
}

void Translator::append(std::vector<Line>& lines) {
  for (auto& l : lines) {
    writing_->lines.push_back(std::move(l));
  }
}

std::string Translator::free_name(const std::string& wish) {
  std::string safe = safe_name(wish), name = safe;
  for (int n = 1; !global_names_.insert(name).second; ++n) {
    name = safe + "_" + std::to_string(n);
  }
  return name;
}

void Translator::choose_names() {
  for (auto& v : variables_) {
    if (v.global || v.function == 0) {
      v.name = free_name(v.wish);
    }
  }
  std::map<int, std::set<std::string>> used;
  for (auto& v : variables_) {
    if (!v.name.empty()) {
      continue;
    }
    auto& taken = used[v.function];
    std::string safe = safe_name(v.wish), name = safe;
    for (int n = 1; global_names_.contains(name) || taken.contains(name); ++n) {
      name = safe + "_" + std::to_string(n);
    }
    taken.insert(name);
    v.name = name;
  }
}

std::string Translator::with_names(const std::string& text) const {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != mark_begin) {
      out += text[i];
      continue;
    }
    size_t end = text.find(mark_end, i);
    out += variables_[std::stoul(text.substr(i + 1, end - i - 1)) - 1].name;
    i = end;
  }
  return out;
}

std::string Translator::declared_text(
    const Variable& v,
    const std::string& rest) const {
  std::string out = v.is_precise ? "precise " : "";
  out += glsl_name(v.type) + " " + v.name;
  if (v.type->is_array()) {
    out += "[" + std::to_string(flat_count(v.type)) + "]";
  }
  return out + rest;
}

void Translator::print_lines(std::string& out, const std::vector<Line>& lines)
    const {
  auto put = [&](const Line& l, int more) {
    std::string text = l.text;
    if (l.declares && l.declares->global) {
      if (text == ";") {
        return;
      }
      text = l.before + l.declares->name + text;
    } else if (l.declares) {
      text = l.before + declared_text(*l.declares, text);
    }
    out.append(2 * static_cast<size_t>(std::max(l.indent + more, 0)), ' ');
    out += with_names(text) + "\n";
  };
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].guard.empty()) {
      put(lines[i++], 0);
      continue;
    }
    // Lines of one mask share an `if`; bare declarations move before it.
    size_t end = i;
    auto bare = [](const Line& l) { return l.declares && l.text == ";"; };
    while (end < lines.size() &&
           (lines[end].guard == lines[i].guard ||
            (lines[end].guard.empty() && bare(lines[end])))) {
      ++end;
    }
    for (size_t k = i; k < end; ++k) {
      if (lines[k].guard.empty()) {
        put(lines[k], 0);
      }
    }
    Line head{
        lines[i].indent, "", "if (" + lines[i].guard + ") {", nullptr, ""};
    put(head, 0);
    for (size_t k = i; k < end; ++k) {
      if (!lines[k].guard.empty()) {
        put(lines[k], 1);
      }
    }
    head.text = "}";
    put(head, 0);
    i = end;
  }
}

std::string Translator::print() {
  choose_names();
  auto shown = [](const std::string& name) {
    return safe_name(name).substr(2);
  };
  std::string out = "// " + shown(source_.name) +
      ", translated from the Metal Shading Language.\n";
  out += "struct Arguments {\n";
  for (size_t i = 0; i < source_.arguments.size(); ++i) {
    out += "  uint64_t a" + std::to_string(i) + "; // " +
        shown(source_.arguments[i].name) + "\n";
  }
  out += "  uvec3 base;\n  uvec3 grid;\n  uvec3 threads;\n";
  out += target_.whole_loops
      ? "  uint whole_loops_kernel;\n  uint64_t whole_loops_report;\n};\n"
      : "};\n";
  out += "#define ARGS_BLOCK Arguments\n";
  out += "#define MSL_SUBGROUP " + std::to_string(target_.subgroup) + "\n";
  out += "#define MSL_THREADS MSL_LOCAL_COUNT\n";
  out += uses_simd_ ? "#define MSL_SIMD\n" : "";
  out += "#include \"common/types.glsl\"\n#include \"common/args.glsl\"\n";
  out += "layout(MSL_LOCAL_SIZE) in;\n";
  out += "#include \"common/msl.glsl\"\n\n";
  if (!target_.extents.empty()) {
    out += "#define MSL_ARRAYS(F)";
    for (size_t i = 0; i < target_.extents.size(); ++i) {
      auto [begin, end] = target_.extents[i];
      out += " F(" + std::to_string(i) + ", " + std::to_string(begin) + "l, " +
          std::to_string(end) + "l)";
    }
    out += "\n#include \"common/msl_bounds.glsl\"\n";
  }
  for (auto& text : records_text_) {
    out += text + "\n";
  }
  for (auto& text : memory_text_) {
    out += text + "\n";
  }
  print_lines(out, globals_);
  for (auto& v : variables_) {
    if (v.whole) {
      continue;
    }
    if (v.space == Space::Threadgroup) {
      std::string stored = stored_type(flat_element(v.type));
      out += "shared " + stored + " " + v.name;
      if (v.type->is_array()) {
        out += "[" + std::to_string(flat_count(v.type)) + "]";
      }
      out += ";\n";
    } else if (v.global && v.function != 0) {
      out += declared_text(v, ";") + "\n";
    }
  }
  for (auto& f : written_) {
    out += "\n" + with_names(f.header) + " {\n";
    print_lines(out, f.lines);
    out += "}\n";
  }
  if (target_.whole_loops) {
    out +=
        "\n#include \"common/whole_loops.glsl\"\nvoid main() {\n"
        "  whole_loops_of();\n"
        "  check_whole_loops(A.whole_loops_report, A.whole_loops_kernel);\n}\n";
  }
  return out;
}

} // namespace msl

// Reading, writing and pointing. Device memory by 64-bit addresses; threadgroup
// and thread memory by a variable, known here, and an index into it.
#include <algorithm>
#include <cctype>

#include "msl/translator.h"

namespace msl {

namespace {

using Home = Value::Home;

// The number of scalars that one `t` occupies in memory: 4 for a float3.
int stride_of(Ty t) {
  return static_cast<int>(size_of(t) / info_of(t->scalar).size);
}

bool is_number(const std::string& s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isdigit(c);
  });
}

std::string sum(const std::string& a, const std::string& b) {
  if (a.empty() || a == "0") {
    return b.empty() ? "0" : b;
  }
  return b.empty() || b == "0" ? a : a + " + " + b;
}

std::string scaled(const std::string& a, int64_t by) {
  return by == 1 || a == "0" || a.empty() ? a
      : is_number(a)                      ? std::to_string(std::stoll(a) * by)
                     : "(" + a + ") * " + std::to_string(by);
}

std::string divided(const std::string& a, int64_t by) {
  return by == 1 || a == "0" ? a : "(" + a + ") / " + std::to_string(by);
}

bool is_simple(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c < 3;
  });
}

} // namespace

Base* Translator::base_of(Variable* v, const std::string& path, Ty type) {
  if (v->whole && path.empty()) {
    return base_of(v->whole, "", v->whole->type);
  }
  for (auto& b : bases_) {
    if (b.variable == v && b.path == path) {
      return &b;
    }
  }
  auto& b = bases_.emplace_back();
  b.variable = v;
  b.path = path;
  b.element = flat_element(type);
  b.single = !type->is_array();
  b.id = static_cast<int>(bases_.size());
  return &b;
}

void Translator::make_global(Variable* v) {
  v->global = v->global || v->function != 0; // function 0: a global already
}

std::string Translator::stored_type(Ty t) {
  if (t->is_narrow_float()) {
    return t->is_vector() ? "u16vec" + std::to_string(t->width) : "uint16_t";
  }
  if (t->is_scalar() && t->atomic && t->scalar == Scalar::F32) {
    return "uint";
  }
  return glsl_name(t);
}

std::string Translator::stored_item(Ty t, const std::string& text) {
  if (!t->is_narrow_float()) {
    return text;
  }
  return t->is_vector()
      ? "encode_" + need_memory(t) + "(" + text + ")"
      : std::string("f32_to_") + info_of(t->scalar).dtype + "(" + text + ")";
}

std::string Translator::loaded_item(Ty t, const std::string& text) {
  if (!t->is_narrow_float()) {
    return text;
  }
  return t->is_vector()
      ? "decode_" + need_memory(t) + "(" + text + ")"
      : std::string(info_of(t->scalar).dtype) + "_to_f32(" + text + ")";
}

// An index as text: for addresses of any type that item_index() takes, else a
// GLSL int or uint.
std::string Translator::index_text(const Value& given, bool address) {
  Value v = load(given);
  if (v.constant) {
    return std::to_string(v.integer());
  }
  Ty t = promoted(v.type);
  bool wide = t->scalar == Scalar::I64 || t->scalar == Scalar::U64;
  v = convert(v, t);
  return wide && !address ? "int(" + v.text + ")" : v.text;
}

std::string Translator::device_address(const Value& v) {
  if (v.index.empty() || v.index == "0") {
    return v.text;
  }
  return "msl_move(" + v.text + ", " + v.index + ", " +
      std::to_string(size_of(v.type)) + ")";
}

std::string Translator::access_address(const Value& v) {
  std::string address = device_address(v);
  if (target_.extents.empty()) {
    return address;
  }
  uint32_t line = std::max(last_.line, 1u) | (last_.in_header ? 1u << 31 : 0u);
  return fmt("msl_checked({}, {}u, {}u)", address, size_of(v.type), line);
}

// The address of an access, and the index behind it that loads and stores of
// single items take.
std::pair<std::string, std::string> Translator::accessed(const Value& v) {
  bool one =
      v.type->is_scalar() || v.type->is_complex() || v.type->is_pointer();
  return one && target_.extents.empty()
      ? std::pair(v.text, v.index.empty() ? "0" : v.index)
      : std::pair(access_address(v), std::string("0"));
}

std::string Translator::memory_call(
    const std::string& function,
    Ty t,
    const std::string& address,
    const std::string& index,
    const std::string& rest) {
  return t->is_scalar() || t->is_complex() || t->is_pointer()
      ? fmt("{}(Ptr_{}({}), {}", function, memory_name(t), address, index) +
          rest
      : fmt("{}_{}({}", function, need_memory(t), address) + rest;
}

// Item `index`, in items of `type`, of `b`.
Value Translator::base_item(Base* b, Ty type, const std::string& index) {
  Value v;
  v.type = type;
  v.base = b;
  v.index = index;
  std::string name = mark(*b->variable) + b->path;
  bool coded = b->variable->coded;
  v.home = coded ? Home::Coded : Home::Local;
  Ty stored = b->element;
  if (stored == type ||
      (stored->is_scalar() && type->is_scalar() &&
       stored->scalar == type->scalar)) {
    v.text = b->single ? name : name + "[" + index + "]";
    v.variable = b->single && b->path.empty() ? b->variable : nullptr;
    if (type->is_pointer() && !type->is_address()) {
      v.slot = &b->variable->points_to;
      v.base = *v.slot;
    }
    return v;
  }
  bool views = stored->is_numeric() && type->is_numeric() &&
      stored->scalar == type->scalar;
  if (views && type->is_scalar()) {
    int n = stride_of(stored);
    std::string first = b->single ? name : name + "[" + divided(index, n) + "]";
    std::string rest = b->single || index == "0"
        ? index
        : "(" + index + ") % " + std::to_string(n);
    v.text = first + "[" + rest + "]";
    return v;
  }
  if (views && stored->is_vector() && stored->width == type->width) {
    v.text = b->single ? name : name + "[" + index + "]";
    return v;
  }
  if (views && stored->is_scalar()) {
    v.home = Home::Gathered;
    return v;
  }
  fail("memory that holds `{}` is not read as `{}`.", stored, type);
}

Value Translator::item(const Value& pointer, const Value& index) {
  Value p = decayed(load(pointer));
  Ty type = p.type->element;
  if (type->is_void()) {
    fail("a void pointer has no items; cast it first.");
  }
  bool address = p.type->is_address();
  std::string i = index_text(index, address);
  if (address) {
    Value v;
    v.type = type;
    v.home = Home::Device;
    v.text = within(p, Prec::Atom);
    v.index = i == "0" ? "" : i;
    v.read_only = p.read_only;
    return v;
  }
  if (!p.base) {
    fail(
        "it is not known into which array this pointer points; give it one "
        "where it is declared.");
  }
  std::string at = index.constant ? i
      : index.prec > Prec::Add    ? "(" + i + ")"
                                  : i;
  at = scaled(at, flat_count(type));
  bool plain = p.text == "0" || p.text.empty();
  if (!plain) {
    // GLSL adds an int only to an int.
    at = sum(within(p, Prec::Add), is_number(at) ? at : "int(" + at + ")");
  }
  if (type->is_array()) {
    Value row;
    row.type = type;
    row.base = p.base;
    row.read_only = p.read_only;
    row.text = is_number(at) || !plain ? at : "int(" + at + ")";
    row.prec = is_simple(row.text) ? Prec::Atom : Prec::Add;
    return row;
  }
  Value v = base_item(p.base, type, at);
  v.read_only = p.read_only;
  return v;
}

Value Translator::dereference(const Value& pointer) {
  Value p = decayed(load(pointer));
  if (!p.type->is_pointer()) {
    fail("`{}` is not a pointer.", pointer.type);
  }
  return item(p, integer(0));
}

Value Translator::decayed(const Value& v) {
  if (!v.type->is_array()) {
    return v;
  }
  Value p = v;
  p.home = Home::None;
  p.variable = nullptr;
  if (v.home == Home::Device) {
    p.text = device_address(v);
    p.index.clear();
    p.type = types_.pointer(v.type->element, Space::Device);
    return p;
  }
  p.type =
      types_.pointer(v.type->element, v.base ? v.base->space() : Space::Thread);
  if (p.text.empty()) {
    p.text = "0";
  }
  return p;
}

Value Translator::address_of(const Value& v) {
  Value p;
  p.read_only = v.read_only;
  if (v.home == Home::Device) {
    p.text = device_address(v);
    p.type = types_.pointer(v.type, Space::Device);
    return p;
  }
  bool array = v.type->is_array();
  if (!v.base || (!v.is_lvalue() && !array) || v.type->is_pointer()) {
    fail(
        "the address of this expression cannot be taken; assign it to a "
        "variable first.");
  }
  p.type = types_.pointer(v.type, v.base->space());
  p.base = v.base;
  p.text = array ? v.text : v.index;
  if (p.text.empty()) {
    p.text = "0";
  }
  if (!array && !is_number(p.text)) { // an offset is an int
    p.text = "int(" + p.text + ")";
  } else if (!is_simple(p.text)) {
    p.prec = Prec::Add;
  }
  return p;
}

Value Translator::moved(const Value& pointer, const Value& by, bool minus) {
  Value p = decayed(load(pointer)), n = load(by);
  if (!n.type->is_integer() || !n.type->is_scalar()) {
    fail("a pointer is moved by `{}`.", by.type);
  }
  p.home = Home::None;
  p.variable = nullptr;
  if (n.constant && n.integer() == 0) {
    return p;
  }
  bool address = p.type->is_address();
  if (minus) {
    n = n.constant ? integer(-n.integer(), Scalar::I64)
                   : convert(n, types_.scalar(Scalar::I64));
    if (!n.constant) {
      n.text = "-" + within(n, Prec::Atom);
      n.prec = Prec::Unary;
    }
  }
  if (address) {
    p.text = "msl_move(" + p.text + ", " + index_text(n, true) + ", " +
        std::to_string(size_of(p.type->element)) + ")";
    p.prec = Prec::Atom;
    return p;
  }
  std::string text = "int(" + index_text(n, false) + ")";
  if (n.constant) {
    text = std::to_string(n.integer());
    text = n.integer() < 0 ? "(" + text + ")" : text;
  }
  text = scaled(text, flat_count(p.type->element));
  p.text = sum(within(p, Prec::Add), text);
  p.prec = Prec::Add;
  return p;
}

Value Translator::component(
    const Value& v,
    const std::string& index,
    bool is_constant) {
  Value c;
  c.type = types_.scalar(v.type->scalar);
  c.home = v.home;
  c.read_only = v.read_only;
  std::string suffix = is_constant ? std::string(".") + "xyzw"[std::stoi(index)]
                                   : "[" + index + "]";
  if (v.home == Home::Device) {
    c.text = device_address(v);
    c.index = index == "0" ? "" : index;
    return c;
  }
  if (v.home == Home::Gathered) {
    std::string at = scaled(v.index, stride_of(v.type));
    return base_item(v.base, c.type, sum(at, "int(" + index + ")"));
  }
  c.text = within(v, Prec::Atom) + suffix;
  return c;
}

Value Translator::load(const Value& v) {
  if (v.type->is_array()) {
    return v;
  }
  Value r = v;
  r.home = Home::None;
  r.index.clear();
  r.variable = nullptr;
  r.may_be_null = r.may_be_null || r.slot != nullptr;
  r.slot = nullptr;
  if (!v.type->is_pointer()) {
    r.base = nullptr;
  }
  switch (v.home) {
    case Home::None:
    case Home::Local:
      break;
    case Home::Coded:
      r.text = loaded_item(v.type, v.text);
      r.prec = Prec::Atom;
      break;
    case Home::Device: {
      auto [address, index] = accessed(v);
      r.text = memory_call("load", v.type, address, index);
      r.prec = Prec::Atom;
      break;
    }
    case Home::Gathered: {
      std::string at = scaled(v.index, stride_of(v.type)), all;
      for (int i = 0; i < v.type->width; ++i) {
        Value x = base_item(
            v.base, types_.scalar(v.type->scalar), sum(at, std::to_string(i)));
        all += (i ? ", " : "") + load(x).text;
      }
      r.text = glsl_name(v.type) + "(" + all + ")";
      r.prec = Prec::Atom;
      break;
    }
  }
  if (r.type->is_scalar() && r.type->atomic) {
    r.type = types_.scalar(r.type->scalar);
  }
  if (r.type->is_vector() && r.type->packed) {
    r.type = types_.vector(r.type->scalar, r.type->width);
  }
  return r;
}

void Translator::store(const Value& to, const Value& given) {
  check_writable(to);
  Ty type = to.type;
  if (type->is_vector() && type->packed) {
    type = types_.vector(type->scalar, type->width);
  }
  Value v = convert(given, type);
  wrote(to);
  bool rounds = to.home == Home::Device || to.home == Home::Coded;
  if (rounds && !v.unrounded.empty()) { // memory of 16-bit floats
    v.text = v.unrounded;
  }
  if (type->is_pointer() && !type->is_address()) {
    if (to.slot) {
      points_into(*to.slot, v.base);
    }
  }
  switch (to.home) {
    case Home::Coded:
      emit(to.text + " = " + stored_item(type, v.text) + ";");
      return;
    case Home::Device: {
      auto [address, index] = accessed(to);
      emit(memory_call("store", to.type, address, index, ", " + v.text + ");"));
      return;
    }
    case Home::Gathered: {
      v = temporary(v);
      std::string at = scaled(to.index, stride_of(type));
      for (int i = 0; i < type->width; ++i) {
        Value x = base_item(
            to.base, types_.scalar(type->scalar), sum(at, std::to_string(i)));
        store(x, component(v, std::to_string(i), true));
      }
      return;
    }
    default:
      emit(to.text + " = " + v.text + ";");
  }
}

void Translator::check_writable(const Value& to) const {
  if (to.read_only && !to.type->is_pointer()) {
    fail(
        "inputs of a kernel and what is const are only read; write to an "
        "output, or to a variable that is not const.");
  }
  if (!to.is_lvalue() || to.type->is_array()) {
    fail(
        "this expression cannot be assigned to; assign to a variable, or to an "
        "item of an array.");
  }
}

// A function that writes to its own variables alone may be called anywhere in
// an expression.
void Translator::wrote(const Value& to) {
  auto* v = to.variable ? to.variable : to.base ? to.base->variable : nullptr;
  bool own = to.home != Home::Device && v && v->function == writing_->id &&
      v->space == Space::Thread;
  writing_->pure = writing_->pure && own;
  if (to.variable) {
    to.variable->written = true;
  }
}

// The place that a reference is bound to. Later changes of the variables in its
// index do not move it.
Value Translator::pinned(Value v) {
  auto snapshot = [&](const std::string& text, Ty type) {
    Value x;
    x.type = type;
    x.text = text;
    return temporary(x, "at").text;
  };
  if (v.home == Home::Device) {
    v.text = snapshot(device_address(v), types_.scalar(Scalar::U64));
    v.index.clear();
    return v;
  }
  bool array = v.type->is_array();
  std::string& at = array ? v.text : v.index;
  if (!v.base || v.type->is_pointer() || at.empty() || is_number(at) ||
      (v.base->single && !array)) {
    return v;
  }
  at = snapshot("int(" + at + ")", types_.scalar(Scalar::I32));
  return array ? v : base_item(v.base, v.type, at);
}

} // namespace msl

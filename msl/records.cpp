// Structs: their layout, their GLSL, and the functions that load and store
// them and vectors.
#include <algorithm>

#include "msl/translator.h"

namespace msl {

namespace {

constexpr int64_t most_stored_items = 256;

std::string text_of(int64_t n) {
  return std::to_string(n);
}

} // namespace

Ty Translator::struct_type(
    const Declaration& d,
    const TemplateArguments& arguments,
    Scope* scope) {
  std::string key = identity(&d);
  Scope* own = bind(d, arguments, scope, key);
  auto known = structs_.find(key);
  if (known != structs_.end()) {
    if (!known->second) {
      fail("the struct `{}` holds itself.", d.name);
    }
    return known->second;
  }
  structs_[key] = nullptr;
  auto& r = records_.emplace_back();
  r.name = d.name;
  r.declared = &d;
  r.scope = own;
  r.glsl = free_name(d.name);
  own->record = &r;
  Ty type = types_.record(&r);
  own->names[d.name].kind = Symbol::Kind::Type;
  own->names[d.name].type = type;
  Temporarily inner(scope_, own);
  for (auto& t : d.types) {
    declare(*own, t);
  }
  for (auto& f : d.fields) {
    if (f.is_static) {
      auto& s = own->names[f.name];
      s.kind = Symbol::Kind::Lazy;
      s.lazy = &f;
      s.scope = own;
    }
  }
  for (auto& m : d.methods) {
    if (m.name == d.name) {
      auto& s = own->names["(constructor)"];
      s.kind = Symbol::Kind::Functions;
      s.declared.push_back(&m);
    } else {
      declare(*own, m);
    }
  }
  lay_out(r);
  structs_[key] = type;
  return type;
}

void Translator::lay_out(Record& r) {
  uint32_t at = 0;
  std::string text = "struct " + r.glsl + " {\n";
  std::set<std::string> used;
  for (auto& f : r.declared->fields) {
    if (f.is_static) {
      continue;
    }
    Field field;
    field.name = f.name;
    field.declared = &f;
    field.type = declared_type(f);
    if (f.type.reference) {
      fail_at(
          f.place, "the field `{}` is a reference; make it a pointer.", f.name);
    }
    field.glsl = f.name + "_";
    at = (at + align_of(field.type) - 1) / align_of(field.type) *
        align_of(field.type);
    field.offset = at;
    at += size_of(field.type);
    r.align = std::max(r.align, align_of(field.type));
    text += "  " + glsl_name(field.type) + " " + field.glsl;
    if (field.type->is_array()) {
      text += "[" + text_of(flat_count(field.type)) + "]";
    }
    text += ";\n";
    r.fields.push_back(std::move(field));
  }
  if (at > 1u << 16) {
    fail("the struct `{}` has more than 65,536 bytes.", r.name);
  }
  r.size = std::max((at + r.align - 1) / r.align * r.align, 1u);
  if (r.fields.empty()) {
    text += "  int nothing_;\n";
  }
  records_text_.push_back(text + "};");
}

// "load(Ptr_f32(p + 4ul), 0)" and its like, for the item at p + offset.
std::string Translator::need_memory(Ty t) {
  std::string name = memory_name(t);
  if (t->is_struct()) {
    need_record(*t->record);
    return name;
  }
  if (!t->is_vector() || !memory_done_.insert(name).second) {
    return name;
  }
  auto& item = info_of(t->scalar);
  std::string n = text_of(t->width), value = glsl_name(t);
  bool coded = t->is_narrow_float() || t->scalar == Scalar::Bool;
  std::string stored = t->scalar == Scalar::Bool ? "u8vec" + n
      : coded                                    ? "u16vec" + n
                                                 : value;
  uint32_t align = target_.aligned ? align_of(t) : item.size;
  std::string text =
      "REF(Mem_" + name + ", " + stored + ", " + text_of(align) + ");\n";
  auto each = [&](const std::string& f, const std::string& of) {
    std::string s;
    for (int i = 0; i < t->width; ++i) {
      s += (i ? ", " : "") + f + "(" + of + "." + "xyzw"[i] + ")";
    }
    return s;
  };
  if (coded) {
    std::string dtype = item.dtype;
    bool is_bool = t->scalar == Scalar::Bool;
    std::string decode = is_bool ? "bits_to_bool" : dtype + "_to_f32";
    std::string encode = is_bool ? "bool_to_bits" : "f32_to_" + dtype;
    text += value + " decode_" + name + "(" + stored + " x) {\n  return " +
        value + "(" + each(decode, "x") + ");\n}\n";
    text += stored + " encode_" + name + "(" + value + " x) {\n  return " +
        stored + "(" + each(encode, "x") + ");\n}\n";
  }
  std::string whole = "Mem_" + name + "(p).v[0]";
  text += value + " load_" + name + "(uint64_t p) {\n  return " +
      (coded ? "decode_" + name + "(" + whole + ")" : whole) + ";\n}\n";
  text += "void store_" + name + "(uint64_t p, " + value + " x) {\n  " + whole +
      " = " + (coded ? "encode_" + name + "(x)" : "x") + ";\n}\n";
  memory_text_.push_back(text);
  return name;
}

void Translator::need_record(const Record& r) {
  if (!memory_done_.insert(r.glsl).second) {
    return;
  }
  std::string load =
      r.glsl + " load_" + r.glsl + "(uint64_t p) {\n  " + r.glsl + " x;\n";
  std::string store =
      "void store_" + r.glsl + "(uint64_t p, " + r.glsl + " x) {\n";
  for (auto& f : r.fields) {
    Ty t = flat_element(f.type);
    int64_t n = flat_count(f.type);
    if (n > most_stored_items) {
      fail_at(
          f.declared->place,
          "a struct in device memory may hold arrays of up to 256 items.");
    }
    for (int64_t i = 0; i < n; ++i) {
      std::string field = "x." + f.glsl;
      if (f.type->is_array()) {
        field += "[" + text_of(i) + "]";
      }
      std::string at = "p + " + text_of(f.offset + i * size_of(t)) + "ul";
      load += "  " + field + " = " + memory_call("load", t, at, "0") + ";\n";
      store += "  " + memory_call("store", t, at, "0", ", " + field + ");\n");
    }
  }
  memory_text_.push_back(load + "  return x;\n}\n" + store + "}\n");
}

Value Translator::field_of(const Value& object, const Field& f) {
  Value v;
  v.type = f.type;
  v.read_only = object.read_only;
  if (object.home == Value::Home::Device) {
    v.home = Value::Home::Device;
    v.text = f.offset == 0
        ? device_address(object)
        : "(" + device_address(object) + " + " + text_of(f.offset) + "ul)";
    return v;
  }
  v.home = object.is_lvalue() ? Value::Home::Local : Value::Home::None;
  v.text = within(object, Prec::Atom) + "." + f.glsl;
  if (object.base && object.base->single && object.is_lvalue()) {
    v.base = base_of(
        object.base->variable, object.base->path + "." + f.glsl, f.type);
  } else if (
      object.base && object.home == Value::Home::Local &&
      (f.type->is_array() || f.type->is_struct())) {
    Value one = pinned(object); // of an array
    v.text = one.text + "." + f.glsl;
    v.base = base_of(
        one.base->variable,
        one.base->path + "[" + one.index + "]." + f.glsl,
        f.type);
  }
  Ty item = flat_element(f.type);
  if (item->is_pointer() && !item->is_address()) {
    if (f.type->is_array()) {
      fail_at(
          Place{},
          "the field `{}` is an array of pointers into threadgroup or thread "
          "memory; make each a field.",
          f.name);
    }
    v.base = f.points_to;
    v.slot = &f.points_to;
    return v;
  }
  if (f.type->is_array()) {
    if (!v.base) { // of no variable: a copy
      Value whole = temporary(object, "copy");
      v.base = base_of(whole.base->variable, "." + f.glsl, f.type);
    }
    v.home = Value::Home::None;
    v.text = "0";
  }
  return v;
}

} // namespace msl

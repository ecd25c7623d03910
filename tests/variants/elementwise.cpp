#include <array>

#include "kernels/arange.h"
#include "kernels/copy.h"
#include "kernels/copy_flat.h"
#include "kernels/elementwise.h"
#include "kernels/fill.h"
#include "kernels/probe.h"
#include "kernels/random.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

constexpr int forms[] =
    {FORM_DENSE, FORM_STRIDED, FORM_STRIDED16, FORM_DENSE4, FORM_DENSE_MANY};

// Forms that operands of a type may meet.
bool meets(int form, Type t) {
  return form != FORM_DENSE_MANY || size_of(t) <= 2;
}

void add_unary(VariantSet& set) {
  auto add = [&](int form, Type t, const char* op, bool large = false) {
    if (meets(form, t)) {
      set.add(UnaryVariant{
          .FORM = form, .IN = t, .OUT = t, .OP = op, .LARGE = large});
    }
  };
  for (Type t : all_types) {
    add(FORM_DENSE4, t, "Square");
  }
  for (auto* op : {"Exp", "Sqrt", "Round"}) {
    add(FORM_DENSE, Type::f32, op);
    add(FORM_STRIDED, Type::f32, op);
  }
  for (auto* op :
       {"Abs",     "ArcCos", "ArcCosh", "ArcSin",  "ArcSinh", "ArcTan",
        "ArcTanh", "Ceil",   "Cos",     "Cosh",    "Erf",     "ErfInv",
        "Exp",     "Expm1",  "Floor",   "Log",     "Log10",   "Log1p",
        "Log2",    "Round",  "Rsqrt",   "Sigmoid", "Sign",    "Sin",
        "Sinh",    "Sqrt",   "Tan",     "Tanh"}) {
    add(FORM_DENSE, Type::f64, op);
  }
  for (auto* op : {"Sin", "Tanh", "Sigmoid"}) {
    add(FORM_DENSE, Type::bf16, op);
    add(FORM_DENSE, Type::f16, op);
  }
  for (auto* op : {"ArcSin", "Tan"}) {
    add(FORM_DENSE, Type::c64, op);
  }
  for (int form : forms) {
    add(form, Type::i8, "Abs");
    add(form, Type::u64, "Square");
    add(form, Type::f32, "Erf", true);
  }
}

void add_binary(VariantSet& set) {
  auto add = [&](int form, Type in, Type out, const char* op, bool large) {
    if (meets(form, in)) {
      set.add(BinaryVariant{
          .FORM = form, .IN = in, .OUT = out, .OP = op, .LARGE = large});
    }
  };
  for (Type t : all_types) {
    add(FORM_DENSE4, t, Type::bool_, "Less", false);
  }
  for (auto* op : {"Add", "Power", "Remainder"}) {
    add(FORM_DENSE, Type::f32, Type::f32, op, false);
    add(FORM_STRIDED, Type::f32, Type::f32, op, false);
  }
  for (Type t : {Type::f32, Type::f64, Type::bf16, Type::c64}) {
    add(FORM_DENSE, t, Type::bool_, "NaNEqual", false);
  }
  for (auto* op :
       {"Add", "ArcTan2", "FloorDivide", "LogAddExp", "Maximum", "Power"}) {
    add(FORM_STRIDED, Type::f64, Type::f64, op, false);
  }
  for (Type t : {Type::i8, Type::u64, Type::bool_}) {
    for (int form : {FORM_STRIDED, FORM_STRIDED16}) {
      add(form, t, t, "Multiply", false);
      add(form, t, t, "FloorDivide", false);
    }
  }
  for (int form : forms) {
    add(form, Type::f16, Type::f16, "LogAddExp", true);
    add(form, Type::c64, Type::c64, "Multiply", true);
    for (Type t : {Type::f32, Type::f16, Type::u64}) {
      if (meets(form, t)) {
        set.add(BinaryVariant{
            .FORM = form,
            .IN = t,
            .OUT = t,
            .OP = "FloorDivide",
            .REMAINDER = true,
            .LARGE = t == Type::u64});
      }
    }
  }
}

void add_ternary(VariantSet& set) {
  for (int form : forms) {
    for (Type t :
         {Type::f32, Type::f64, Type::bf16, Type::u8, Type::c64, Type::bool_}) {
      if (meets(form, t)) {
        set.add(TernaryVariant{
            .FORM = form,
            .C = Type::bool_,
            .T = t,
            .OP = "Select",
            .LARGE = t == Type::bf16});
      }
    }
  }
}

void add_copies(VariantSet& set) {
  CopyVariant raw{.S = Type::u8, .D = Type::u8, .REDUCE = "none"};
  for (int word : {1, 2, 4, 8, 16}) {
    raw.WORD = word;
    for (int ndim : {1, 3}) {
      raw.NDIM = ndim;
      set.add(raw);
    }
  }
  raw.WORD = 4;
  raw.NDIM = 16;
  for (int bits = 0; bits < 8; ++bits) {
    raw.DYN_IN = bits & 1;
    raw.DYN_OUT = bits & 2;
    raw.LARGE = bits & 4;
    set.add(raw);
  }
  constexpr std::array some{
      Type::f32, Type::f64, Type::i64, Type::bool_, Type::c64};
  for (Type from : some) {
    for (Type to : {Type::bf16, Type::u8, Type::bool_, Type::c64}) {
      for (int ndim : {1, 2}) {
        set.add(
            CopyVariant{.S = from, .D = to, .REDUCE = "none", .NDIM = ndim});
      }
    }
    for (Type to : all_types) {
      set.add(CopyFlatVariant{.S = from, .D = to});
      set.add(FillVariant{.S = from, .D = to});
    }
  }
  set.add(CopyFlatVariant{.RAW = true, .S = Type::u8, .D = Type::u8});
  for (auto* reduce : {"combine_Sum", "combine_Max"}) {
    set.add(CopyVariant{
        .S = Type::f32,
        .D = Type::f32,
        .REDUCE = reduce,
        .REDUCES = true,
        .NDIM = 2});
  }
}

} // namespace

void add_elementwise_variants(VariantSet& set, const Caps& caps) {
  add_unary(set);
  add_binary(set);
  add_ternary(set);
  add_copies(set);
  for (Type t : all_types) {
    if (t != Type::bool_) {
      set.add(ArangeVariant{.T = t});
    }
  }
  set.add(ArangeVariant{.T = Type::f32, .LARGE = true});
  for (int bits = 0; bits < 4; ++bits) {
    set.add(RandomVariant{.WORDS = bool(bits & 1), .LARGE = bool(bits & 2)});
  }
  set.add(ProbeLanesVariant{.WG_SIZE = 256});
  for (bool arithmetic : {false, true}) {
    set.add(ProbeRateVariant{.ARITHMETIC = arithmetic});
  }
  for (bool back : {false, true}) {
    if (caps.shader_float16) {
      set.add(ProbeF16Variant{
          .NATIVE_F16 = true, .NATIVE_F16_ROUNDING = true, .BACK = back});
    }
  }
  for (Type t : {Type::f16, Type::bf16}) {
    if (caps.coopmat(t)) {
      set.add(ProbeCoopmatVariant{.T = t, .units = caps.matrices(t)});
      constexpr uint32_t amd = 0x1002;
      if (t == Type::bf16 && caps.vendor_id == amd) {
        set.add(ProbePrecisionVariant{.T = t, .units = caps.matrices(t)});
      }
    }
    if (caps.usual_matrices(t)) {
      int subgroup = caps.matrix_subgroup();
      for (int input : {0, 1, 2}) {
        if (caps.known_fragments) {
          set.add(
              ProbeFragmentsVariant{.T = t, .SG = subgroup, .INPUT = input});
        }
      }
    }
  }
}

} // namespace mlx::core::vulkan

// Literals and folding, with the arithmetic of MSL's types.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "msl/translator.h"

namespace msl {

namespace {

// Rounds to the nearest value with `bits` bits of mantissa, ties to even; with
// 11 bits also to half's range.
float round_mantissa(float x, int bits) {
  if (!std::isfinite(x) || x == 0) {
    return x;
  }
  if (bits == 8) {
    auto b = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u);
  }
  int e;
  std::frexp(x, &e); // |x| in [2^(e-1), 2^e)
  int step = std::max(e - bits, -24);
  float r = static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(double(x), -step)), step));
  return std::fabs(r) > 65504.0f ? std::copysign(INFINITY, x) : r;
}

double narrowed(double v, Scalar s) {
  auto f = static_cast<float>(v);
  return s == Scalar::F16 ? round_mantissa(f, 11)
      : s == Scalar::BF16 ? round_mantissa(f, 8)
                          : f;
}

// `v` modulo the type's range.
int64_t wrapped(int64_t v, Scalar s) {
  switch (s) {
    case Scalar::Bool:
      return v != 0;
    case Scalar::I8:
      return static_cast<int8_t>(v);
    case Scalar::U8:
      return static_cast<uint8_t>(v);
    case Scalar::I16:
      return static_cast<int16_t>(v);
    case Scalar::U16:
      return static_cast<uint16_t>(v);
    case Scalar::I32:
      return static_cast<int32_t>(v);
    case Scalar::U32:
      return static_cast<uint32_t>(v);
    default:
      return v;
  }
}

std::string float_text(float f) {
  if (!std::isfinite(f)) {
    char text[40];
    std::snprintf(
        text,
        sizeof text,
        "uintBitsToFloat(0x%xu)",
        std::bit_cast<uint32_t>(f));
    return text;
  }
  char text[40];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, double(f));
    if (std::strtof(text, nullptr) == f) {
      break;
    }
  }
  std::string s = text;
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

std::string integer_text(int64_t v, Scalar s) {
  switch (s) {
    case Scalar::Bool:
      return v ? "true" : "false";
    case Scalar::I32:
      return v == INT32_MIN ? "int(0x80000000u)" : std::to_string(v);
    case Scalar::U32:
      return std::to_string(v) + "u";
    case Scalar::I64:
      return v == INT64_MIN ? "int64_t(0x8000000000000000ul)"
                            : std::to_string(v) + "l";
    case Scalar::U64:
      return std::to_string(static_cast<uint64_t>(v)) + "ul";
    default:
      return std::string(info_of(s).value) + "(" + std::to_string(v) + ")";
  }
}

bool is_u64(Scalar s) {
  return s == Scalar::U64;
}

} // namespace

double Value::real() const {
  if (std::holds_alternative<double>(*constant)) {
    return std::get<double>(*constant);
  }
  int64_t v = std::get<int64_t>(*constant);
  return type->is_scalar() && is_u64(type->scalar)
      ? static_cast<double>(static_cast<uint64_t>(v))
      : static_cast<double>(v);
}

Value Translator::literal(Ty t, const Constant& c) {
  Value v;
  v.type = t;
  if (info_of(t->scalar).floating) {
    double d = std::holds_alternative<double>(c)
        ? std::get<double>(c)
        : static_cast<double>(std::get<int64_t>(c));
    d = narrowed(d, t->scalar);
    v.constant = d;
    v.text = float_text(static_cast<float>(d));
  } else {
    int64_t i = std::holds_alternative<int64_t>(c) ? std::get<int64_t>(c) : 0;
    if (std::holds_alternative<double>(c)) {
      double d = std::get<double>(c);
      if (t->scalar == Scalar::Bool) {
        i = d != 0;
      } else if (is_u64(t->scalar) && d >= 9.2e18) {
        i = static_cast<int64_t>(
            d < 1.8446744073709552e19 ? static_cast<uint64_t>(d) : UINT64_MAX);
      } else { // beyond: undefined in C++, saturated here
        i = std::isnan(d)  ? 0
            : d >= 9.2e18  ? INT64_MAX
            : d <= -9.2e18 ? INT64_MIN
                           : static_cast<int64_t>(d);
      }
    }
    i = wrapped(i, t->scalar);
    v.constant = i;
    v.text = integer_text(i, t->scalar);
  }
  v.prec = v.text[0] == '-' ? Prec::Unary : Prec::Atom;
  return v;
}

Value Translator::integer(int64_t v, Scalar s) {
  return literal(types_.scalar(s), v);
}

Value Translator::boolean(bool v) {
  return integer(v, Scalar::Bool);
}

namespace {

Scalar integer_type(uint64_t v, bool decimal, bool is_unsigned, bool is_long) {
  if (!is_long && v <= INT32_MAX && !is_unsigned) {
    return Scalar::I32;
  }
  if (!is_long && v <= UINT32_MAX && (is_unsigned || !decimal)) {
    return Scalar::U32;
  }
  return is_unsigned || v > INT64_MAX ? Scalar::U64 : Scalar::I64;
}

} // namespace

std::optional<uint64_t> integer_value(const std::string& digits) {
  bool binary = digits.starts_with("0b") || digits.starts_with("0B");
  const char* begin = digits.c_str() + (binary ? 2 : 0);
  char* stop = nullptr;
  errno = 0;
  uint64_t v = std::strtoull(begin, &stop, binary ? 2 : 0);
  return *begin == '\0' || *stop || errno ? std::nullopt : std::optional(v);
}

Value Translator::number(const Expr& e) {
  std::string s = e.text;
  std::erase(s, '\'');
  if (s == "true" || s == "false") {
    return boolean(s == "true");
  }
  bool hex = s.size() > 2 && s[0] == '0' && (s[1] | 32) == 'x';
  bool binary = s.size() > 2 && s[0] == '0' && (s[1] | 32) == 'b';
  bool real = hex ? s.find_first_of("pP.") != s.npos
                  : !binary && s.find_first_of(".eE") != s.npos;
  size_t end = s.size();
  auto is_suffix = [&](char c) {
    c |= 32;
    return c == 'u' || c == 'l' || c == 'h' ||
        (!hex || real ? c == 'f' || (c == 'b' && !binary) : false);
  };
  while (end > 1 && is_suffix(s[end - 1])) {
    --end;
  }
  std::string suffix = s.substr(end);
  std::string digits = s.substr(0, end);
  auto has = [&](char c) {
    return std::any_of(
        suffix.begin(), suffix.end(), [&](char x) { return (x | 32) == c; });
  };
  char* stop = nullptr;
  if (real || has('f') || has('h')) {
    double d = std::strtod(digits.c_str(), &stop);
    if (*stop) {
      fail("`{}` is not a number of MSL.", e.text);
    }
    Scalar t = has('h') ? Scalar::F16 : has('b') ? Scalar::BF16 : Scalar::F32;
    // Rounds once, from the text.
    return literal(
        types_.scalar(t),
        t == Scalar::F32 ? double(std::strtof(digits.c_str(), nullptr)) : d);
  }
  auto v = integer_value(digits);
  if (!v) {
    fail("`{}` is not a number of MSL.", e.text);
  }
  bool decimal = !hex && !binary && digits[0] != '0';
  return integer(
      static_cast<int64_t>(*v), integer_type(*v, decimal, has('u'), has('l')));
}

namespace {

std::optional<double> fold_real(const std::string& op, double a, double b) {
  return op == "+" ? a + b
      : op == "-"  ? a - b
      : op == "*"  ? a * b
      : op == "/"  ? std::optional(a / b)
                   : std::nullopt;
}

template <typename T>
std::optional<bool> fold_compared(const std::string& op, T a, T b) {
  return op == "<" ? a < b
      : op == ">"  ? a > b
      : op == "<=" ? a <= b
      : op == ">=" ? a >= b
      : op == "==" ? a == b
      : op == "!=" ? std::optional(a != b)
                   : std::nullopt;
}

} // namespace

std::optional<int64_t>
fold_integer(const std::string& op, int64_t a, int64_t b, Scalar s) {
  bool is_signed = info_of(s).is_signed;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (op == "+" || op == "-" || op == "*") {
    return static_cast<int64_t>(
        op == "+"       ? ua + ub
            : op == "-" ? ua - ub
                        : ua * ub);
  }
  if (op == "/" || op == "%") {
    if (b == 0 || (is_signed && b == -1)) {
      return b == 0 ? std::nullopt
                    : std::optional<int64_t>(
                          op == "%" ? 0 : static_cast<int64_t>(0 - ua));
    }
    if (is_signed) {
      return op == "/" ? a / b : a % b;
    }
    return static_cast<int64_t>(op == "/" ? ua / ub : ua % ub);
  }
  if (op == "&" || op == "|" || op == "^") {
    return op == "&" ? a & b : op == "|" ? a | b : a ^ b;
  }
  if (op == "<<" || op == ">>") {
    if (b < 0 || b >= 8 * info_of(s).size) {
      return std::nullopt;
    }
    return op == "<<" ? static_cast<int64_t>(ua << b)
        : is_signed   ? a >> b
                      : static_cast<int64_t>(ua >> b);
  }
  return std::nullopt;
}

std::optional<bool>
fold_comparison(const std::string& op, int64_t a, int64_t b) {
  return fold_compared(op, a, b);
}

std::optional<Value> Translator::fold(
    const std::string& op,
    const Value& a,
    const Value& b,
    Ty result) {
  if (!a.constant || !b.constant || !a.type->is_scalar()) {
    return {};
  }
  bool real = a.type->is_floating();
  if (result->is_bool() && op != "&" && op != "|" && op != "^") {
    std::optional<bool> r = real ? fold_compared(op, a.real(), b.real())
        : is_u64(a.type->scalar)
        ? fold_compared(
              op,
              static_cast<uint64_t>(a.integer()),
              static_cast<uint64_t>(b.integer()))
        : fold_comparison(op, a.integer(), b.integer());
    return r ? std::optional(boolean(*r)) : std::nullopt;
  }
  if (real) {
    auto r = fold_real(op, a.real(), b.real());
    return r ? std::optional(literal(result, *r)) : std::nullopt;
  }
  auto r = fold_integer(op, a.integer(), b.integer(), result->scalar);
  return r ? std::optional(literal(result, *r)) : std::nullopt;
}

} // namespace msl

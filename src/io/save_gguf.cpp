#include "io/gguf.h"

#include <fstream>
#include <sstream>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "vk/integers.h"

namespace mlx::core {

namespace {

using namespace gguf;

class Writer {
 public:
  explicit Writer(const std::string& path)
      : out_(path, std::ios::binary | std::ios::trunc), path_(path) {
    if (!out_) {
      throw std::runtime_error("[save_gguf] Failed to open " + path);
    }
  }
  void bytes(const void* p, size_t n) {
    out_.write(static_cast<const char*>(p), static_cast<std::streamsize>(n));
    at_ += n;
  }
  template <typename T>
  void number(T value) {
    bytes(&value, sizeof(T));
  }
  void string(const std::string& s) {
    number<uint64_t>(s.size());
    bytes(s.data(), s.size());
  }
  void align(uint64_t to) {
    while (at_ % to) {
      number<uint8_t>(0);
    }
  }
  void finish() {
    out_.flush();
    if (!out_) {
      throw std::runtime_error(
          "[save_gguf] Writing " + path_ + " failed; is the disk full?");
    }
  }

 private:
  std::ofstream out_;
  std::string path_;
  uint64_t at_ = 0;
};

ValueType value_type_of(Dtype dtype) {
  for (uint32_t i = 0; i <= uint32_t(ValueType::f64); ++i) {
    auto type = static_cast<ValueType>(i);
    bool number = type != ValueType::string && type != ValueType::array;
    if (number &&
        visit_number(type, [](auto, Dtype d) { return d; }) == dtype) {
      return type;
    }
  }
  std::ostringstream text;
  text << "[save_gguf] Metadata of dtype " << dtype
       << " is not supported; use integers, bool or float32.";
  throw std::invalid_argument(text.str());
}

TensorType tensor_type_of(const std::string& name, Dtype dtype) {
  for (auto& [type, d] : plain_types) {
    if (d == dtype && d != bfloat16) { // MLX's writer refuses it, too
      return type;
    }
  }
  std::ostringstream text;
  text << "[save_gguf] Array " << name << " has dtype " << dtype
       << ", which is not supported; use float32, float16, int8, int16 or "
          "int32.";
  throw std::runtime_error(text.str());
}

array row_major(array a) {
  a = contiguous(a, false, Device::cpu);
  eval(a);
  return a;
}

void write_metadata(
    Writer& out,
    const std::string& key,
    const GGUFMetaData& value) {
  out.string(key);
  if (auto* text = std::get_if<std::string>(&value)) {
    out.number(ValueType::string);
    out.string(*text);
  } else if (auto* list = std::get_if<std::vector<std::string>>(&value)) {
    out.number(ValueType::array);
    out.number(ValueType::string);
    out.number<uint64_t>(list->size());
    for (const auto& item : *list) {
      out.string(item);
    }
  } else {
    // check_metadata() leaves only scalars and vectors.
    auto a = row_major(std::get<array>(value));
    if (a.ndim() == 1) {
      out.number(ValueType::array);
    }
    out.number(value_type_of(a.dtype()));
    if (a.ndim() == 1) {
      out.number<uint64_t>(a.size());
    }
    out.bytes(a.data<char>(), a.nbytes());
  }
}

void check_metadata(const std::string& key, const GGUFMetaData& value) {
  if (std::holds_alternative<std::monostate>(value)) {
    throw std::runtime_error(
        "[save_gguf] The metadata value of " + key + " is empty.");
  }
  if (auto* a = std::get_if<array>(&value)) {
    if (a->ndim() > 1) {
      throw std::runtime_error(
          "[save_gguf] Metadata arrays have at most one dimension; " + key +
          " has " + std::to_string(a->ndim()) + ".");
    }
    if (a->size() == 0) {
      throw std::runtime_error(
          "[save_gguf] The metadata array " + key +
          " is empty; GGUF readers need at least one item.");
    }
    value_type_of(a->dtype());
  }
}

} // namespace

void save_gguf(
    std::string path,
    std::unordered_map<std::string, array> arrays,
    std::unordered_map<std::string, GGUFMetaData> metadata) {
  if (!path.ends_with(".gguf")) {
    path += ".gguf";
  }
  // Checks everything that can be rejected before the file is touched.
  for (const auto& [key, value] : metadata) {
    check_metadata(key, value);
  }
  for (auto& [name, a] : arrays) {
    tensor_type_of(name, a.dtype());
    a = row_major(a);
  }
  Writer out(path);
  out.number(magic);
  out.number<uint32_t>(3);
  out.number<uint64_t>(arrays.size());
  out.number<uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) {
    write_metadata(out, key, value);
  }
  auto padded = [](uint64_t n) {
    return vulkan::round_up(n, default_alignment);
  };
  uint64_t offset = 0;
  for (const auto& [name, a] : arrays) {
    out.string(name);
    out.number<uint32_t>(a.ndim());
    for (int d = static_cast<int>(a.ndim()) - 1; d >= 0; --d) {
      out.number<uint64_t>(a.shape(d));
    }
    out.number(tensor_type_of(name, a.dtype()));
    out.number(offset);
    offset = padded(offset + a.nbytes());
  }
  for (const auto& [name, a] : arrays) {
    out.align(default_alignment);
    out.bytes(a.data<char>(), a.nbytes());
  }
  out.align(default_alignment);
  out.finish();
}

} // namespace mlx::core

// mx.load and mx.save_gguf for GGUF version 2 and 3 files, after the format
// description in ggml's docs/gguf.md. MLX builds this on gguflib, which is not
// among the locked sources; this file takes its place.
//
// Tensors of F32, F16, BF16, I8, I16 and I32 load as they are. Q4_0, Q4_1 and
// Q8_0 load without loss as MLX's affine quantization of group 32: `x.weight`
// (uint32), `x.scales` and `x.biases` (float16). Every length and offset is
// checked against the file before it is used.
#include "mlx/io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

constexpr uint32_t magic = 0x46554747; // "GGUF"
constexpr uint64_t default_alignment = 32;
constexpr uint32_t max_dims = 8;
constexpr uint64_t block_items = 32;

// GGUF's metadata value types.
enum class ValueType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

// GGML's tensor types that MLX has a place for.
enum class TensorType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q8_0 = 8,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  bf16 = 30
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(
      "[load_gguf] " + what + ". The file may be incomplete or corrupt.");
}

class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0) {
      if (fd >= 0) {
        ::close(fd);
      }
      throw std::invalid_argument("[load_gguf] Failed to open " + path);
    }
    size_ = info.st_size;
    void* p = size_ ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0)
                    : MAP_FAILED;
    ::close(fd);
    if (p == MAP_FAILED) {
      fail(path + " cannot be read");
    }
    data_ = static_cast<const char*>(p);
  }
  ~MappedFile() {
    munmap(const_cast<char*>(data_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const {
    return data_;
  }
  uint64_t size() const {
    return size_;
  }

 private:
  const char* data_ = nullptr;
  uint64_t size_ = 0;
};

// A cursor that never leaves the file.
class Reader {
 public:
  Reader(const char* data, uint64_t size) : data_(data), size_(size) {}

  const char* take(uint64_t bytes) {
    if (bytes > size_ - at_) {
      fail("A value extends past the end of the file");
    }
    const char* p = data_ + at_;
    at_ += bytes;
    return p;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string string() {
    auto length = number<uint64_t>();
    return std::string(take(length), length);
  }
  uint64_t at() const {
    return at_;
  }
  uint64_t left() const {
    return size_ - at_;
  }

 private:
  const char* data_;
  uint64_t size_;
  uint64_t at_ = 0;
};

template <typename T>
array scalar(Reader& in, Dtype dtype) {
  return array(in.number<T>(), dtype);
}

template <typename T>
array vector(Reader& in, uint64_t count, Dtype dtype) {
  if (count > in.left() / sizeof(T) ||
      count > uint64_t(std::numeric_limits<int32_t>::max())) {
    fail("A metadata array extends past the end of the file");
  }
  std::vector<T> items(count);
  std::memcpy(items.data(), in.take(count * sizeof(T)), count * sizeof(T));
  return array(items.data(), {static_cast<int32_t>(count)}, dtype);
}

GGUFMetaData read_array(Reader& in) {
  auto type = static_cast<ValueType>(in.number<uint32_t>());
  auto n = in.number<uint64_t>();
  switch (type) {
    case ValueType::u8:
      return vector<uint8_t>(in, n, uint8);
    case ValueType::i8:
      return vector<int8_t>(in, n, int8);
    case ValueType::u16:
      return vector<uint16_t>(in, n, uint16);
    case ValueType::i16:
      return vector<int16_t>(in, n, int16);
    case ValueType::u32:
      return vector<uint32_t>(in, n, uint32);
    case ValueType::i32:
      return vector<int32_t>(in, n, int32);
    case ValueType::u64:
      return vector<uint64_t>(in, n, uint64);
    case ValueType::i64:
      return vector<int64_t>(in, n, int64);
    case ValueType::f32:
      return vector<float>(in, n, float32);
    case ValueType::f64: // MLX's GPU has no float64; its GGUF values are f32
      return vector<double>(in, n, float32);
    case ValueType::boolean:
      return vector<uint8_t>(in, n, bool_);
    case ValueType::string: {
      if (n > in.left() / sizeof(uint64_t)) {
        fail("A metadata array extends past the end of the file");
      }
      std::vector<std::string> items;
      items.reserve(n);
      for (uint64_t i = 0; i < n; ++i) {
        items.push_back(in.string());
      }
      return items;
    }
    default:
      throw std::invalid_argument(
          "[load_gguf] Metadata arrays of arrays are not supported.");
  }
}

GGUFMetaData read_value(Reader& in, ValueType type) {
  switch (type) {
    case ValueType::u8:
      return scalar<uint8_t>(in, uint8);
    case ValueType::i8:
      return scalar<int8_t>(in, int8);
    case ValueType::u16:
      return scalar<uint16_t>(in, uint16);
    case ValueType::i16:
      return scalar<int16_t>(in, int16);
    case ValueType::u32:
      return scalar<uint32_t>(in, uint32);
    case ValueType::i32:
      return scalar<int32_t>(in, int32);
    case ValueType::u64:
      return scalar<uint64_t>(in, uint64);
    case ValueType::i64:
      return scalar<int64_t>(in, int64);
    case ValueType::f32:
      return scalar<float>(in, float32);
    case ValueType::f64:
      return scalar<double>(in, float32);
    case ValueType::boolean:
      return array(in.number<uint8_t>() != 0, bool_);
    case ValueType::string:
      return in.string();
    case ValueType::array:
      return read_array(in);
  }
  fail("Metadata of an unknown type " + std::to_string(uint32_t(type)));
}

struct Tensor {
  std::string name;
  Shape shape; // row-major: the reverse of GGML's order
  uint64_t items = 1;
  TensorType type;
  uint64_t offset;
};

Tensor read_tensor(Reader& in) {
  Tensor t;
  t.name = in.string();
  auto ndim = in.number<uint32_t>();
  if (ndim > max_dims) {
    fail("Tensor " + t.name + " has " + std::to_string(ndim) + " dimensions");
  }
  t.shape.resize(ndim);
  for (uint32_t d = 0; d < ndim; ++d) {
    auto extent = in.number<uint64_t>();
    if (extent > uint64_t(std::numeric_limits<ShapeElem>::max()) ||
        __builtin_mul_overflow(t.items, extent, &t.items)) {
      fail("Tensor " + t.name + " has a dimension that is too large");
    }
    t.shape[ndim - 1 - d] = static_cast<ShapeElem>(extent);
  }
  t.type = static_cast<TensorType>(in.number<uint32_t>());
  t.offset = in.number<uint64_t>();
  return t;
}

bool quantized(TensorType t) {
  return t == TensorType::q4_0 || t == TensorType::q4_1 ||
      t == TensorType::q8_0;
}

uint64_t block_bytes(TensorType t) {
  return t == TensorType::q4_0 ? 18 : t == TensorType::q4_1 ? 20 : 34;
}

Dtype dtype_of(const Tensor& t) {
  switch (t.type) {
    case TensorType::f32:
      return float32;
    case TensorType::f16:
      return float16;
    case TensorType::bf16:
      return bfloat16;
    case TensorType::i8:
      return int8;
    case TensorType::i16:
      return int16;
    case TensorType::i32:
      return int32;
    default:
      throw std::runtime_error(
          "[load_gguf] Tensor " + t.name + " has GGML type " +
          std::to_string(uint32_t(t.type)) +
          ", which this build does not read. It reads F32, F16, BF16, I8, "
          "I16, I32, Q4_0, Q4_1 and Q8_0; convert the file to one of them.");
  }
}

// The tensor's bytes, after checking that they lie in the file.
const char* bytes_of(
    const MappedFile& file,
    uint64_t base,
    const Tensor& t,
    uint64_t bytes) {
  uint64_t begin = 0;
  if (__builtin_add_overflow(base, t.offset, &begin) || begin > file.size() ||
      bytes > file.size() - begin) {
    fail("Tensor " + t.name + " extends past the end of the file");
  }
  return file.data() + begin;
}

float half_at(const char* p) {
  float16_t h;
  std::memcpy(&h, p, sizeof(h));
  return static_cast<float>(h);
}

// GGML keeps items 0-15 of a block in the low nibbles and 16-31 in the high
// ones; MLX packs neighbours.
void repack_nibbles(const char* in, uint8_t* out) {
  auto* q = reinterpret_cast<const uint8_t*>(in);
  for (int j = 0; j < 16; j += 2) {
    out[j / 2] = (q[j] & 15) | (q[j + 1] & 15) << 4;
    out[8 + j / 2] = (q[j] >> 4) | (q[j + 1] & 0xf0);
  }
}

void load_quantized(
    const Tensor& t,
    const char* data,
    std::unordered_map<std::string, array>& arrays) {
  bool wide = t.type == TensorType::q8_0;
  uint64_t blocks = t.items / block_items;
  Shape packed = t.shape, groups = t.shape;
  packed.back() = t.shape.back() / (wide ? 4 : 8);
  groups.back() = t.shape.back() / static_cast<int>(block_items);
  size_t code_bytes = wide ? 32 : 16;
  array weight(allocator::malloc(blocks * code_bytes), packed, uint32);
  array scales(allocator::malloc(blocks * 2), groups, float16);
  array biases(allocator::malloc(blocks * 2), groups, float16);
  auto* codes = weight.data<uint8_t>();
  auto* scale = scales.data<float16_t>();
  auto* bias = biases.data<float16_t>();
  for (uint64_t b = 0; b < blocks; ++b) {
    const char* block = data + b * block_bytes(t.type);
    float d = half_at(block);
    scale[b] = float16_t(d);
    switch (t.type) {
      case TensorType::q4_0:
        bias[b] = float16_t(-8 * d);
        repack_nibbles(block + 2, codes);
        break;
      case TensorType::q4_1:
        bias[b] = float16_t(half_at(block + 2));
        repack_nibbles(block + 4, codes);
        break;
      default: // Q8_0: signed codes, shifted to unsigned ones
        bias[b] = float16_t(-128 * d);
        for (int j = 0; j < 32; ++j) {
          codes[j] = static_cast<uint8_t>(block[2 + j]) ^ 0x80;
        }
    }
    codes += code_bytes;
  }
  constexpr std::string_view suffix = ".weight";
  std::string stem = t.name;
  if (stem.ends_with(suffix)) {
    stem.resize(stem.size() - suffix.size());
  }
  bool fresh = arrays.emplace(t.name, weight).second &&
      arrays.emplace(stem + ".scales", scales).second &&
      arrays.emplace(stem + ".biases", biases).second;
  if (!fresh) {
    fail("Two tensors give the name " + t.name + " or its scales and biases");
  }
}

void load_tensor(
    const MappedFile& file,
    uint64_t base,
    const Tensor& t,
    std::unordered_map<std::string, array>& arrays) {
  if (quantized(t.type)) {
    if (t.shape.empty() || t.shape.back() % int(block_items)) {
      fail(
          "Quantized tensor " + t.name +
          " has no last dimension that is a multiple of 32");
    }
    uint64_t bytes = t.items / block_items * block_bytes(t.type);
    load_quantized(t, bytes_of(file, base, t, bytes), arrays);
    return;
  }
  Dtype dtype = dtype_of(t);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(t.items, uint64_t(size_of(dtype)), &bytes)) {
    fail("Tensor " + t.name + " has a dimension that is too large");
  }
  const char* data = bytes_of(file, base, t, bytes);
  array a(allocator::malloc(bytes), t.shape, dtype);
  if (bytes) {
    std::memcpy(a.data<char>(), data, bytes);
  }
  if (!arrays.emplace(t.name, a).second) {
    fail("Two tensors are named " + t.name);
  }
}

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
  switch (dtype) {
    case bool_:
      return ValueType::boolean;
    case uint8:
      return ValueType::u8;
    case int8:
      return ValueType::i8;
    case uint16:
      return ValueType::u16;
    case int16:
      return ValueType::i16;
    case uint32:
      return ValueType::u32;
    case int32:
      return ValueType::i32;
    case uint64:
      return ValueType::u64;
    case int64:
      return ValueType::i64;
    case float32:
      return ValueType::f32;
    default:
      std::ostringstream text;
      text << "[save_gguf] Metadata of dtype " << dtype
           << " is not supported; use integers, bool or float32.";
      throw std::invalid_argument(text.str());
  }
}

TensorType tensor_type_of(const std::string& name, Dtype dtype) {
  switch (dtype) {
    case float32:
      return TensorType::f32;
    case float16:
      return TensorType::f16;
    case int8:
      return TensorType::i8;
    case int16:
      return TensorType::i16;
    case int32:
      return TensorType::i32;
    default:
      std::ostringstream text;
      text << "[save_gguf] Array " << name << " has dtype " << dtype
           << ", which is not supported; use float32, float16, int8, int16 or "
              "int32.";
      throw std::runtime_error(text.str());
  }
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
    // Scalars and vectors; check_metadata() has seen to the rest.
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

GGUFLoad load_gguf(const std::string& path, StreamOrDevice) {
  MappedFile file(path);
  Reader in(file.data(), file.size());
  if (in.number<uint32_t>() != magic) {
    fail(path + " is not a GGUF file");
  }
  auto version = in.number<uint32_t>();
  if (version != 2 && version != 3) {
    throw std::runtime_error(
        "[load_gguf] " + path + " has GGUF version " + std::to_string(version) +
        "; versions 2 and 3 are supported.");
  }
  auto tensors = in.number<uint64_t>();
  auto values = in.number<uint64_t>();

  GGUFLoad result;
  auto& [arrays, metadata] = result;
  uint64_t alignment = default_alignment;
  for (uint64_t i = 0; i < values; ++i) {
    auto key = in.string();
    auto type = static_cast<ValueType>(in.number<uint32_t>());
    auto value = read_value(in, type);
    if (key == "general.alignment" && type == ValueType::u32) {
      alignment = std::get<array>(value).item<uint32_t>();
    }
    metadata.insert_or_assign(std::move(key), std::move(value));
  }
  if (alignment == 0 || alignment > (1u << 20)) {
    fail("general.alignment is " + std::to_string(alignment));
  }
  std::vector<Tensor> list;
  for (uint64_t i = 0; i < tensors; ++i) {
    list.push_back(read_tensor(in));
  }
  uint64_t base = (in.at() + alignment - 1) / alignment * alignment;
  for (const auto& t : list) {
    load_tensor(file, base, t, arrays);
  }
  return result;
}

void save_gguf(
    std::string path,
    std::unordered_map<std::string, array> arrays,
    std::unordered_map<std::string, GGUFMetaData> metadata) {
  if (!path.ends_with(".gguf")) {
    path += ".gguf";
  }
  // Everything that can be refused is, before the file is touched.
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
    return (n + default_alignment - 1) / default_alignment * default_alignment;
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

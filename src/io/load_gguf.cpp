#include "io/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "mlx/allocator.h"

namespace mlx::core {

namespace {

using namespace gguf;

constexpr uint32_t max_dims = 8;
constexpr uint64_t block_items = 32;

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

void check_count(Reader& in, uint64_t count, size_t itemsize) {
  if (count > in.left() / itemsize ||
      count > uint64_t(std::numeric_limits<int32_t>::max())) {
    fail("A metadata array extends past the end of the file");
  }
}

GGUFMetaData read_array(Reader& in) {
  auto type = static_cast<ValueType>(in.number<uint32_t>());
  auto count = in.number<uint64_t>();
  if (type == ValueType::string) {
    check_count(in, count, sizeof(uint64_t));
    std::vector<std::string> items(count);
    for (auto& item : items) {
      item = in.string();
    }
    return items;
  }
  if (type == ValueType::array || type > ValueType::f64) {
    throw std::invalid_argument(
        "[load_gguf] Metadata arrays of arrays are not supported.");
  }
  return visit_number(type, [&](auto item, Dtype dtype) {
    check_count(in, count, sizeof(item));
    std::vector<decltype(item)> items(count);
    if (size_t bytes = count * sizeof(item)) { // memcpy takes no null
      std::memcpy(items.data(), in.take(bytes), bytes);
    }
    return array(items.data(), {static_cast<int32_t>(count)}, dtype);
  });
}

GGUFMetaData read_value(Reader& in, ValueType type) {
  if (type == ValueType::string) {
    return in.string();
  }
  if (type == ValueType::array) {
    return read_array(in);
  }
  return visit_number(type, [&](auto item, Dtype dtype) {
    return array(in.number<decltype(item)>(), dtype);
  });
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
  for (auto& [type, dtype] : plain_types) {
    if (type == t.type) {
      return dtype;
    }
  }
  throw std::runtime_error(
      "[load_gguf] Tensor " + t.name + " has GGML type " +
      std::to_string(uint32_t(t.type)) +
      ", which this build does not read. It reads F32, F16, BF16, I8, I16, I32, "
      "Q4_0, Q4_1 and Q8_0; convert the file to one of them.");
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

} // namespace mlx::core

#include "io/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "backend/weights.h"
#include "io/load.h"
#include "mlx/io/load.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"
#include "vk/integers.h"

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

// What an array of MLX takes of a quantized tensor.
enum class Part { Codes, Scales, Biases };

// Writes one part of each of `count` blocks.
void read_blocks(
    TensorType type,
    Part part,
    const char* block,
    uint64_t count,
    char* out) {
  bool wide = type == TensorType::q8_0;
  uint64_t step = block_bytes(type), head = type == TensorType::q4_1 ? 4 : 2;
  auto* codes = reinterpret_cast<uint8_t*>(out);
  auto* halves = reinterpret_cast<float16_t*>(out);
  for (; count > 0; --count, block += step) {
    float d = half_at(block);
    if (part == Part::Scales) {
      *halves++ = float16_t(d);
    } else if (part == Part::Biases) {
      *halves++ = float16_t(
          type == TensorType::q4_1 ? half_at(block + 2)
                                   : (wide ? -128 : -8) * d);
    } else if (wide) { // signed codes, shifted to unsigned ones
      for (int j = 0; j < 32; ++j) {
        *codes++ = static_cast<uint8_t>(block[head + j]) ^ 0x80;
      }
    } else {
      repack_nibbles(block + head, codes);
      codes += 16;
    }
  }
}

// The bytes of one array, read from a tensor of the file.
class TensorReader : public vulkan::ParallelReader {
 public:
  TensorReader(
      std::shared_ptr<const MappedFile> file,
      const char* data,
      TensorType type,
      Part part = {})
      : file_(std::move(file)), data_(data), type_(type), part_(part) {}

  // Whole blocks: Load reads from multiples of some MiB.
  void read(char* out, size_t n, size_t offset) override {
    if (!quantized(type_)) {
      std::memcpy(out, data_ + offset, n);
      return;
    }
    uint64_t bytes = part_ != Part::Codes ? 2
        : type_ == TensorType::q8_0       ? 32
                                          : 16;
    auto* first = data_ + offset / bytes * block_bytes(type_);
    read_blocks(type_, part_, first, n / bytes, out);
  }

  bool is_open() const override {
    return true;
  }
  bool good() const override {
    return true;
  }
  std::string label() const override {
    return "GGUF file";
  }
  // Load has no position.
  size_t tell() override {
    return 0;
  }
  void seek(int64_t, std::ios_base::seekdir) override {}
  void read(char* out, size_t n) override {
    read(out, n, 0);
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  const char* data_;
  TensorType type_;
  Part part_;
};

using File = std::shared_ptr<const MappedFile>;

array make_array(
    Shape shape,
    Dtype dtype,
    Stream stream,
    std::shared_ptr<TensorReader> reader) {
  auto load = std::make_shared<Load>(stream, std::move(reader), 0);
  return array(std::move(shape), dtype, std::move(load), {});
}

void load_quantized(
    const File& file,
    const Tensor& t,
    const char* data,
    Stream stream,
    std::unordered_map<std::string, array>& arrays) {
  Shape packed = t.shape, groups = t.shape;
  packed.back() = t.shape.back() / (t.type == TensorType::q8_0 ? 4 : 8);
  groups.back() = t.shape.back() / static_cast<int>(block_items);
  auto make = [&](const Shape& shape, Dtype dtype, Part part) {
    return make_array(
        shape,
        dtype,
        stream,
        std::make_shared<TensorReader>(file, data, t.type, part));
  };
  constexpr std::string_view suffix = ".weight";
  std::string stem = t.name;
  if (stem.ends_with(suffix)) {
    stem.resize(stem.size() - suffix.size());
  }
  auto scales = make(groups, float16, Part::Scales);
  auto biases = make(groups, float16, Part::Biases);
  bool fresh =
      arrays.emplace(t.name, make(packed, uint32, Part::Codes)).second &&
      arrays.emplace(stem + ".scales", scales).second &&
      arrays.emplace(stem + ".biases", biases).second;
  if (!fresh) {
    fail("Two tensors give the name " + t.name + " or its scales and biases");
  }
}

void load_tensor(
    const File& file,
    uint64_t base,
    const Tensor& t,
    Stream stream,
    std::unordered_map<std::string, array>& arrays) {
  if (quantized(t.type)) {
    if (t.shape.empty() || t.shape.back() % int(block_items)) {
      fail(
          "Quantized tensor " + t.name +
          " has no last dimension that is a multiple of 32");
    }
    uint64_t bytes = t.items / block_items * block_bytes(t.type);
    auto* data = bytes_of(*file, base, t, bytes);
    load_quantized(file, t, data, stream, arrays);
    return;
  }
  Dtype dtype = dtype_of(t);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(t.items, uint64_t(size_of(dtype)), &bytes)) {
    fail("Tensor " + t.name + " has a dimension that is too large");
  }
  auto reader = std::make_shared<TensorReader>(
      file, bytes_of(*file, base, t, bytes), t.type);
  auto a = make_array(t.shape, dtype, stream, std::move(reader));
  if (!arrays.emplace(t.name, a).second) {
    fail("Two tensors are named " + t.name);
  }
}

} // namespace

GGUFLoad load_gguf(const std::string& path, StreamOrDevice s) {
  auto stream =
      vulkan::files_go_to_gpu() ? to_stream(s) : to_stream(s, Device::cpu);
  auto file = std::make_shared<const MappedFile>(path);
  Reader in(file->data(), file->size());
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
  uint64_t base = vulkan::round_up(in.at(), alignment);
  for (const auto& t : list) {
    load_tensor(file, base, t, stream, arrays);
  }
  // At once, because the file may change.
  vulkan::expect_weights(arrays);
  std::vector<array> all;
  for (auto& [name, a] : arrays) {
    all.push_back(a);
  }
  eval(std::move(all));
  return result;
}

} // namespace mlx::core

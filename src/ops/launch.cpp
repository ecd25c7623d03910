#include "ops/launch.h"

#include <algorithm>

#include "glue/stream.h"
#include "pipeline/pipeline.h"
#include "runtime/config.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

// Bytes of the buffer that an operand may touch.
Binding bind(const Operand& o) {
  const array& a = o.a;
  Binding b;
  if (!a.data_shared_ptr()) {
    return b;
  }
  b.buffer = static_cast<Buffer*>(a.data_shared_ptr()->buffer().ptr());
  if (!b.buffer) {
    return b;
  }
  b.offset = a.offset();
  if (o.ranged) {
    b.begin = a.offset() + o.begin;
    b.end = a.offset() + o.end;
  } else if (a.flags().row_contiguous) {
    b.begin = a.offset();
    b.end = a.offset() + a.data_size() * a.itemsize();
  } else {
    b.begin = 0;
    b.end = b.buffer->size;
  }
  b.end = std::min<uint64_t>(b.end, b.buffer->size);
  return b;
}

} // namespace

const Kernel& StreamEncoder::kernel(
    std::string_view file,
    std::initializer_list<Define> defines) {
  return enc_.device().pipelines().get(file, defines);
}

const Kernel& StreamEncoder::coopmat_kernel(
    std::string_view file,
    Type type,
    std::initializer_list<Define> others) {
  return enc_.device().pipelines().get_coopmat(
      file, type, {others.begin(), others.size()});
}

void StreamEncoder::dispatch_bytes(
    const Kernel& k,
    std::span<const Operand> inputs,
    std::span<const Operand> outputs,
    const void* params,
    size_t params_size,
    Grid grid) {
  constexpr size_t inline_operands = 16;
  Binding fixed[2 * inline_operands];
  std::vector<Binding> many;
  Binding* bindings = fixed;
  if (inputs.size() + outputs.size() > 2 * inline_operands) {
    many.resize(inputs.size() + outputs.size());
    bindings = many.data();
  }
  Binding* out = bindings;
  for (const auto& o : inputs) {
    *out++ = bind(o);
  }
  for (const auto& o : outputs) {
    *out++ = bind(o);
  }
  enc_.dispatch(
      k,
      {bindings, inputs.size()},
      {bindings + inputs.size(), outputs.size()},
      params,
      params_size,
      grid);
}

void StreamEncoder::add_temporary(const array& a) {
  enc_.retain(a.data_shared_ptr());
}

array StreamEncoder::temporary(Shape shape, Dtype dtype) {
  array a(std::move(shape), dtype, nullptr, {});
  a.set_data(allocator::malloc(a.nbytes()));
  add_temporary(a);
  return a;
}

Grid linear(uint64_t groups) {
  constexpr uint64_t most = 65535;
  if (groups <= most) {
    return {static_cast<uint32_t>(groups), 1, 1};
  }
  uint64_t x = most;
  uint64_t y = (groups + x - 1) / x;
  uint64_t z = 1;
  if (y > most) {
    z = (y + most - 1) / most;
    y = (y + z - 1) / z;
  }
  return {
      static_cast<uint32_t>(x),
      static_cast<uint32_t>(y),
      static_cast<uint32_t>(z)};
}

} // namespace mlx::core::vulkan

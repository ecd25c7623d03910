// Builds what depends on a step's position, as mlx-lm's Python does (late.h).
#include "ops/traced/late.h"

#include <bit>
#include <optional>
#include <stdexcept>
#include <utility>

#include "mlx/ops.h"
#include "mlx/utils.h"

namespace mlx::core::vulkan {

namespace {

using Inputs = const std::vector<array>&;

// The length in the trace of what has another length in each step.
constexpr int any_length = 1;

// What a call was given, as a part of the graph needs it.
struct Call {
  const std::vector<array>& inputs;
  const Scalars& scalars;
  Stream stream;

  int integer(size_t i) const {
    return std::get<int>(scalars.at(i));
  }
  bool truth(size_t i) const {
    return std::get<bool>(scalars.at(i));
  }
  // As its bits: mlx.core 0.32 refuses floats.
  float number(size_t i) const {
    return std::bit_cast<float>(integer(i));
  }
  array make(
      Shape shape,
      Dtype type,
      bool open,
      Late::Build build,
      int slot = -1,
      int length = 0) const {
    return array(
        std::move(shape),
        type,
        std::make_shared<Late>(stream, open, std::move(build), slot, length),
        inputs);
  }
};

// [start, stop) of axis -2, all of the others.
std::pair<Shape, Shape> places(const array& cache, int start, int stop) {
  Shape from(cache.ndim(), 0), to = cache.shape();
  from[cache.ndim() - 2] = start;
  to[cache.ndim() - 2] = stop;
  return {from, to};
}

array put(const Call& call) {
  int slot = call.integer(0);
  auto& cache = call.inputs.at(0);
  auto build = [slot](Inputs in, const Positions& at, Stream s) {
    int start = at.at(slot);
    auto [from, to] = places(in[0], start, start + in[1].shape(-2));
    return slice_update(in[0], in[1], from, to, s);
  };
  int length = call.inputs.at(1).shape(-2);
  return call.make(cache.shape(), cache.dtype(), true, build, slot, length);
}

array take(const Call& call) {
  int slot = call.integer(0);
  auto& cache = call.inputs.at(0);
  auto build = [slot](Inputs in, const Positions& at, Stream s) {
    auto [from, to] = places(in[0], 0, at.at(slot));
    return slice(in[0], from, to, s);
  };
  Shape shape = cache.shape();
  shape[cache.ndim() - 2] = any_length;
  return call.make(shape, cache.dtype(), true, build);
}

// mlx-lm's create_causal_mask().
array causal_mask(
    int n,
    int offset,
    int window,
    const array* left_padding,
    Stream s) {
  array keys = arange(offset + n, s);
  array queries = offset ? arange(offset, offset + n, s) : keys;
  queries = expand_dims(queries, 1, s);
  keys = expand_dims(keys, 0, s);
  array mask = greater_equal(queries, keys, s);
  if (window) {
    array last = add(keys, array(window, int32), s);
    mask = bitwise_and(mask, less(queries, last, s), s);
  }
  if (left_padding) {
    array first = expand_dims(*left_padding, {1, 2, 3}, s);
    mask = bitwise_and(mask, less_equal(first, keys, s), s);
  }
  return mask;
}

array causal(const Call& call) {
  int slot = call.integer(0), n = call.integer(1), window = call.integer(2);
  int shift = call.integer(3);
  auto build = [=](Inputs in, const Positions& at, Stream s) {
    auto* padding = in.empty() ? nullptr : &in[0];
    array mask = causal_mask(n, at.at(slot), window, padding, s);
    return shift < 0 ? mask : roll(mask, at.at(shift), -1, s);
  };
  Shape shape{n, any_length};
  if (!call.inputs.empty()) {
    shape = {call.inputs[0].shape(0), 1, n, any_length};
  }
  return call.make(shape, bool_, true, build);
}

Shape attended(const array& q, const array& v) {
  auto shape = q.shape();
  shape.back() = v.shape(-1);
  return shape;
}

array attend(const Call& call) {
  float scale = call.number(0);
  bool causal = call.truth(1), masked = call.truth(2), sinks = call.truth(3);
  auto& in = call.inputs;
  auto build = [=](Inputs in, const Positions&, Stream s) {
    size_t next = 3;
    std::optional<array> mask, sink;
    if (masked) {
      mask = in.at(next++);
    }
    if (sinks) {
      sink = in.at(next);
    }
    auto mode = causal ? "causal" : "";
    return fast::scaled_dot_product_attention(
        in[0], in[1], in[2], scale, mode, mask, sink, false, s);
  };
  auto type = result_type(in.at(0), in.at(1), in.at(2));
  return call.make(attended(in[0], in[2]), type, false, build);
}

// Functions of MLX on arrays of which some have any length. The first scalar is
// whether the result has.
using Function = array (*)(const Call& call);

template <array (*function)(const array&, const array&, StreamOrDevice)>
array of_two(const Call& call) {
  return function(call.inputs[0], call.inputs[1], call.stream);
}
array expanded(const Call& call) {
  return expand_dims(call.inputs[0], call.integer(1), call.stream);
}
array swapped(const Call& call) {
  int first = call.integer(1), second = call.integer(2);
  return swapaxes(call.inputs[0], first, second, call.stream);
}
array quantized(const Call& call) {
  auto& in = call.inputs;
  bool turn = call.truth(1);
  int group = call.integer(2), bits = call.integer(3);
  return quantized_matmul(
      in[0], in[1], in[2], in[3], turn, group, bits, "affine", call.stream);
}
array chosen(const Call& call) {
  auto& in = call.inputs;
  return where(in[0], in[1], in[2], call.stream);
}
array softened(const Call& call) {
  int axis = call.integer(1);
  return softmax(call.inputs[0], axis, call.truth(2), call.stream);
}

constexpr std::pair<const char*, Function> functions[] = {
    {"expand_dims", expanded},
    {"swapaxes", swapped},
    {"matmul", of_two<matmul>},
    {"quantized_matmul", quantized},
    {"add", of_two<add>},
    {"multiply", of_two<multiply>},
    {"divide", of_two<divide>},
    {"tanh", [](const Call& c) { return tanh(c.inputs[0], c.stream); }},
    {"where", chosen},
    {"softmax", softened}};

array computed(const Call& call, Function function) {
  auto like = function(call);
  auto build = [function, by = call.scalars](
                   Inputs in, const Positions&, Stream s) {
    return function({in, by, s});
  };
  return call.make(like.shape(), like.dtype(), call.truth(0), build);
}

array position(const Call& call) {
  int slot = call.integer(0);
  auto build = [slot](Inputs, const Positions& at, Stream) {
    return array(at.at(slot), int32);
  };
  return call.make({}, int32, false, build, slot);
}

} // namespace

array late(
    const std::string& part,
    const std::vector<array>& inputs,
    const Scalars& scalars,
    const Shape& shape,
    Dtype type,
    Stream stream) {
  Call call{inputs, scalars, stream};
  if (part == "given") {
    auto index = static_cast<size_t>(call.integer(0));
    auto given = std::make_shared<Given>(stream, index, call.truth(1));
    return array(shape, type, std::move(given), {});
  }
  constexpr std::pair<const char*, array (*)(const Call&)> parts[] = {
      {"position", position},
      {"put", put},
      {"take", take},
      {"causal", causal},
      {"attend", attend}};
  for (auto& [name, make] : parts) {
    if (part == name) {
      return make(call);
    }
  }
  for (auto& [name, function] : functions) {
    if (part == name) {
      return computed(call, function);
    }
  }
  throw std::invalid_argument("[traced step] There is no part " + part + ".");
}

} // namespace mlx::core::vulkan

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

// A function of MLX on arrays of which some have any length. The first scalar
// is whether the result has.
using Function = array (*)(Inputs, const Scalars&, Stream);

constexpr std::pair<const char*, Function> functions[] = {
    {"expand_dims",
     [](Inputs in, const Scalars& by, Stream s) {
       return expand_dims(in[0], std::get<int>(by.at(1)), s);
     }},
    {"swapaxes",
     [](Inputs in, const Scalars& by, Stream s) {
       int first = std::get<int>(by.at(1)), second = std::get<int>(by.at(2));
       return swapaxes(in[0], first, second, s);
     }},
    {"matmul",
     [](Inputs in, const Scalars&, Stream s) {
       return matmul(in[0], in[1], s);
     }},
    {"quantized_matmul",
     [](Inputs in, const Scalars& by, Stream s) {
       bool transpose = std::get<bool>(by.at(1));
       int group = std::get<int>(by.at(2)), bits = std::get<int>(by.at(3));
       return quantized_matmul(
           in[0], in[1], in[2], in[3], transpose, group, bits, "affine", s);
     }},
    {"add",
     [](Inputs in, const Scalars&, Stream s) { return add(in[0], in[1], s); }},
    {"multiply",
     [](Inputs in, const Scalars&, Stream s) {
       return multiply(in[0], in[1], s);
     }},
    {"divide",
     [](Inputs in, const Scalars&, Stream s) {
       return divide(in[0], in[1], s);
     }},
    {"tanh",
     [](Inputs in, const Scalars&, Stream s) { return tanh(in[0], s); }},
    {"where",
     [](Inputs in, const Scalars&, Stream s) {
       return where(in[0], in[1], in[2], s);
     }},
    {"softmax",
     [](Inputs in, const Scalars& by, Stream s) {
       bool precise = std::get<bool>(by.at(2));
       return softmax(in[0], std::get<int>(by.at(1)), precise, s);
     }},
};

array computed(const Call& call, Function function) {
  auto like = function(call.inputs, call.scalars, call.stream);
  auto build = [function, by = call.scalars](
                   Inputs in, const Positions&, Stream s) {
    return function(in, by, s);
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
    const std::string& what,
    const std::vector<array>& inputs,
    const Scalars& scalars,
    const Shape& shape,
    Dtype type,
    Stream stream) {
  Call call{inputs, scalars, stream};
  if (what == "given") {
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
    if (what == name) {
      return make(call);
    }
  }
  for (auto& [name, function] : functions) {
    if (what == name) {
      return computed(call, function);
    }
  }
  throw std::invalid_argument("[traced step] There is no part " + what + ".");
}

} // namespace mlx::core::vulkan

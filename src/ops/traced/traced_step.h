// A decode step that is traced once and then built again without Python.
//
// Python's model runs once on arrays that have no value yet (Given) and leaves
// what depends on the position to functions (Late). TracedStep keeps that graph
// and evaluates it anew for other inputs and positions: the same primitives on
// the same shapes in the same order as the model's, so that kernels, rewrites
// and bits are those of a step that is not traced. docs/dev/traced-step.md
//
// A step is one array of MLX's graph, whose evaluation makes and encodes those
// of the record one after another, without a graph of them.
//
// Threads: any; evaluations of one step exclude one another.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// What changes from step to step: positions, numbers of keys. By slot.
using Positions = std::vector<int>;

// A primitive of the traced graph alone. Its arrays have no value; evaluating
// one throws std::runtime_error, so that Python cannot decide by it.
class Unknown : public Primitive {
 public:
  // open: arrays have other lengths in other steps, so that only Late may read
  // them.
  Unknown(Stream stream, bool open) : Primitive(stream), open_(open) {}
  void eval_cpu(const std::vector<array>&, std::vector<array>&) override;
  void eval_gpu(const std::vector<array>&, std::vector<array>&) override;
  const char* name() const override {
    return "Unknown";
  }
  bool open() const {
    return open_;
  }

 private:
  bool open_;
};

// An input of the step. If it is open, its axis -2 has any length.
class Given : public Unknown {
 public:
  Given(Stream stream, size_t index, bool open)
      : Unknown(stream, open), index_(index) {}
  size_t index() const {
    return index_;
  }

 private:
  size_t index_;
};

// Something that is built for each step from its inputs and the positions.
class Late : public Unknown {
 public:
  using Build = std::function<
      array(const std::vector<array>& inputs, const Positions&, Stream)>;
  // slot: of the position that it is, or at which it writes `length` places of
  // its first input; -1 otherwise.
  Late(Stream stream, bool open, Build build, int slot = -1, int length = 0)
      : Unknown(stream, open),
        build_(std::move(build)),
        slot_(slot),
        length_(length) {}
  int slot() const {
    return slot_;
  }
  int length() const {
    return length_;
  }
  array build(const std::vector<array>& inputs, const Positions& at) {
    return build_(inputs, at, stream());
  }

 private:
  Build build_;
  int slot_, length_;
};

class TracedStep : public std::enable_shared_from_this<TracedStep> {
 public:
  // Keeps the graph of `outputs`, made on `stream` from `given` inputs. Throws
  // std::invalid_argument if other steps would need another graph: random
  // numbers, weights that are not loaded, an open array that is read directly.
  TracedStep(const std::vector<array>& outputs, size_t given, Stream stream);

  // Watches arrays that Python objects hold, such as weights: objects[i] is the
  // address of that of arrays[i], of `size` bytes. Returns false if the objects
  // do not hold their arrays in themselves. The caller keeps the objects alive.
  bool watch(
      const std::vector<array>& arrays,
      const void* const* objects,
      size_t size);

  // The step's outputs for these inputs and positions. Empty if the trace does
  // not hold for them: another stream, other shapes or types, a watched array
  // that was replaced, a transformation of the caller's, a full cache.
  std::vector<array>
  run(const std::vector<array>& given, const Positions& at, Stream stream);

  // As the function of backend/stream.h.
  static uint32_t operations_of(const Primitive& primitive);

 private:
  static constexpr uint32_t none = ~0u;
  struct Operand {
    uint32_t slot;
    bool last; // nothing later reads the slot
  };
  struct Node {
    std::shared_ptr<Primitive> primitive;
    Late* late = nullptr; // the primitive, if it is one
    std::vector<Operand> inputs;
    std::vector<uint32_t> outputs; // none: nothing reads it
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
  };
  struct Parameter {
    uint32_t slot = none; // none: the step does not read it
    bool open = false;
    Shape shape;
    Dtype dtype = bool_;
  };
  struct Watched {
    const uintptr_t* word;
    uintptr_t id;
  };
  class Recorder;

  class Whole;
  class Part;
  // An output is an input, or has the shape of an input, or one of its own.
  struct Output {
    Operand operand;
    uint32_t given = none, like = none; // indices of inputs
    Shape shape;
    Dtype dtype = bool_;
  };
  // A step needs room for `length` places behind a position.
  struct Room {
    uint32_t given;
    int slot, length;
  };

  bool holds_for(
      const std::vector<array>& given,
      const Positions& at,
      Stream stream) const;
  // The outputs. Takes the inputs, so that they can be donated.
  std::vector<array> evaluate(std::vector<array>& inputs, const Positions& at);
  void evaluate_nodes(const Positions& at);
  void clear();

  Stream stream_;
  array empty_{0};
  std::vector<Node> nodes_; // in an order of evaluation
  std::vector<Parameter> given_;
  std::vector<Output> outputs_;
  std::vector<Room> rooms_;
  std::vector<array> slots_; // empty between steps, but for constants
  std::vector<bool> constant_; // by slot
  std::vector<Watched> watched_;
  std::mutex evaluating_;
};

} // namespace mlx::core::vulkan

// A decode step that is traced once and then built again without Python.
//
// Python's model runs once on arrays that have no value yet (Given) and leaves
// what depends on the position to functions (Late). TracedStep keeps that graph
// and builds it anew for other inputs and positions: the same primitives on the
// same shapes as the model would make, so that kernels, rewrites and bits are
// those of a step that is not traced. docs/dev/traced-step.md
//
// Threads: a TracedStep may be shared; run() of one step excludes itself.
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
  // slot: of the position that it is, if it is no more than that; -1 otherwise.
  Late(Stream stream, bool open, Build build, int slot = -1)
      : Unknown(stream, open), build_(std::move(build)), slot_(slot) {}
  int slot() const {
    return slot_;
  }
  array build(const std::vector<array>& inputs, const Positions& at) {
    return build_(inputs, at, stream());
  }

 private:
  Build build_;
  int slot_;
};

// Thrown by Late where a step needs more room in a cache than there is.
struct NoRoom : std::exception {
  const char* what() const noexcept override {
    return "[traced step] A cache has no room.";
  }
};

class TracedStep {
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

  bool holds_for(const std::vector<array>& given, Stream stream) const;
  void build(const Positions& at);
  void clear();

  Stream stream_;
  std::vector<Node> nodes_; // in an order of evaluation
  std::vector<Parameter> given_;
  std::vector<Operand> outputs_;
  std::vector<array> slots_; // empty between steps, but for constants
  std::vector<bool> constant_; // by slot
  std::vector<Watched> watched_;
  std::mutex running_;
};

} // namespace mlx::core::vulkan

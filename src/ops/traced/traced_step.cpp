// Records the graph of a step and builds it again (traced_step.h).
#include "ops/traced/traced_step.h"

#include <algorithm>
#include <stdexcept>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "mlx/transforms_impl.h"

namespace mlx::core::vulkan {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("[traced step] " + why);
}

bool unscheduled(const array& a) {
  return a.has_primitive() && a.status() == array::Status::unscheduled;
}

// Shapes agree except for the length of an open parameter.
bool same_shape(const Shape& given, const Shape& traced, bool open) {
  if (given.size() != traced.size()) {
    return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    bool length = open && i + 2 == given.size();
    if (!length && given[i] != traced[i]) {
      return false;
    }
  }
  return true;
}

} // namespace

void Unknown::eval_cpu(const std::vector<array>&, std::vector<array>&) {
  throw std::runtime_error(
      "[traced step] The value of an array was asked for while the step was "
      "traced; the model cannot be traced (docs/dev/traced-step.md).");
}

void Unknown::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  eval_cpu(inputs, outputs);
}

// Walks the traced graph from its outputs, inputs first.
class TracedStep::Recorder {
 public:
  explicit Recorder(TracedStep& step) : step_(step) {}

  void record(const std::vector<array>& outputs) {
    for (auto& a : outputs) {
      visit(a);
    }
    for (auto& a : outputs) {
      step_.outputs_.push_back({slots_.at(a.id()), false});
    }
    mark_last_readers();
  }

 private:
  bool known(const array& a) const {
    return slots_.count(a.id()) > 0;
  }

  uint32_t new_slot(const array& a, const array& content, bool constant) {
    auto slot = static_cast<uint32_t>(step_.slots_.size());
    slots_.emplace(a.id(), slot);
    step_.slots_.push_back(content);
    step_.constant_.push_back(constant);
    return slot;
  }

  // Adds an array and what it is made from, without recursion.
  void visit(const array& root) {
    std::vector<array> open{root};
    while (!open.empty()) {
      array a = open.back();
      if (known(a)) {
        open.pop_back();
        continue;
      }
      if (!unscheduled(a)) {
        new_slot(a, a, true);
        open.pop_back();
        continue;
      }
      size_t before = open.size();
      for (auto& in : a.inputs()) {
        if (!known(in)) {
          open.push_back(in);
        }
      }
      if (open.size() == before) {
        add(a);
        open.pop_back();
      }
    }
  }

  void add(const array& a) {
    auto& primitive = a.primitive();
    if (auto* given = dynamic_cast<Given*>(&primitive)) {
      auto& parameter = step_.given_.at(given->index());
      parameter.slot = new_slot(a, empty_, false);
      parameter.open = given->open();
      parameter.shape = a.shape();
      parameter.dtype = a.dtype();
      return;
    }
    Node node{a.primitive_ptr(), dynamic_cast<Late*>(&primitive)};
    // Python asks for an offset often; all its arrays are one.
    if (int slot = node.late ? node.late->slot() : -1; slot >= 0) {
      if (auto known = positions_.find(slot); known != positions_.end()) {
        slots_.emplace(a.id(), known->second);
        return;
      }
      positions_.emplace(slot, static_cast<uint32_t>(step_.slots_.size()));
    }
    check(a, node.late != nullptr);
    for (auto& in : a.inputs()) {
      node.inputs.push_back({slots_.at(in.id()), false});
    }
    for (auto& out : a.outputs()) {
      node.outputs.push_back(new_slot(out, empty_, false));
      node.shapes.push_back(out.shape());
      node.dtypes.push_back(out.dtype());
    }
    step_.nodes_.push_back(std::move(node));
  }

  static void check(const array& a, bool late) {
    auto& primitive = a.primitive();
    if (typeid(primitive) == typeid(RandomBits)) {
      refuse("the step draws random numbers.");
    }
    if (typeid(primitive) == typeid(Load)) {
      refuse("a weight is not loaded yet.");
    }
    for (auto& in : a.inputs()) {
      auto* unknown = in.has_primitive()
          ? dynamic_cast<Unknown*>(&in.primitive())
          : nullptr;
      if (unknown && unknown->open() && !late) {
        refuse(
            std::string(primitive.name()) +
            " reads an array whose length changes from step to step.");
      }
    }
  }

  // Slots are emptied by their last readers, so that a finished step holds none
  // of its arrays, which could not be donated otherwise.
  void mark_last_readers() {
    std::vector<bool> read(step_.constant_);
    auto mark = [&](Operand& o) {
      o.last = !read[o.slot];
      read[o.slot] = true;
    };
    for (auto o = step_.outputs_.rbegin(); o != step_.outputs_.rend(); ++o) {
      mark(*o);
    }
    for (auto n = step_.nodes_.rbegin(); n != step_.nodes_.rend(); ++n) {
      for (auto& slot : n->outputs) {
        slot = read[slot] ? slot : none;
      }
      for (auto o = n->inputs.rbegin(); o != n->inputs.rend(); ++o) {
        mark(*o);
      }
    }
  }

  TracedStep& step_;
  array empty_{0};
  std::unordered_map<uintptr_t, uint32_t> slots_; // by the id of an array
  std::unordered_map<int, uint32_t> positions_; // slots of positions
};

TracedStep::TracedStep(
    const std::vector<array>& outputs,
    size_t given,
    Stream stream)
    : stream_(stream), given_(given) {
  Recorder(*this).record(outputs);
}

bool TracedStep::watch(
    const std::vector<array>& arrays,
    const void* const* objects,
    size_t size) {
  std::vector<Watched> found;
  // Python's objects hold an array, which begins with the pointer that is its
  // id, at the same place.
  size_t words = size / sizeof(uintptr_t), place = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto* object = static_cast<const uintptr_t*>(objects[i]);
    if (i == 0) {
      place = std::find(object, object + words, arrays[0].id()) - object;
    }
    if (place >= words || object[place] != arrays[i].id()) {
      return false;
    }
    found.push_back({object + place, arrays[i].id()});
  }
  watched_ = std::move(found);
  return true;
}

bool TracedStep::holds_for(const std::vector<array>& given, Stream stream)
    const {
  if (stream != stream_ || given.size() != given_.size() ||
      detail::in_tracing() || detail::retain_graph()) {
    return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    auto& p = given_[i];
    bool same = p.slot == none ||
        (given[i].dtype() == p.dtype && !given[i].is_tracer() &&
         same_shape(given[i].shape(), p.shape, p.open));
    if (!same) {
      return false;
    }
  }
  return std::all_of(watched_.begin(), watched_.end(), [](auto& w) {
    return *w.word == w.id;
  });
}

void TracedStep::build(const Positions& at) {
  std::vector<array> inputs;
  for (auto& node : nodes_) {
    inputs.reserve(node.inputs.size());
    for (auto& in : node.inputs) {
      if (in.last) {
        inputs.push_back(std::move(slots_[in.slot]));
      } else {
        inputs.push_back(slots_[in.slot]);
      }
    }
    if (node.outputs.size() > 1) {
      auto made =
          array::make_arrays(node.shapes, node.dtypes, node.primitive, inputs);
      for (size_t i = 0; i < made.size(); ++i) {
        if (node.outputs[i] != none) {
          slots_[node.outputs[i]] = std::move(made[i]);
        }
      }
    } else if (node.late) {
      slots_[node.outputs[0]] = node.late->build(inputs, at);
    } else {
      slots_[node.outputs[0]] = array(
          node.shapes[0], node.dtypes[0], node.primitive, std::move(inputs));
    }
    inputs.clear();
  }
}

void TracedStep::clear() {
  array empty(0);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!constant_[i]) {
      slots_[i] = empty;
    }
  }
}

std::vector<array> TracedStep::run(
    const std::vector<array>& given,
    const Positions& at,
    Stream stream) {
  std::lock_guard lock(running_);
  if (!holds_for(given, stream)) {
    return {};
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given_[i].slot != none) {
      slots_[given_[i].slot] = given[i];
    }
  }
  std::vector<array> outputs;
  outputs.reserve(outputs_.size());
  try {
    build(at);
    for (auto& o : outputs_) {
      if (o.last) {
        outputs.push_back(std::move(slots_[o.slot]));
      } else {
        outputs.push_back(slots_[o.slot]);
      }
    }
  } catch (const NoRoom&) {
    clear();
    return {};
  } catch (...) {
    clear();
    throw;
  }
  return outputs;
}

} // namespace mlx::core::vulkan

// Records the graph of a step and evaluates it again (traced_step.h).
#include "ops/traced/traced_step.h"

#include <algorithm>
#include <stdexcept>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "backend/stream.h"
#include "mlx/transforms_impl.h"

namespace mlx::core::vulkan {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("[traced step] " + why);
}

bool unscheduled(const array& a) {
  return a.has_primitive() && a.status() == array::Status::unscheduled;
}

// What Late makes is a small graph.
void evaluate_graph(array& a, StreamEncoder& encoder) {
  if (unscheduled(a)) {
    for (auto& in : a.inputs()) {
      evaluate_graph(in, encoder);
    }
    evaluate(a, encoder);
    a.set_status(array::Status::available);
    a.detach();
  }
}

// Tokens of a prompt are int32, those of a sampler uint32. A step that was
// traced for int32 takes both, since no vocabulary has 2^31 tokens.
bool same_type(Dtype given, Dtype traced) {
  return given == traced || (given == uint32 && traced == int32);
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

// Records the traced graph in the order in which MLX would evaluate it.
class TracedStep::Recorder {
 public:
  explicit Recorder(TracedStep& step) : step_(step) {}

  void record(const std::vector<array>& outputs) {
    auto order = eval_order(outputs, step_.stream_);
    if (order.empty()) {
      refuse("its graph is not of one stream.");
    }
    for (auto& a : order) {
      add(a);
    }
    for (auto& a : outputs) {
      step_.outputs_.push_back(output(a));
    }
    mark_last_readers();
  }

 private:
  uint32_t new_slot(const array& a, const array& content, bool constant) {
    auto slot = static_cast<uint32_t>(step_.slots_.size());
    slots_.emplace(a.id(), slot);
    step_.slots_.push_back(content);
    step_.constant_.push_back(constant);
    return slot;
  }

  uint32_t slot_of(const array& a) {
    if (auto known = slots_.find(a.id()); known != slots_.end()) {
      return known->second;
    }
    if (unscheduled(a)) {
      refuse(std::string(a.primitive().name()) + " is out of order.");
    }
    array constant = a;
    constant.wait();
    return new_slot(a, constant, true);
  }

  // The index of the input that an array is; none if it is not one.
  static uint32_t given(const array& a) {
    auto* given =
        a.has_primitive() ? dynamic_cast<Given*>(&a.primitive()) : nullptr;
    return given ? static_cast<uint32_t>(given->index()) : none;
  }

  Output output(const array& a) {
    Output made{{slot_of(a), false}, given(a), none, a.shape(), a.dtype()};
    auto* late =
        a.has_primitive() ? dynamic_cast<Late*>(&a.primitive()) : nullptr;
    if (late && late->length() > 0) {
      made.like = given(a.inputs()[0]);
    } else if (step_.constant_[made.operand.slot] || (late && late->open())) {
      refuse("an output does not depend on the inputs, or has any length.");
    }
    return made;
  }

  void add(const array& a) {
    auto& primitive = a.primitive();
    if (auto* given = dynamic_cast<Given*>(&primitive)) {
      auto& parameter = step_.given_.at(given->index());
      parameter.slot = new_slot(a, step_.empty_, false);
      parameter.open = given->open();
      parameter.shape = a.shape();
      parameter.dtype = a.dtype();
      return;
    }
    Node node{a.primitive_ptr(), dynamic_cast<Late*>(&primitive)};
    // Python asks for an offset often; all its arrays are one.
    if (int slot = node.late ? node.late->slot() : -1;
        slot >= 0 && node.late->length() == 0) {
      if (auto known = positions_.find(slot); known != positions_.end()) {
        slots_.emplace(a.id(), known->second);
        return;
      }
      positions_.emplace(slot, static_cast<uint32_t>(step_.slots_.size()));
    }
    check(a, node.late != nullptr);
    if (node.late && node.late->length() > 0) {
      uint32_t cache = given(a.inputs()[0]);
      if (cache == none) {
        refuse("a cache is updated twice.");
      }
      step_.rooms_.push_back({cache, node.late->slot(), node.late->length()});
    }
    for (auto& in : a.inputs()) {
      node.inputs.push_back({slot_of(in), false});
    }
    for (auto& out : a.outputs()) {
      node.outputs.push_back(new_slot(out, step_.empty_, false));
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
      mark(o->operand);
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

bool TracedStep::holds_for(
    const std::vector<array>& given,
    const Positions& at,
    Stream stream) const {
  if (stream != stream_ || given.size() != given_.size() ||
      detail::in_tracing() || detail::retain_graph()) {
    return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    auto& p = given_[i];
    bool same = p.slot == none ||
        (same_type(given[i].dtype(), p.dtype) && !given[i].is_tracer() &&
         same_shape(given[i].shape(), p.shape, p.open));
    if (!same) {
      return false;
    }
  }
  for (auto& room : rooms_) {
    int start = at.at(room.slot);
    if (start < 0 || start + room.length > given[room.given].shape(-2)) {
      return false;
    }
  }
  return std::all_of(watched_.begin(), watched_.end(), [](auto& w) {
    return *w.word == w.id;
  });
}

// The step in MLX's graph: an array that says that it is done.
class TracedStep::Whole : public Primitive {
 public:
  using Results = std::shared_ptr<std::vector<array>>;
  Whole(Stream stream, std::shared_ptr<TracedStep> step, Positions at)
      : Primitive(stream), step_(std::move(step)), at_(std::move(at)) {}

  void eval_cpu(const std::vector<array>&, std::vector<array>&) override {
    throw std::logic_error("[traced step] The stream is not a GPU's.");
  }
  void eval_gpu(const std::vector<array>&, std::vector<array>& outputs)
      override {
    outputs[0].set_data(allocator::malloc(outputs[0].nbytes()));
    if (std::exchange(begun_, true)) {
      throw std::runtime_error("[traced step] The step has failed before.");
    }
    *results_ = step_->evaluate(outputs[0].inputs(), at_);
  }
  const char* name() const override {
    return "TracedStep";
  }
  uint32_t operations() const {
    return static_cast<uint32_t>(step_->nodes_.size());
  }
  const Results& results() const {
    return results_;
  }

 private:
  std::shared_ptr<TracedStep> step_;
  Positions at_;
  bool begun_ = false;
  Results results_ = std::make_shared<std::vector<array>>();
};

// An output of a step that is done.
class TracedStep::Part : public Primitive {
 public:
  Part(Stream stream, Whole::Results results, size_t index)
      : Primitive(stream), results_(std::move(results)), index_(index) {}

  void eval_cpu(const std::vector<array>&, std::vector<array>&) override {
    throw std::logic_error("[traced step] The stream is not a GPU's.");
  }
  void eval_gpu(const std::vector<array>&, std::vector<array>& outputs)
      override {
    if (index_ >= results_->size()) {
      throw std::runtime_error("[traced step] The step has failed before.");
    }
    array result = std::move((*results_)[index_]); // so that it can be donated
    outputs[0].copy_shared_buffer(result);
  }
  const char* name() const override {
    return "TracedStepOutput";
  }

 private:
  Whole::Results results_;
  size_t index_;
};

uint32_t operations_of(const Primitive& primitive) {
  return TracedStep::operations_of(primitive);
}

uint32_t TracedStep::operations_of(const Primitive& primitive) {
  if (typeid(primitive) == typeid(Part)) {
    return 0;
  }
  return typeid(primitive) == typeid(Whole)
      ? static_cast<const Whole&>(primitive).operations()
      : 1;
}

void TracedStep::evaluate_nodes(const Positions& at) {
  auto& encoder = vulkan::encoder(stream_);
  std::vector<array> inputs, made;
  for (auto& node : nodes_) {
    for (auto& in : node.inputs) {
      if (in.last) {
        inputs.push_back(std::move(slots_[in.slot]));
      } else {
        inputs.push_back(slots_[in.slot]);
      }
    }
    if (node.late) {
      {
        PlacementScope host(Placement::Host); // of numbers
        made.push_back(node.late->build(inputs, at));
      }
      inputs.clear();
      evaluate_graph(made[0], encoder);
    } else {
      for (size_t i = 0; i < node.shapes.size(); ++i) {
        // Some of MLX's kernels ask the output's primitive for the stream.
        made.emplace_back(
            node.shapes[i],
            node.dtypes[i],
            node.primitive,
            std::vector<array>{});
        made[i].set_status(array::Status::available);
      }
      vulkan::evaluate(*node.primitive, inputs, made, encoder);
      inputs.clear();
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != none) {
        slots_[node.outputs[i]] = std::move(made[i]);
      }
    }
    made.clear();
    wait_for_room(stream_);
  }
}

void TracedStep::clear() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!constant_[i]) {
      slots_[i] = empty_;
    }
  }
}

std::vector<array> TracedStep::evaluate(
    std::vector<array>& inputs,
    const Positions& at) {
  std::lock_guard lock(evaluating_);
  size_t next = 0;
  for (auto& p : given_) {
    if (p.slot != none) {
      array in = std::exchange(inputs[next++], empty_);
      if (in.dtype() != p.dtype) {
        array same(in.shape(), p.dtype, nullptr, {});
        same.copy_shared_buffer(in);
        in = same;
      }
      slots_[p.slot] = std::move(in);
    }
  }
  std::vector<array> outputs;
  outputs.reserve(outputs_.size());
  try {
    evaluate_nodes(at);
    for (auto& o : outputs_) {
      auto& slot = slots_[o.operand.slot];
      if (o.operand.last) {
        outputs.push_back(std::move(slot));
      } else {
        outputs.push_back(slot);
      }
      if (auto* b = buffer_of(outputs.back())) {
        encoder(stream_).raw().keep(*b, outputs.back().data_shared_ptr());
      }
    }
  } catch (...) {
    clear();
    throw;
  }
  return outputs;
}

std::vector<array> TracedStep::run(
    const std::vector<array>& given,
    const Positions& at,
    Stream stream) {
  if (!holds_for(given, at, stream)) {
    return {};
  }
  std::vector<array> read;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given_[i].slot != none) {
      read.push_back(given[i]);
    }
  }
  auto whole = std::make_shared<Whole>(stream, shared_from_this(), at);
  auto results = whole->results();
  array done({}, bool_, std::move(whole), std::move(read));
  std::vector<array> outputs;
  outputs.reserve(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    auto& o = outputs_[i];
    if (o.given != none) {
      outputs.push_back(given[o.given]);
      continue;
    }
    outputs.emplace_back(
        o.like != none ? given[o.like].shape() : o.shape,
        o.dtype,
        std::make_shared<Part>(stream, results, i),
        std::vector<array>{done});
  }
  return outputs;
}

} // namespace mlx::core::vulkan

// mx.async_eval of a graph that is all of one GPU stream, as a decode step's
// is. MLX's own walk counts each array's readers in a hash map, weights
// included: with the map's memory that is 30 % of what async_eval executes.
// Here the count is in the array, and the tape points at arrays instead of
// sharing them. Any other graph goes to MLX's function, whose file is compiled
// with it under another name (cmake/mlx.cmake).
//
// The order of the arrays is MLX's, so that memory and fused kernels are too.
// Threads: like async_eval, any, each with graphs of its own.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/evaluate.h"
#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/backend/gpu/eval.h"
#include "mlx/memory.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "mlx/utils.h"

namespace mlx::core {

void async_eval_of_mlx(std::vector<array> outputs);

namespace {

// As in MLX's eval: more batches under way than this are waited for.
constexpr int most_active_tasks = 10;

// The last array of a walk, which has what is asked for as its inputs.
class AllOf : public Primitive {
 public:
  explicit AllOf(Stream stream) : Primitive(stream) {}
  void eval_cpu(const std::vector<array>&, std::vector<array>&) override {}
  void eval_gpu(const std::vector<array>&, std::vector<array>&) override {}
  const char* name() const override {
    return "AllOf";
  }
};

bool unscheduled(const array& a) {
  return a.status() == array::Status::unscheduled;
}

// The readers that an array has left: the value of its event, which is not
// attached yet. Zero before a walk, and after its tape is made.
uint64_t readers(const array& a) {
  return a.event().value();
}
void add_readers(array& a, uint64_t n) {
  a.event().set_value(readers(a) + n);
  for (auto& s : a.siblings()) { // they always have as many
    s.event().set_value(readers(s) + n);
  }
}

class Walk {
 public:
  Walk(Stream stream, std::vector<array> outputs)
      : stream_(stream),
        last_({}, bool_, std::make_shared<AllOf>(stream), std::move(outputs)) {}

  // False, and nothing has changed, where MLX has to walk.
  bool count();
  // Readers before what they read, by breadth as long as no more than MLX's
  // limit of arrays wait for their turn. Every count is zero then.
  void make_tape();
  // From the end of the tape to its beginning.
  void run();

  std::vector<array> take_outputs() {
    return std::move(last_.inputs());
  }

 private:
  bool ours(const array& a) const {
    return !a.event().valid() && a.has_primitive() &&
        a.primitive().stream() == stream_;
  }
  void follow(array& in);
  void encode(array& a, vulkan::StreamEncoder& encoder);
  void wait_for_room();
  void clear_up();

  Stream stream_;
  array last_;
  Event event_;
  // Of the arrays in their readers' inputs, which stay until those are
  // evaluated.
  std::vector<array*> found_, tape_;
};

bool Walk::count() {
  found_.reserve(1024);
  found_.push_back(&last_);
  for (size_t i = 0; i < found_.size(); ++i) {
    for (auto& in : found_[i]->inputs()) {
      bool todo = unscheduled(in);
      // What is evaluated has a primitive if a transformation needs it again.
      if (todo ? ours(in) : !in.has_primitive()) {
        if (todo) {
          if (readers(in) == 0) {
            found_.push_back(&in);
          }
          add_readers(in, 1);
        }
        continue;
      }
      for (auto* a : found_) {
        add_readers(*a, 0 - readers(*a));
      }
      return false;
    }
  }
  return true;
}

void Walk::make_tape() {
  const auto most_waiting = static_cast<size_t>(env::bfs_max_width());
  std::vector<std::pair<array*, size_t>> later; // with its next input
  tape_.reserve(found_.size());
  tape_.push_back(&last_);
  size_t done = 0;
  while (done < tape_.size() || !later.empty()) {
    array* reader;
    size_t next = 0;
    if (done < tape_.size()) {
      reader = tape_[done++];
    } else {
      std::tie(reader, next) = later.back();
      later.pop_back();
    }
    auto& inputs = reader->inputs();
    for (; next < inputs.size(); ++next) {
      auto& in = inputs[next];
      if (!unscheduled(in)) {
        continue;
      }
      if (tape_.size() - done >= most_waiting) {
        later.emplace_back(reader, next);
        break;
      }
      add_readers(in, -1);
      if (readers(in) == 0) {
        tape_.push_back(&in);
      }
    }
  }
}

// An input that an earlier eval, maybe of another stream, is or was to make.
void Walk::follow(array& in) {
  auto& e = in.event();
  if (!e.valid() || &e.cast<char>() == &event_.cast<char>()) {
    return;
  }
  if (e.is_signaled()) {
    in.detach_event();
    return;
  }
  if (e.stream() != stream_) {
    e.wait(stream_);
  }
  vulkan::follow_cpu_producer(in, e);
}

void Walk::encode(array& a, vulkan::StreamEncoder& encoder) {
  a.attach_event(event_);
  for (auto& s : a.siblings()) {
    s.attach_event(event_);
  }
  for (auto& in : a.inputs()) {
    follow(in);
  }
  vulkan::evaluate(a, encoder);
  wait_for_room();
  a.set_status(array::Status::evaluated);
  for (auto& s : a.siblings()) {
    s.set_status(array::Status::evaluated);
  }
  a.detach();
}

void Walk::wait_for_room() {
  auto& tasks = scheduler::scheduler();
  auto too_much_memory = [&] {
    return get_active_memory() > get_memory_limit() &&
        tasks.n_active_tasks() > 0;
  };
  if (tasks.n_active_tasks() > most_active_tasks || too_much_memory()) {
    gpu::finalize(stream_);
    do {
      tasks.wait_for_one();
    } while (too_much_memory());
  }
}

// After an exception: what was encoded runs, and whoever waits for it is told.
void Walk::clear_up() {
  try {
    event_.signal(stream_);
  } catch (...) {
  }
  try {
    gpu::finalize(stream_);
  } catch (...) {
  }
  try {
    synchronize(stream_);
  } catch (...) {
    // The first exception tells more.
  }
}

void Walk::run() {
  event_ = Event{stream_};
  event_.set_value(1);
  try {
    auto& encoder = vulkan::encoder(stream_);
    vulkan::PlacementScope placement(vulkan::Placement::Device);
    while (!tape_.empty()) {
      encode(*tape_.back(), encoder);
      tape_.pop_back();
    }
  } catch (...) {
    clear_up();
    throw;
  }
  event_.signal(stream_);
  gpu::finalize(stream_);
}

} // namespace

void async_eval(std::vector<array> outputs) {
  auto first = std::find_if(outputs.begin(), outputs.end(), unscheduled);
  if (first == outputs.end()) {
    return;
  }
  if (detail::in_tracing() || detail::retain_graph() ||
      !first->has_primitive() ||
      first->primitive().stream().device != Device::gpu) {
    return async_eval_of_mlx(std::move(outputs));
  }
  Walk walk(first->primitive().stream(), std::move(outputs));
  if (!walk.count()) {
    return async_eval_of_mlx(walk.take_outputs());
  }
  walk.make_tape();
  walk.run();
}

} // namespace mlx::core

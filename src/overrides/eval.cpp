// Replaces eval() and async_eval(): MLX's walk counts readers in a hash map.
//
// MLX's walk of a decode step enters every array and every weight in that map:
// 30 % of what async_eval executes. Where a graph belongs to one GPU stream, as
// a prompt's and a decode step's do, this walk keeps the counts in the arrays
// and its tape points at arrays instead of sharing them. The order of arrays is
// MLX's, so that memory and fused kernels are the same. MLX's own functions,
// compiled under other names (renamed_evals.h), walk all other graphs.
//
// What MLX could offer: docs/dev/upstream.md, "Reader counts".
//
// Threads: any, each with graphs of its own, as with MLX's functions.
#include <algorithm>
#include <atomic>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/backend/gpu/eval.h"
#include "mlx/memory.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlx/transforms.h"
#include "mlx/transforms_impl.h"
#include "mlx/utils.h"
#include "overrides/default_device.h"

namespace mlx::core {

void eval_of_mlx(std::vector<array> outputs);
void async_eval_of_mlx(std::vector<array> outputs);

namespace {

// The last array of a walk; its inputs are the requested arrays.
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

// Counts an array's remaining readers in the value of its event, which MLX uses
// only once the array is evaluated. The upper half of the value is the number
// of the walk, so that counts left by a walk that threw mean nothing to the
// next.
class Readers {
 public:
  Readers() : mine_(next_walk.fetch_add(1, std::memory_order_relaxed) << 32) {}

  uint64_t of(const array& a) const {
    uint64_t value = a.event().value();
    return value >> 32 == mine_ >> 32 ? value & 0xffffffff : 0;
  }
  void set(array& a, uint64_t n) const {
    a.event().set_value(mine_ | n);
    for (auto& s : a.siblings()) { // they always have as many
      s.event().set_value(mine_ | n);
    }
  }

 private:
  static inline std::atomic<uint64_t> next_walk{1};
  const uint64_t mine_;
};

enum class Then { GoOn, Wait };

class Walk {
 public:
  Walk(Stream stream, std::vector<array> outputs, Then then)
      : stream_(stream),
        then_(then),
        last_({}, bool_, std::make_shared<AllOf>(stream), std::move(outputs)) {}

  // Returns false, without changes, if MLX must walk the graph.
  bool count();
  // Orders readers before what they read, breadth first as long as no more than
  // MLX's limit of arrays are queued.
  void make_tape();
  // Evaluates the tape from its end; Then::Wait also waits for the GPU.
  void run();

  // The tape without last_, in the order of run().
  std::vector<array> order() const;
  std::vector<array> take_outputs() {
    return std::move(last_.inputs());
  }

 private:
  bool ours(const array& a) const {
    return !a.event().valid() && a.has_primitive() &&
        a.primitive().stream() == stream_;
  }
  void follow(array& in, vulkan::StreamEncoder& encoder);
  void encode(array& a, vulkan::StreamEncoder& encoder);
  void clear_up();

  Stream stream_;
  Then then_;
  Readers readers_;
  array last_;
  Event event_;
  // Point into their readers' inputs, which stay until these are evaluated.
  std::vector<array*> found_, tape_;
};

bool Walk::count() {
  found_.reserve(1024);
  found_.push_back(&last_);
  for (size_t i = 0; i < found_.size(); ++i) {
    for (auto& in : found_[i]->inputs()) {
      bool todo = unscheduled(in);
      // Evaluated arrays have a primitive if a transformation needs it again.
      if (todo ? ours(in) : !in.has_primitive()) {
        if (todo) {
          auto n = readers_.of(in);
          if (n == 0) {
            found_.push_back(&in);
          }
          readers_.set(in, n + 1);
        }
        continue;
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
      auto n = readers_.of(in) - 1;
      readers_.set(in, n);
      if (n == 0) {
        tape_.push_back(&in);
      }
    }
  }
}

std::vector<array> Walk::order() const {
  std::vector<array> all;
  for (size_t i = tape_.size(); i-- > 1;) {
    all.push_back(*tape_[i]);
  }
  return all;
}

// Follows an input of an earlier eval, which may be of another stream.
void Walk::follow(array& in, vulkan::StreamEncoder& encoder) {
  auto& e = in.event();
  if (!e.valid() || vulkan::state_of(e) == vulkan::state_of(event_)) {
    return;
  }
  if (e.is_signaled()) {
    in.detach_event();
    return;
  }
  if (e.stream() != stream_) {
    e.wait(stream_);
  }
  vulkan::follow(in, encoder);
}

void Walk::encode(array& a, vulkan::StreamEncoder& encoder) {
  // Also with Then::Wait: all arrays of a failed eval carry its error.
  a.attach_event(event_);
  for (auto& s : a.siblings()) {
    s.attach_event(event_);
  }
  for (auto& in : a.inputs()) {
    follow(in, encoder);
  }
  vulkan::evaluate(a, encoder);
  vulkan::wait_for_room(stream_);
  a.set_status(array::Status::evaluated);
  for (auto& s : a.siblings()) {
    s.set_status(array::Status::evaluated);
  }
  a.detach();
}

// After an exception: submits the encoded work and signals its waiters. The
// first exception is more informative than one of these calls.
void Walk::clear_up() {
  auto attempt = [](auto call) {
    try {
      call();
    } catch (...) {
    }
  };
  attempt([&] { event_.signal(stream_); });
  attempt([&] { gpu::finalize(stream_); });
  attempt([&] { synchronize(stream_); });
}

void Walk::run() {
  event_ = Event{stream_};
  event_.set_value(1);
  try {
    auto& encoder = vulkan::encoder(stream_);
    encoder.raw().begin_eval(vulkan::number_of(event_));
    if (then_ == Then::Wait) {
      uint32_t operations = 0;
      for (auto* a : tape_) {
        operations += vulkan::operations_of(a->primitive());
      }
      encoder.raw().expect(operations);
    }
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
  if (then_ == Then::Wait) {
    event_.wait();
  }
}

// Returns false, without changes, if MLX must walk the graph. At least one of
// the outputs must be unscheduled.
bool walk(std::vector<array>& outputs, Then then) {
  auto first = std::find_if(outputs.begin(), outputs.end(), unscheduled);
  if (detail::in_tracing() || detail::retain_graph() ||
      !first->has_primitive() ||
      first->primitive().stream().device != Device::gpu) {
    return false;
  }
  Walk walk(first->primitive().stream(), std::move(outputs), then);
  if (!walk.count()) {
    outputs = walk.take_outputs();
    return false;
  }
  walk.make_tape();
  walk.run();
  return true;
}

// A CPU stream goes on after an error, so a later eval must not read what an
// earlier one failed to write.
void throw_if_inputs_failed(const std::vector<array>& outputs) {
  if (!vulkan::had_cpu_failures()) {
    return;
  }
  std::vector<array> found = outputs;
  std::unordered_set<std::uintptr_t> seen;
  while (!found.empty()) {
    array a = std::move(found.back());
    found.pop_back();
    if (!seen.insert(a.id()).second) {
      continue;
    }
    if (unscheduled(a)) {
      found.insert(found.end(), a.inputs().begin(), a.inputs().end());
    } else if (a.event().valid()) {
      vulkan::throw_if_failed(a.event());
    }
  }
}

// Fence::wait(), which MLX's walk calls, expects downloads until an eval ends.
struct EndExpecting {
  ~EndExpecting() {
    vulkan::Memory::end_expecting();
  }
};

// MLX's eval() attaches events only if it does not wait. Without an event, the
// next use of an array of a failed eval would read it as valid.
void async_eval_and_wait(std::vector<array> outputs) {
  throw_if_inputs_failed(outputs);
  auto waited_for = outputs;
  async_eval_of_mlx(std::move(outputs));
  for (auto& a : waited_for) {
    a.wait();
  }
}

} // namespace

std::vector<array> vulkan::eval_order(
    std::vector<array> outputs,
    Stream stream) {
  Walk walk(stream, std::move(outputs), Then::GoOn);
  if (!walk.count()) {
    return {};
  }
  walk.make_tape();
  return walk.order();
}

void async_eval(std::vector<array> outputs) {
  vulkan::tell_if_on_cpu();
  EndExpecting at_end;
  if (std::any_of(outputs.begin(), outputs.end(), unscheduled) &&
      !walk(outputs, Then::GoOn)) {
    throw_if_inputs_failed(outputs);
    async_eval_of_mlx(std::move(outputs));
  }
}

void eval(std::vector<array> outputs) {
  vulkan::tell_if_on_cpu();
  EndExpecting at_end;
  if (std::none_of(outputs.begin(), outputs.end(), unscheduled) ||
      !walk(outputs, Then::Wait)) {
    if (detail::in_tracing() || detail::retain_graph()) {
      vulkan::begin_eval_without_events();
      eval_of_mlx(std::move(outputs));
    } else {
      async_eval_and_wait(std::move(outputs));
    }
  }
}

} // namespace mlx::core

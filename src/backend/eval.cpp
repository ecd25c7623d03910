#include "mlx/backend/gpu/eval.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "backend/event.h"
#include "backend/float64.h"
#include "backend/on_cpu.h"
#include "backend/stream.h"
#include "mlx/fast_primitives.h"
#include "mlx/memory.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlx/utils.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"
#include "vk/config.h"

namespace mlx::core::gpu {

namespace {
using vulkan::buffer_of;

bool awaits_cpu(const array& x, vulkan::Memory& memory) {
  auto* b = buffer_of(x);
  return b && b->mirrored() && memory.awaits_cpu(*b);
}

// Unpins the inputs while a primitive is encoded, so that they can be donated,
// and pins inputs and siblings afterwards. A single output needs no pin:
// something that the same eval encodes later reads it (the last reader is MLX's
// Synchronizer), and after an exception MLX waits for all streams.
class UnpinInputs {
 public:
  UnpinInputs(
      std::vector<array>& inputs,
      std::vector<array>& outputs,
      vulkan::Encoder& encoder)
      : inputs_(inputs), outputs_(outputs), encoder_(encoder) {
    for (auto& in : inputs) {
      if (auto* b = buffer_of(in)) {
        encoder.unpin(*b);
      }
    }
  }
  ~UnpinInputs() {
    for (auto& in : inputs_) {
      keep(in);
    }
    if (outputs_.size() > 1) {
      for (auto& out : outputs_) {
        keep(out);
      }
    }
  }

 private:
  void keep(const array& a) {
    if (auto* b = buffer_of(a)) {
      encoder_.keep(*b, a.data_shared_ptr());
    }
  }

  std::vector<array>&inputs_, &outputs_;
  vulkan::Encoder& encoder_;
};

// Inputs that a CPU stream still writes are held, which prevents their
// donation: their memory must not be reused.
std::vector<array> inputs_to_hold(
    const std::vector<array>& inputs,
    vulkan::Memory& memory) {
  std::vector<array> held;
  for (auto& in : inputs) {
    if (awaits_cpu(in, memory)) {
      held.push_back(in);
    }
  }
  return held;
}

// arr and its siblings, in a vector that keeps its memory between calls.
class Outputs {
 public:
  // A primitive may evaluate another one while `spare` is in use.
  Outputs(array& arr, std::vector<array>& spare)
      : arrays_(spare.empty() ? spare : own_) {
    if (arr.siblings().empty()) {
      arrays_.push_back(arr);
    } else {
      arrays_ = arr.outputs();
    }
  }
  ~Outputs() {
    arrays_.clear();
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  std::vector<array>& arrays() {
    return arrays_;
  }

 private:
  std::vector<array> own_;
  std::vector<array>& arrays_;
};
} // namespace

void eval(array& arr) {
  auto& stream_encoder = vulkan::encoder(arr.primitive().stream());
  auto& encoder = stream_encoder.raw();
  encoder.begin_eval(vulkan::number_of(arr.event()));
  vulkan::PlacementScope placement(vulkan::Placement::Device);
  for (auto& in : arr.inputs()) {
    if (in.event().valid() && !vulkan::is_fenced_input(in)) {
      vulkan::follow(in, stream_encoder);
    }
  }
  vulkan::clear_fenced_inputs();
  // Tracers need their inputs again, so these are held and not donated.
  std::vector<array> held;
  if (arr.is_tracer()) {
    held = arr.inputs();
  }
  vulkan::evaluate(arr, stream_encoder);
}

} // namespace mlx::core::gpu

namespace mlx::core::vulkan {

namespace {

// A primitive with the arrays that it takes and makes, for reports.
std::string description(
    const Primitive& primitive,
    const std::vector<array>& inputs,
    const array& arr) {
  std::ostringstream text;
  text << primitive.name() << " of ";
  auto list = [&](const array& a) { text << a.dtype() << ' ' << a.shape(); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    text << (i ? ", " : "");
    list(inputs[i]);
  }
  text << ", which makes ";
  list(arr);
  return text.str();
}

void commit(StreamEncoder& stream_encoder) {
  auto& encoder = stream_encoder.raw();
  Stream s = stream_encoder.stream();
  scheduler::notify_new_task(s);
  encoder.close_and_go_on([s] { scheduler::notify_task_completion(s); });
  // Completions are polled here too: a wake-up of the retiring thread can come
  // late enough to stall the throttle in eval.
  encoder.device().recorder().retirer().retire();
}

} // namespace

void follow(const array& in, StreamEncoder& encoder) {
  auto& e = in.event();
  if (e.stream() == encoder.stream()) {
    encoder.raw().go_on(); // before the check: work may fail at any time
    throw_if_failed(e);
  }
  follow_cpu_producer(in, e);
}

bool behind_seam(const Primitive& p, const array& arr) {
  return arr.ndim() <= 3 &&
      (typeid(p) == typeid(fast::RMSNorm) ||
       typeid(p) == typeid(fast::LayerNorm));
}

void evaluate(array& arr, StreamEncoder& stream_encoder) {
  gpu::Outputs outputs(arr, stream_encoder.spare_outputs);
  if (operations_of(arr.primitive()) == 0) {
    arr.primitive().eval_gpu(arr.inputs(), outputs.arrays());
    return;
  }
  evaluate(arr.primitive(), arr.inputs(), outputs.arrays(), stream_encoder);
}

void evaluate(
    Primitive& primitive,
    std::vector<array>& inputs,
    std::vector<array>& made,
    StreamEncoder& stream_encoder) {
  auto& encoder = stream_encoder.raw();
  auto& arr = made[0];
  if (behind_seam(primitive, arr) && encoder.needs_commit_at_seam()) {
    commit(stream_encoder);
    encoder.needs_commit_at_seam();
  }
  {
    gpu::UnpinInputs unpinned(inputs, made, encoder);
    std::vector<array> held;
    if (had_cpu_producers()) {
      held = gpu::inputs_to_hold(inputs, encoder.device().memory());
    }
    auto is_empty = [](const array& x) { return x.size() == 0; };
    if (std::all_of(made.begin(), made.end(), is_empty)) {
      for (auto& x : made) {
        x.set_data(allocator::malloc(0));
      }
    } else if (lacks_float64_kernel(primitive, inputs, made)) {
      run_on_cpu(primitive, inputs, made);
    } else {
      primitive.eval_gpu(inputs, made);
    }
  }
  // Views and donated inputs pin nothing new.
  auto& data = arr.data_shared_ptr();
  bool fresh =
      data && std::none_of(inputs.begin(), inputs.end(), [&](auto& in) {
        return in.data_shared_ptr() == data;
      });
  encoder.count_operation(fresh ? arr.nbytes() : 0);

  auto* open = encoder.open_batch();
  std::shared_ptr<Completion> done;
  if (config().debug_bounds && open && !open->empty()) {
    encoder.name_call(description(primitive, inputs, arr));
    done = encoder.current_completion();
  }
  if (done || encoder.needs_commit()) {
    commit(stream_encoder);
  }
  if (done) {
    // Checked here, because later batches of this eval would not get the error
    // of a batch that failed before they began.
    done->wait();
    if (auto error = done->error(); !error.empty()) {
      throw std::runtime_error(error);
    }
  }
}

void wait_for_room(Stream stream) {
  constexpr int most_active_tasks = 10;
  auto& tasks = scheduler::scheduler();
  auto too_much_memory = [&] {
    return tasks.n_active_tasks() > 0 &&
        get_active_memory() > get_memory_limit();
  };
  if (tasks.n_active_tasks() > most_active_tasks || too_much_memory()) {
    gpu::finalize(stream);
    do {
      tasks.wait_for_one();
    } while (too_much_memory());
  }
}

} // namespace mlx::core::vulkan

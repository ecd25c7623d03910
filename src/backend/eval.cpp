#include "mlx/backend/gpu/eval.h"

#include <algorithm>

#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/recorder.h"

namespace mlx::core::gpu {

namespace {
vulkan::Buffer* buffer_of(const array& a) {
  auto& data = a.data_shared_ptr();
  return data ? static_cast<vulkan::Buffer*>(data->buffer().ptr()) : nullptr;
}

bool awaits_cpu(const array& x) {
  auto* b = buffer_of(x);
  return b && b->mirrored() && vulkan::device().memory().awaits_cpu(*b);
}

// Inputs and siblings live until the GPU is done with them. While arr is
// encoded nobody keeps its inputs, so that they can be donated.
class InputsLetGo {
 public:
  InputsLetGo(array& arr, vulkan::Encoder& encoder)
      : arr_(arr), encoder_(encoder) {
    for (auto& in : arr.inputs()) {
      if (auto* b = buffer_of(in)) {
        encoder.let_go(*b);
      }
    }
  }
  ~InputsLetGo() {
    for (auto& in : arr_.inputs()) {
      keep(in);
    }
    for (auto& sibling : arr_.siblings()) {
      keep(sibling);
    }
  }

 private:
  void keep(const array& a) {
    if (auto* b = buffer_of(a)) {
      encoder_.keep(*b, a.data_shared_ptr());
    }
  }

  array& arr_;
  vulkan::Encoder& encoder_;
};
} // namespace

void eval(array& arr) {
  auto s = arr.primitive().stream();
  auto& encoder = vulkan::encoder(s).raw();
  vulkan::PlacementScope placement(vulkan::Placement::Device);

  auto outputs = arr.outputs();
  {
    InputsLetGo inputs(arr, encoder);
    // Holding an input prevents its donation: a tracer's inputs are needed
    // again, and what a CPU stream is still writing must not be reused.
    std::vector<array> held;
    if (arr.is_tracer()) {
      held = arr.inputs();
    }
    for (auto& in : arr.inputs()) {
      if (in.event().valid() && !vulkan::is_fenced_input(in)) {
        vulkan::follow_cpu_producer(in, in.event());
      }
      if (awaits_cpu(in)) {
        held.push_back(in);
      }
    }
    vulkan::clear_fenced_inputs();
    arr.primitive().eval_gpu(arr.inputs(), outputs);
  }
  // Views and donated inputs pin nothing new.
  auto& data = arr.data_shared_ptr();
  bool fresh = data &&
      std::none_of(arr.inputs().begin(), arr.inputs().end(), [&](auto& in) {
                 return in.data_shared_ptr() == data;
               });
  encoder.count_operation(fresh ? arr.nbytes() : 0);

  // Completions are polled here too: a wake-up of the retiring thread can come
  // late enough to stall the throttle in eval.
  if (encoder.needs_commit()) {
    scheduler::notify_new_task(s);
    encoder.close([s] { scheduler::notify_task_completion(s); });
    encoder.device().recorder().retire();
  }
}

} // namespace mlx::core::gpu

#include "backend/on_cpu.h"

#include <memory>
#include <sstream>
#include <unordered_set>

#include "backend/event.h"
#include "backend/fallback.h"
#include "backend/stream.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/fence.h"
#include "mlx/utils.h"

namespace mlx::core::vulkan {

namespace {

std::string described(const Primitive& p, const std::vector<array>& inputs) {
  std::ostringstream text;
  text << p.name() << " of " << inputs[0].dtype() << " " << inputs[0].shape();
  return text.str();
}

// Lets a primitive be of another stream, which MLX's CPU kernels ask it for and
// nothing sets.
class MovedTo {
 public:
  MovedTo(Primitive& primitive, Stream to)
      : at_(const_cast<Stream&>(primitive.stream())), back_(at_) {
    at_ = to;
  }
  MovedTo(const MovedTo&) = delete;
  ~MovedTo() {
    at_ = back_;
  }

 private:
  Stream& at_;
  Stream back_;
};

} // namespace

void run_on_cpu(
    Primitive& primitive,
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  count_on_cpu(primitive.name(), described(primitive, inputs));
  Stream stream = primitive.stream();
  Stream cpu = default_stream(mlx::core::Device::cpu);
  MovedTo moved(primitive, cpu);
  Fence ready(stream);
  for (auto& in : inputs) {
    auto value = ready.update(stream, in, true);
    ready.wait(cpu, in, value);
  }
  {
    PlacementScope placement(Placement::Host);
    primitive.eval_cpu(inputs, outputs);
  }
  // Memory must outlive the CPU's work, as in MLX's own cpu::eval().
  std::unordered_set<std::shared_ptr<array::Data>> used;
  for (auto& in : inputs) {
    used.insert(in.data_shared_ptr());
  }
  for (auto& out : outputs) {
    used.insert(out.data_shared_ptr());
  }
  auto& encoder = cpu::get_command_encoder(cpu);
  encoder.dispatch([used = std::move(used),
                    temporaries = std::move(encoder.temporaries())] {});
  Event done(cpu);
  done.set_value(1);
  done.signal(cpu);
  done.wait(stream);
  for (auto& out : outputs) {
    follow_cpu_producer(out, done);
  }
}

} // namespace mlx::core::vulkan

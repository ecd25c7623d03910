// Measures at start whether the device reaches the rates that estimates of run
// times assume. A chip or driver that is slower gets shorter submissions from
// the first one on.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>

#include "kernels/probe.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/encoder.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Estimated run time of a measurement. A start of a dispatch takes a few
// percent of it, and is subtracted.
constexpr double measured_seconds = 1e-3;
constexpr uint32_t turns = 64;
constexpr double most_bytes = 64 << 20;
constexpr double bus_bytes = 16 << 20;

class RateProbe {
 public:
  explicit RateProbe(Device& device) : device_(device) {}

  // Compares the device with its assumed rate.
  void measure(const Kernel& kernel, bool arithmetic) {
    auto& rates = device_.work_limit().rates;
    // A group: its floating-point operations, or the bytes that it reads.
    double work = double(turns) * ProbeRateVariant::group *
        (arithmetic ? ProbeRateVariant::flops : 4);
    double rate = arithmetic ? rates.flops : rates.bytes;
    double most = arithmetic ? 65535 : most_bytes / work;
    auto groups = static_cast<uint32_t>(
        std::clamp(std::ceil(rate * measured_seconds / work), 1.0, most));
    allocate(uint64_t(groups) * ProbeRateVariant::group, !arithmetic);
    device_.slowdown().learn(work * groups / rate, time(kernel, groups));
  }

  // Bytes a second that the kernel reads in the host's memory.
  double measure_bus(const Kernel& kernel) {
    double work = double(turns) * ProbeRateVariant::group * 4;
    auto groups = static_cast<uint32_t>(bus_bytes / work);
    uint64_t threads = uint64_t(groups) * ProbeRateVariant::group;
    allocate(threads, true, Placement::InPlace);
    double start = run(kernel, 1), whole = run(kernel, groups);
    for (int turn = 0; turn < 4; ++turn) {
      start = std::min(start, run(kernel, 1));
      whole = std::min(whole, run(kernel, groups));
    }
    // On a busy host a start may seem to take all of it. The device is not more
    // than twice as fast as all of it says.
    return work * groups / std::max(whole - start, whole / 2);
  }

 private:
  double time(const Kernel& kernel, uint32_t groups) {
    double start = run(kernel, 1); // the first also sets up
    start = std::min(run(kernel, 1), start);
    return std::max(run(kernel, groups) - start, 0.0);
  }

  void
  allocate(uint64_t threads, bool reads, Placement place = Placement::Device) {
    auto& memory = device_.memory();
    n_ = static_cast<uint32_t>(reads ? threads * turns : 0);
    x_ = nullptr;
    if (reads) {
      x_ = {memory.allocate(4 * uint64_t(n_), place), release_};
    }
    y_ = {memory.allocate(4 * threads, Placement::Device), release_};
  }

  double run(const Kernel& kernel, uint32_t groups) {
    using Clock = std::chrono::steady_clock;
    Encoder enc(device_, 0x7fffffff);
    Binding read{}, write{y_.get(), 0, 0, y_->size};
    if (x_) {
      read = {x_.get(), 0, 0, x_->size};
    }
    ProbeRateArgs args{};
    args.n = n_;
    args.turns = turns;
    auto begun = Clock::now();
    enc.dispatch(
        kernel, {&read, 1}, {&write, 1}, &args, sizeof args, {groups, 1, 1});
    auto done = enc.close();
    done->wait();
    std::chrono::duration<double> took = Clock::now() - begun;
    done->wait_retired();
    return took.count();
  }

  Device& device_;
  std::function<void(Buffer*)> release_ = [this](Buffer* b) {
    device_.memory().release(b);
  };
  std::shared_ptr<Buffer> x_, y_;
  uint32_t n_ = 0; // items of x_
};

} // namespace

void Device::measure_rates() {
  auto kernel = [&](bool arithmetic) -> const Kernel& {
    ProbeRateVariant v{.ARITHMETIC = arithmetic};
    return pipelines_->get(v.file, v.defines());
  };
  const Kernel &reads = kernel(false), &computes = kernel(true);
  pipelines_->start(computes); // at the same time
  pipelines_->finish(reads);
  pipelines_->finish(computes);
  RateProbe probe(*this);
  probe.measure(reads, false);
  probe.measure(computes, true);
}

double Device::measure_bus() {
  bool can = !memory_->types().in_place.empty();
  std::call_once(bus_once_, [&] {
    if (can && !config().test.assumed_rates) {
      ProbeRateVariant v{.ARITHMETIC = false};
      auto& kernel = pipelines_->get(v.file, v.defines());
      pipelines_->finish(kernel);
      bus_rate_ = RateProbe(*this).measure_bus(kernel);
    }
  });
  return bus_rate();
}

} // namespace mlx::core::vulkan

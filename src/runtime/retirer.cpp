#include "runtime/retirer.h"

#include <algorithm>
#include <cstdio>

#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {
constexpr auto watch_interval = std::chrono::milliseconds(500);
// The batch after one that took this long has progress marks.
constexpr auto long_batch = std::chrono::seconds(1);
// Slowdown learns from batches of this many seconds, expected or measured.
constexpr double least_learned = 0.02;
// wait_for_release() leaves the device work of this many expected seconds,
// which are up to ten times too many, while its caller wakes, encodes and
// submits.
constexpr double least_behind = 10e-3;
} // namespace

std::string kernels_of(const Batch& batch) {
  std::string names;
  for (const auto& record : batch.records) {
    if (record.kernel && names.size() < 200) {
      names += (names.empty() ? "" : ", ") + record.kernel->name;
    }
  }
  return names;
}

Retirer::Retirer(Device& device, CommandWriter& writer)
    : device_(device), writer_(writer) {
  set_watch({std::chrono::seconds(config().timeout_s), config().timeout_error});
  device.timeline().set_describe(
      [this](uint64_t ticket) { return kernels_of(ticket); });
  thread_ = std::thread([this] { loop(); });
}

Retirer::~Retirer() {
  stop();
  device_.timeline().set_describe(nullptr);
  for (auto& left : abandoned_) {
    if (left.commands) {
      writer_.give_back(std::move(left.commands));
    }
  }
}

void Retirer::add(
    uint64_t ticket,
    std::unique_ptr<Batch> batch,
    std::unique_ptr<Commands> commands) {
  {
    std::lock_guard lock(mutex_);
    in_flight_.push_back(
        {ticket, std::move(batch), std::move(commands), Clock::now()});
    newest_ = ticket;
  }
  added_.notify_one();
}

void Retirer::fail(std::unique_ptr<Batch> batch, const std::string& error) {
  if (config().debug_submit) {
    std::fprintf(stderr, "[mlx-vulkan] batch failed: %s\n", error.c_str());
  }
  batch->completion->set_failed(error);
  // On a lost device a batch fails before what it waits for: a CPU stream may
  // still write to what it pins.
  bool waits =
      std::any_of(batch->waits.begin(), batch->waits.end(), [](auto& point) {
        return !point.submitted();
      });
  if (!waits) {
    std::lock_guard order(order_);
    hand_over(batch->pins);
    batch->pins.collect();
  }
  finish({Completion::failed_ticket, std::move(batch), nullptr, {}}, waits);
}

double Retirer::expected_seconds() {
  std::lock_guard lock(mutex_);
  double seconds = 0;
  for (auto& each : in_flight_) {
    seconds += each.batch->seconds();
  }
  return seconds;
}

void Retirer::hand_over(Pins& pins) {
  std::lock_guard lock(mutex_);
  if (!in_flight_.empty()) {
    pins.hand_over(in_flight_.back().batch->pins);
  }
}

void Retirer::finish(InFlight done, bool in_use) {
  auto completion = done.batch->completion;
  auto callback = std::move(done.batch->on_retired);
  completion->run_first(); // while the batch keeps the memory
  if (auto& gate = done.batch->gate) {
    if (auto e = completion->error(); !e.empty()) {
      gate->fail(e);
    } else {
      for (const auto& hold : done.batch->holds) {
        gate->done(*hold);
      }
    }
  }
  auto& timeline = device_.timeline();
  // The device may still be running the batch.
  in_use |= timeline.runs_unwatched() && done.commands;
  if (in_use) { // nothing that it uses may be freed
    std::lock_guard lock(mutex_);
    abandoned_.push_back(std::move(done));
  } else {
    if (done.commands) {
      if (!device_.timeline().lost()) {
        writer_.report_times(*done.batch, *done.commands);
      }
      writer_.give_back(std::move(done.commands));
    }
    device_.batches().give_back(std::move(done.batch)); // frees arrays
  }
  if (callback) {
    callback();
  }
  completion->set_retired();
}

void Retirer::retire() {
  uint64_t completed = device_.timeline().poll();
  while (true) {
    InFlight done;
    {
      std::lock_guard order(order_);
      std::unique_lock lock(mutex_);
      if (in_flight_.empty() ||
          (in_flight_.front().ticket > completed &&
           !device_.timeline().lost())) {
        return;
      }
      done = std::move(in_flight_.front());
      in_flight_.pop_front();
      // Learned here, because the watchdog's thread may be busy for long.
      if (done.commands) {
        auto took = ran_for(done);
        slow_ = took >= long_batch;
        learn(done, took);
      }
      last_done_ = Clock::now();
      finishing_.push_back(done.ticket);
      lock.unlock();
      done.batch->pins.collect();
    }
    if (done.batch->new_kernels) {
      shut_down_at_exit();
    }
    uint64_t ticket = done.ticket;
    finish(std::move(done));
    {
      std::lock_guard lock(mutex_);
      auto one = std::find(finishing_.begin(), finishing_.end(), ticket);
      finishing_.erase(one); // a batch without records may have it too
    }
    finished_.notify_all();
  }
}

void Retirer::wait_retired(const Completion& last) {
  last.wait();
  retire();
  last.wait_retired();
  std::unique_lock lock(mutex_);
  // A batch that failed is retired while earlier ones may still run.
  uint64_t until = std::min(last.ticket(), newest_);
  finished_.wait(lock, [&] {
    return (in_flight_.empty() || in_flight_.front().ticket > until) &&
        std::none_of(
               finishing_.begin(), finishing_.end(), [&](uint64_t ticket) {
                 return ticket <= until;
               });
  });
}

bool Retirer::wait_for_release(
    const std::function<bool(const Buffer&)>& wanted) {
  auto frees = [&](const PinState& pin) {
    return wanted(static_cast<const Buffer&>(pin));
  };
  std::shared_ptr<Completion> batch;
  {
    std::lock_guard order(order_);
    double behind = expected_seconds();
    std::lock_guard lock(mutex_);
    for (auto& each : in_flight_) {
      behind -= each.batch->seconds();
      if (behind < least_behind) {
        break;
      }
      if (each.batch->pins.frees(frees)) {
        batch = each.batch->completion;
        break;
      }
    }
  }
  if (batch) {
    wait_retired(*batch);
  }
  return batch != nullptr;
}

void Retirer::finish_submitted() {
  std::shared_ptr<Completion> last;
  {
    std::lock_guard lock(mutex_);
    if (in_flight_.empty()) {
      return;
    }
    last = in_flight_.back().batch->completion;
  }
  wait_retired(*last);
}

// The oldest batch's run time: batches run one after the other. Tickets do not
// tell, as a batch without records shares an earlier one's. Under the lock.
std::chrono::nanoseconds Retirer::ran_for(const InFlight& oldest) const {
  return Clock::now() - std::max(oldest.submitted, last_done_);
}

void Retirer::loop() {
  while (true) {
    uint64_t ticket = 0;
    Clock::time_point begun;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [this] { return !in_flight_.empty() || stopping_; });
      if (in_flight_.empty()) {
        return;
      }
      ticket = in_flight_.front().ticket;
      begun = Clock::now() - ran_for(in_flight_.front());
    }
    device_.timeline().wait(ticket, begun, watch_interval, true);
    retire();
    if (Clock::now() - begun >= long_batch) {
      look_for_loss();
    }
    look_for_hang(ticket);
  }
}

// NVIDIA's driver tells of a device that it has reset to those who submit, and
// lets those who only read a semaphore wait.
void Retirer::look_for_loss() {
  VkResult r = device_.submit_to_queue({});
  if (r == VK_ERROR_DEVICE_LOST) {
    auto& timeline = device_.timeline();
    timeline.set_lost(
        std::string("vkQueueSubmit: ") + result_name(r) +
        kernels_of(timeline.seen() + 1));
    retire();
  }
}

void Retirer::set_watch(WatchSettings settings) {
  std::lock_guard lock(mutex_);
  watch_settings_ = settings;
}

bool Retirer::wants_marks() {
  std::lock_guard lock(mutex_);
  return watch_settings_.limit.count() != 0 &&
      (device_.caps().software() || config().debug_watch || slow_);
}

void Retirer::look_for_hang(uint64_t ticket) {
  std::string report;
  bool fails;
  {
    std::lock_guard lock(mutex_);
    if (in_flight_.empty() || in_flight_.front().ticket != ticket ||
        !in_flight_.front().commands) {
      return;
    }
    auto& oldest = in_flight_.front();
    slow_ |= ran_for(oldest) >= long_batch;
    // The batch's ticket is the last one of its submissions.
    uint64_t seen = device_.timeline().seen();
    uint64_t first = ticket - oldest.commands->submissions;
    uint64_t over = seen > first ? std::min(seen, ticket) - first : 0;
    uint32_t done = writer_.done(*oldest.commands, over);
    // A finished submission counts as progress, even within a dispatch.
    auto progress = done + static_cast<uint32_t>(over);
    if (!watch_.hangs(ticket, progress, Clock::now(), watch_settings_.limit)) {
      return;
    }
    fails = watch_settings_.fails;
    report = describe(oldest, done);
  }
  std::fprintf(stderr, "%s\n", report.c_str());
  if (fails) {
    device_.timeline().give_up(report);
    retire();
  }
}

// Ignores short batches, whose time is mostly that of starting dispatches, and
// batches that waited for other processes.
void Retirer::learn(const InFlight& done, std::chrono::duration<double> took) {
  double expected = done.batch->seconds();
  if (config().debug_submit) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] ticket %llu: %u submissions took %.3g ms, %.3g ms were "
        "expected\n",
        static_cast<unsigned long long>(done.ticket),
        done.commands->submissions,
        took.count() * 1e3,
        expected * 1e3);
  }
  if (std::max(expected, took.count()) >= least_learned && expected > 0 &&
      done.batch->holds.empty()) {
    device_.slowdown().learn(expected, took.count());
  }
}

// For a ticket on the queue: its batch's stream and kernels, shortened.
std::string Retirer::kernels_of(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  for (auto& batch : in_flight_) {
    if (batch.commands && batch.ticket >= ticket) {
      return " from a batch of stream " +
          std::to_string(batch.batch->stream_id) + " on (" +
          vulkan::kernels_of(*batch.batch) + ")";
    }
  }
  return {};
}

std::string Retirer::describe(const InFlight& oldest, uint32_t done) const {
  auto& order = oldest.commands->order;
  auto& marks = oldest.commands->marks;
  auto next = std::upper_bound(marks.begin(), marks.end(), done);
  size_t end = next == marks.end() ? order.size() : *next;
  std::vector<WatchedRecord> at;
  for (size_t i = done; i < end; ++i) {
    auto& r = oldest.batch->records[order[i]];
    at.push_back({r.kernel ? r.kernel->name : "a copy", r.grid});
  }
  return describe_hang(
      device_.caps().name,
      oldest.batch->stream_id,
      watch_settings_.limit,
      done,
      static_cast<uint32_t>(order.size()),
      at);
}

void Retirer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

} // namespace mlx::core::vulkan

// The fake device's thread: runs submissions, checks what they touch.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

#include "null/fake_state.h"

namespace fake {

namespace {

struct MixArguments {
  uint64_t x, y, z;
  uint32_t n, salt;
};

uint16_t half_of(float f, bool good) {
  // The values of the probe are exact in double.
  double a = f < 0 ? -double(f) : double(f);
  uint16_t sign = f < 0 ? 0x8000 : 0;
  if (a >= 65520) {
    return sign | 0x7c00;
  }
  int exponent = -14;
  while (exponent < 15 && a >= std::ldexp(2.0, exponent)) {
    ++exponent;
  }
  double units = a / std::ldexp(1.0, exponent - 10);
  double floor = double(uint64_t(units)), rest = units - floor;
  uint64_t n = uint64_t(floor);
  if (good && (rest > 0.5 || (rest == 0.5 && (n & 1)))) {
    ++n;
  }
  // A subnormal has no hidden bit; a carry runs into the exponent.
  return sign | uint16_t(n + (uint64_t(exponent + 14) << 10));
}

MixArguments mix_arguments(const Command& c) {
  MixArguments a;
  const void* from = c.push.data();
  if (c.program == program_mix_in_memory) {
    uint64_t address;
    std::memcpy(&address, c.push.data(), 8);
    from = reinterpret_cast<const void*>(address);
  }
  std::memcpy(&a, from, sizeof a);
  return a;
}

struct ProbeArguments {
  uint64_t x, y;
  uint32_t n;
};
ProbeArguments probe_arguments(const Command& c) {
  ProbeArguments a;
  std::memcpy(&a, c.push.data(), sizeof a);
  return a;
}

std::vector<Range> ranges_of(const Command& c) {
  std::vector<Range> r;
  auto add = [&](uint64_t at, uint64_t size, bool write) {
    if (at && size) {
      r.push_back({at, at + size, write});
    }
  };
  if (c.kind == Command::Copy) {
    add(c.from, c.size, false);
    add(c.to, c.size, true);
  } else if (c.program == program_rate) {
    auto a = probe_arguments(c);
    add(a.x, 4 * uint64_t(a.n), false);
  } else if (c.kind == Command::Dispatch) {
    if (c.program == program_half || c.program == program_lanes) {
      auto a = probe_arguments(c);
      add(a.x, 4 * uint64_t(a.n), false);
      add(a.y, (c.program == program_half ? 2 : 4) * uint64_t(a.n), true);
    } else {
      auto a = mix_arguments(c);
      add(a.x, 4 * uint64_t(a.n), false);
      add(a.y, 4 * uint64_t(a.n), false);
      add(a.z, 4 * uint64_t(a.n), true);
      if (c.program == program_mix_in_memory) {
        uint64_t address;
        std::memcpy(&address, c.push.data(), 8);
        add(address, sizeof a, false);
      }
      if (c.program == program_mix_endless) {
        add(c.loops.address, 8, true);
      }
    }
  }
  return r;
}

bool live(const Range& r) { // under the mutex
  auto it = state().buffers.upper_bound(r.begin);
  return it != state().buffers.begin() && (--it)->second >= r.end;
}

// False if it would touch what it must not.
bool check(const Command& c) { // under the mutex
  auto& s = state();
  auto mine = ranges_of(c);
  for (auto& r : mine) {
    r.copy = c.kind == Command::Copy;
    if (!live(r)) {
      error(
          std::string("lifetime: ") + (r.write ? "write to" : "read of") +
          " memory without a live buffer");
      return false;
    }
    for (auto& o : s.unordered) {
      bool ordered = !r.copy && !o.for_kernels;
      if (!ordered && r.begin < o.end && o.begin < r.end &&
          (r.write || o.write)) {
        error(
            std::string("hazard: ") + (r.write ? "write" : "read") +
            " after unordered " + (o.write ? "write" : "read"));
      }
    }
  }
  for (auto& r : mine) {
    s.unordered.push_back(r);
    s.unflushed |= r.write;
  }
  return true;
}

void run_groups(const Command& c) {
  auto a = mix_arguments(c);
  auto* x = reinterpret_cast<const uint32_t*>(a.x);
  auto* z = reinterpret_cast<uint32_t*>(a.z);
  auto [X, Y, Z] = c.groups;
  for (uint64_t k = 0; k < uint64_t(X) * Y * Z; ++k) {
    uint32_t gx = c.base[0] + uint32_t(k % X);
    uint32_t gy = c.base[1] + uint32_t(k / X % Y);
    uint32_t gz = c.base[2] + uint32_t(k / X / Y);
    uint64_t first = uint64_t(gx + X * (gy + Y * gz)) * group_items;
    for (uint64_t i = first; i < first + group_items && i < a.n; ++i) {
      z[i] += (x ? x[i] : 0) * 31 + a.salt;
    }
  }
}

void run(const Command& c, bool good_half) {
  if (c.program == program_groups || c.program == program_rate) {
    double groups = double(c.groups[0]) * c.groups[1] * c.groups[2];
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(
        groups * state().settings.group_us));
  }
  if (c.program == program_rate) {
    return;
  }
  if (c.program == program_groups) {
    run_groups(c);
    return;
  }
  if (c.kind == Command::Copy) {
    std::memcpy(
        reinterpret_cast<void*>(c.to),
        reinterpret_cast<const void*>(c.from),
        c.size);
    return;
  }
  if (c.program == program_lanes) {
    auto a = probe_arguments(c);
    auto* x = reinterpret_cast<const uint32_t*>(a.x);
    auto sum = std::accumulate(x, x + a.n, 0u);
    std::fill_n(
        reinterpret_cast<uint32_t*>(a.y),
        a.n,
        state().settings.neighbours ? sum : 0);
    return;
  }
  if (c.program == program_half) {
    auto a = probe_arguments(c);
    auto* x = reinterpret_cast<const float*>(a.x);
    auto* y = reinterpret_cast<uint16_t*>(a.y);
    for (uint32_t i = 0; i < a.n; ++i) {
      y[i] = half_of(x[i], good_half);
    }
    return;
  }
  if (c.program == program_mix_endless && c.loops.address) {
    *reinterpret_cast<uint64_t*>(c.loops.address) =
        uint64_t(loop_bound) << 32 | c.loops.kernel << 12 | loop_line;
  }
  auto a = mix_arguments(c);
  if (auto& before = state().settings.before_mix) {
    before(a.salt);
  }
  auto* x = reinterpret_cast<const uint32_t*>(a.x);
  auto* y = reinterpret_cast<const uint32_t*>(a.y);
  auto* z = reinterpret_cast<uint32_t*>(a.z);
  for (uint32_t i = 0; i < a.n; ++i) {
    z[i] = (x ? x[i] : 0) * 31 + (y ? y[i] : 0) * 17 + a.salt;
  }
}

void execute(const std::vector<Command>& commands) {
  auto& s = state();
  for (size_t i = 0; i < commands.size();) {
    if (commands[i].kind == Command::SetEvent) {
      commands[i].event->set = true;
      ++i;
      continue;
    }
    if (commands[i].kind == Command::Timestamp) {
      static std::atomic<uint64_t> clock{1};
      std::atomic_ref(*commands[i].query).store(clock++);
      ++i;
      continue;
    }
    if (commands[i].kind == Command::Barrier) {
      std::lock_guard lock(s.mutex);
      if (commands[i].kernels_only) {
        for (auto& r : s.unordered) {
          r.for_kernels &= r.copy;
        }
      } else if (commands[i].to_device) {
        s.unordered.clear();
      }
      s.unflushed &= !commands[i].to_host;
      ++i;
      continue;
    }
    std::vector<const Command*> span;
    for (; i < commands.size() && commands[i].kind != Command::Barrier; ++i) {
      // What is after all before it: this span too has to be over.
      if (commands[i].kind == Command::SetEvent || commands[i].after_all) {
        break;
      }
      if (commands[i].kind != Command::Timestamp) {
        span.push_back(&commands[i]);
      }
    }
    std::vector<bool> good(span.size());
    bool good_half;
    {
      std::lock_guard lock(s.mutex);
      std::shuffle(span.begin(), span.end(), s.random);
      for (size_t k = 0; k < span.size(); ++k) {
        good[k] = check(*span[k]);
      }
      good_half = s.settings.good_float16;
    }
    for (size_t k = 0; k < span.size(); ++k) {
      if (good[k]) {
        run(*span[k], good_half);
      }
    }
  }
}

void pause() {
  auto& s = state();
  int us = 0;
  {
    std::lock_guard lock(s.mutex);
    if (s.settings.max_delay_us > 0) {
      us = int(s.random() % s.settings.max_delay_us);
    }
  }
  if (us > s.settings.max_delay_us / 3) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
}

} // namespace

void queue_loop() {
  auto& s = state();
  std::unique_lock lock(s.mutex);
  while (true) {
    s.cv.wait(lock, [&] { return s.stop || (!s.queue.empty() && !s.held); });
    if (s.queue.empty() || s.held) {
      return;
    }
    auto submission = std::move(s.queue.front());
    s.queue.pop_front();
    s.busy = true;
    auto work = std::chrono::microseconds(s.settings.work_us);
    lock.unlock();
    std::this_thread::sleep_for(work);
    pause();
    for (auto* b : submission.buffers) {
      if (!submission.dropped) {
        execute(b->commands);
      }
      --b->pending;
    }
    pause();
    lock.lock();
    if (s.unflushed) {
      error("visibility: writes that no barrier shows to the host");
      s.unflushed = false;
    }
    if (submission.signal) {
      submission.signal->value = submission.value;
    }
    s.busy = false;
    s.cv.notify_all();
  }
}

} // namespace fake

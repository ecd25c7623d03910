// Holds records until something outside of this process lets them start. The
// queue knows other processes by this interface alone; ranks/host_group.h
// implements it. Free of MLX and Vulkan.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mlx::core::vulkan {

// A record that a gate holds. Gates derive their own data from it.
struct Hold {
  // If the device should reach the record within this many seconds, it is
  // announced, and those before it are held for a moment. 0: never.
  float announced_before = 0;
  // Other processes wait for its end, so a submission ends with it.
  bool ends_submission = false;
};
using Holds = std::span<const std::shared_ptr<const Hold>>;

// Threads: the recorder calls may_start(), announce() and start(); any thread
// may call the others.
class Gate {
 public:
  virtual ~Gate() = default;

  // How many of `holds`, from the first on, may start now.
  virtual size_t may_start(Holds holds) = 0;
  // Nothing in this process delays these records any longer. They come in the
  // order of their batches, not of their start.
  virtual void announce(std::vector<const Hold*> holds) = 0;
  virtual void start(const Hold& hold) = 0;
  virtual void done(const Hold& hold) = 0; // when it is retired

  // The error that stops this gate, or empty. Once it has failed it holds
  // nothing, and all later batches fail.
  virtual std::string error() = 0;
  virtual void fail(const std::string& why) = 0;
  // Fails if the process that would let `hold` start has ended.
  virtual void look_for_ended(const Hold& hold) = 0;
  // The message that names what `hold` waits for.
  virtual std::string waits_for(const Hold& hold) = 0;
};

} // namespace mlx::core::vulkan

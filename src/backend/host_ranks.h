// MLX's distributed group of ranks that all run on this host: on GPU streams
// they exchange data through shared memory (ranks/host_group.h), on CPU streams
// through MLX's ring.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mlx/distributed/distributed_impl.h"
#include "ranks/carrier.h"
#include "ranks/host_group.h"

namespace mlx::core::vulkan {

class HostRanks : public distributed::detail::GroupImpl {
 public:
  using Ring = std::shared_ptr<distributed::detail::GroupImpl>;
  // `region`: the shared bytes. With a carrier, devices wait for packs of at
  // most Carrier::room bytes (Act::Meet).
  HostRanks(
      Ring ring,
      std::shared_ptr<HostGroup> group,
      array region,
      std::unique_ptr<Carrier> carrier)
      : ring_(std::move(ring)),
        group_(std::move(group)),
        region_(std::move(region)),
        carrier_(std::move(carrier)) {}

  const std::shared_ptr<HostGroup>& group() const {
    return group_;
  }
  const array& region() const {
    return region_;
  }
  Carrier* carrier() const { // null: no device waits for another
    return carrier_.get();
  }
  // Makes devices exchange data through the host from now on.
  void only_tell() {
    carrier_.reset();
  }

  // Uses a GPU stream by default.
  Stream communication_stream(StreamOrDevice s) override {
    return to_stream(s);
  }
  int rank() override {
    return ring_->rank();
  }
  int size() override {
    return ring_->size();
  }
  std::shared_ptr<GroupImpl> split(int color, int key) override {
    return ring_->split(color, key);
  }

  // For CPU streams.
  void all_sum(const array& in, array& out, Stream s) override {
    ring_->all_sum(in, out, s);
  }
  void all_gather(const array& in, array& out, Stream s) override {
    ring_->all_gather(in, out, s);
  }
  void send(const array& in, int dst, Stream s) override {
    ring_->send(in, dst, s);
  }
  void recv(array& out, int src, Stream s) override {
    ring_->recv(out, src, s);
  }
  void all_max(const array& in, array& out, Stream s) override {
    ring_->all_max(in, out, s);
  }
  void all_min(const array& in, array& out, Stream s) override {
    ring_->all_min(in, out, s);
  }
  void sum_scatter(const array& in, array& out, Stream s) override {
    ring_->sum_scatter(in, out, s);
  }

 private:
  Ring ring_;
  std::shared_ptr<HostGroup> group_;
  array region_;
  std::unique_ptr<Carrier> carrier_;
};

// The group for the ranks of `ring`: HostRanks where all of them are on this
// host and set MLX_VK_HOST_GROUP, else `ring` itself, which may be null.
HostRanks::Ring group_of(HostRanks::Ring ring);

// Tests whether kernels see data of other ranks in time; `together` is a
// barrier of all ranks.
bool sees_in_time(HostRanks& ranks, const std::function<void()>& together);

// A sentence on how the ranks of this process's group exchange data; empty
// without a group.
std::string distributed_state();

} // namespace mlx::core::vulkan

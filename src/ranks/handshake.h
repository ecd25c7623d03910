// The ranks of a job exchange messages about themselves and all reach the same
// decision: whether and how they exchange data through shared memory. The
// caller transports the messages (backend/host_ranks.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "ranks/host_group.h"

namespace mlx::core::vulkan {

// A rank's message about itself, as bytes.
struct Hello {
  char host[64]; // names this start of this machine
  char device[64], uuid[40];
  char memory[64]; // rank 0's, as a path
  char name[64]; // and the name of the file behind it
  char why[256]; // why this rank cannot, or empty
  int32_t process;
  uint8_t software, wants, alone;
};
static_assert(std::is_trivially_copyable_v<Hello>);

// The result of mapping and importing the memory, on one rank.
struct Outcome {
  char why[256]; // why it cannot, or empty
};

// Copies a text, truncated to `size`.
void assign(char* to, size_t size, const std::string& text);
template <size_t n>
void assign(char (&to)[n], const std::string& text) {
  assign(to, n, text);
}

// This rank's message. Starts the device if the rank wants a group and
// `has_device`.
Hello hello_of(int ranks, bool (*has_device)());

// Reason why the ranks exchange no data through shared memory, or empty.
std::string against(const std::vector<Hello>& all);
std::string against(const std::vector<Outcome>& all);
// Whether every rank has a chip of its own, which may wait for the others'.
bool can_meet(const std::vector<Hello>& all);

// The sizes of slots for ranks with such devices.
HostGroupSizes sizes_of(int rank, int ranks, bool software);

} // namespace mlx::core::vulkan

// The rules of layers of experts, a pass before that of rewrite.h over the same
// lists: a router's softmax, order, choice and weights; gate, up and what is
// made of them for the experts chosen; and their outputs weighted, added up and
// added to the residual. Pure but for the kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

void rewrite_experts(
    std::vector<Record>& records,
    std::vector<Access>& accesses,
    std::vector<std::byte>& arguments,
    FusedKernels& kernels,
    SelectLog* log);

} // namespace mlx::core::vulkan

// Local rank of this process in a distributed job, from the variables of
// launchers: mlx.launch (MLX_RANK, MLX_HOSTFILE, MLX_IBV_DEVICES; mpirun with
// its mpi backend), Open MPI, MPICH and Intel MPI, MVAPICH2, Slurm, torchrun.
// Local ranks select different GPUs. Pure; free of Vulkan and MLX.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace mlx::core::vulkan {

struct Launch {
  // Starts at 0; empty if no launcher started this process.
  std::optional<uint32_t> local_rank;
  // Sentence that explains inconsistent variables, or empty.
  std::string why;
};

// `get` looks up an environment variable (null: not set), `read` reads a file
// (empty: unreadable). MLX_RANK takes precedence, because mlx.launch may run
// under the other launchers.
Launch find_launch(
    const std::function<const char*(const char*)>& get,
    const std::function<std::optional<std::string>(const std::string&)>& read);

// Whether a hostfile (MLX_HOSTFILE: "ip:port"s per rank, in JSON) lists all
// ranks at addresses of rank 0.
bool on_one_host(const std::string& hostfile);

// The launch of this process, determined at the first call.
const Launch& launch();

} // namespace mlx::core::vulkan

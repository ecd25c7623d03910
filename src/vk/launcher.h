// Which of a job's processes on this machine this one is, by the variables that
// launchers set: mlx.launch (MLX_RANK, MLX_HOSTFILE, MLX_IBV_DEVICES; mpirun
// with its mpi backend), Open MPI, MPICH and Intel MPI, MVAPICH2, Slurm,
// torchrun. So that two processes take two GPUs. Pure. Free of Vulkan and MLX.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace mlx::core::vulkan {

struct Launch {
  // From 0; empty: no launcher started this process.
  std::optional<uint32_t> local_rank;
  // Why a launcher's variables make no sense, as a sentence; else empty.
  std::string why;
};

// `get` looks an environment variable up (null: not set), `read` a file (empty:
// cannot be read). MLX_RANK counts before the others, since mlx.launch may run
// under them.
Launch find_launch(
    const std::function<const char*(const char*)>& get,
    const std::function<std::optional<std::string>(const std::string&)>& read);

// Whether a hostfile (MLX_HOSTFILE: each rank's "ip:port"s, in JSON) has all
// ranks at addresses of rank 0's.
bool on_one_host(const std::string& hostfile);

// That of this process, found at the first call.
const Launch& launch();

} // namespace mlx::core::vulkan

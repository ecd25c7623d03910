#include "vk/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace mlx::core::vulkan {

namespace {

// Variables with the rank among the processes of one machine.
constexpr const char* local_names[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK", // Open MPI
    "MPI_LOCALRANKID", // MPICH, Intel MPI
    "MV2_COMM_WORLD_LOCAL_RANK", // MVAPICH2
    "SLURM_LOCALID", // srun
    "LOCAL_RANK", // torchrun
};

Launch wrong(const std::string& why) {
  return {
      {},
      why +
          ", so that no device can be chosen by it; name one with "
          "MLX_VK_DEVICE"};
}

Launch number(const char* name, const std::string& text) {
  uint32_t n = 0;
  auto* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, n);
  if (error != std::errc{} || rest != end) {
    return wrong(std::string(name) + "=" + text + " is not a rank (0, 1, ...)");
  }
  return {n, ""};
}

// The listening addresses of each rank, "ip:port", without the ports.
std::optional<std::vector<std::set<std::string>>> hosts_of(
    const std::string& text) {
  auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) {
    return {};
  }
  std::vector<std::set<std::string>> hosts;
  for (auto& rank : list) {
    auto& addresses = hosts.emplace_back();
    if (!rank.is_array()) {
      return {};
    }
    for (auto& address : rank) {
      if (!address.is_string()) {
        return {};
      }
      auto s = address.get<std::string>();
      addresses.insert(s.substr(0, s.rfind(':')));
    }
  }
  return hosts;
}

bool same_host(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(
      a.begin(), a.end(), [&](auto& address) { return b.contains(address); });
}

Launch by_hostfile(
    uint32_t rank,
    const std::string& file,
    const std::optional<std::string>& text) {
  auto name = "MLX_HOSTFILE=" + file;
  if (!text) {
    return wrong(name + " cannot be read");
  }
  if (text->find_first_not_of(" \n") == text->npos) {
    return {rank, ""}; // mlx.launch with one rank
  }
  auto hosts = hosts_of(*text);
  if (!hosts) {
    return wrong(name + " is not a list of each rank's \"ip:port\" in JSON");
  }
  if (rank >= hosts->size()) {
    return wrong(
        "MLX_RANK=" + std::to_string(rank) + " is not one of the " +
        std::to_string(hosts->size()) + " in " + name);
  }
  auto mine = hosts->begin() + rank;
  auto before = std::count_if(hosts->begin(), mine, [&](auto& other) {
    return same_host(other, *mine);
  });
  return {static_cast<uint32_t>(before), ""};
}

} // namespace

Launch find_launch(
    const std::function<const char*(const char*)>& get,
    const std::function<std::optional<std::string>(const std::string&)>& read) {
  auto text = [&](const char* name) -> std::string {
    const char* v = get(name);
    return v ? v : "";
  };
  if (auto rank = text("MLX_RANK"); !rank.empty()) {
    auto global = number("MLX_RANK", rank);
    if (!global.local_rank) {
      return global;
    }
    if (auto file = text("MLX_HOSTFILE"); !file.empty()) {
      return by_hostfile(*global.local_rank, file, read(file));
    }
    if (!text("MLX_IBV_DEVICES").empty()) {
      return {0, ""}; // jaccl: a rank is a machine with RDMA devices
    }
    return global; // nccl, or set by hand: one machine
  }
  for (auto* name : local_names) {
    if (auto rank = text(name); !rank.empty()) {
      return number(name, rank);
    }
  }
  return {};
}

bool on_one_host(const std::string& hostfile) {
  auto hosts = hosts_of(hostfile);
  return hosts && std::all_of(hosts->begin(), hosts->end(), [&](auto& rank) {
           return same_host(rank, hosts->front());
         });
}

const Launch& launch() {
  static const Launch found = find_launch(
      [](const char* name) { return std::getenv(name); },
      [](const std::string& file) -> std::optional<std::string> {
        std::ifstream in(file, std::ios::binary);
        if (!in) {
          return {};
        }
        return std::string(std::istreambuf_iterator<char>(in), {});
      });
  return found;
}

} // namespace mlx::core::vulkan

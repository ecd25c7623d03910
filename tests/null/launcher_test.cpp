// The local rank, by environments as launchers make them, and what it chooses.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "null/devices.h"
#include "null/text.h"
#include "vk/launcher.h"

using namespace mlx::core::vulkan;

namespace {

using Environment = std::map<std::string, std::string>;

Launch found(const Environment& environment, const Environment& files = {}) {
  auto look = [](const Environment& in, const std::string& name) {
    auto it = in.find(name);
    return it == in.end() ? nullptr : it->second.c_str();
  };
  return find_launch(
      [&](const char* name) { return look(environment, name); },
      [&](const std::string& name) -> std::optional<std::string> {
        auto* text = look(files, name);
        return text ? std::optional<std::string>(text) : std::nullopt;
      });
}

Launch in_ring(const char* rank, const char* hostfile) {
  return found(
      {{"MLX_RANK", rank}, {"MLX_HOSTFILE", "/tmp/h"}}, {{"/tmp/h", hostfile}});
}

constexpr auto discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr auto integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr auto software = VK_PHYSICAL_DEVICE_TYPE_CPU;

int choice(
    const std::vector<Caps>& devices,
    const char* wanted,
    const Launch& launch) {
  std::string why;
  int i = choose_device(devices, wanted, why, launch);
  CHECK(why.empty() == (i >= 0));
  return i;
}

} // namespace

TEST_CASE("launcher: none") {
  auto none =
      found({{"PATH", "/bin"}, {"MLX_RANK", ""}, {"MLX_HOSTFILE", "x"}});
  CHECK_FALSE(none.local_rank);
  CHECK(none.why.empty());
}

TEST_CASE("launcher: mlx.launch's ring counts the ranks of this host") {
  const char* one_host = R"([["127.0.0.1:32323"], ["127.0.0.1:32324"]])";
  CHECK(in_ring("0", one_host).local_rank == 0);
  CHECK(in_ring("1", one_host).local_rank == 1);
  const char* hosts = R"([["10.0.0.1:5", "10.0.1.1:6"], ["10.0.0.2:7"],
                          ["10.0.1.1:8"], ["10.0.0.2:9"], ["10.0.0.1:10"]])";
  for (auto [rank, local] : std::map<const char*, uint32_t>{
           {"0", 0}, {"1", 0}, {"2", 1}, {"3", 1}}) {
    CHECK(in_ring(rank, hosts).local_rank == local);
  }
  // 10.0.0.1 and 10.0.1.1 are addresses of rank 0's host, but rank 4 cannot
  // know that rank 2 is there too.
  CHECK(in_ring("4", hosts).local_rank == 1);
  CHECK(in_ring("1", R"([["[fe80::1]:1"], ["[fe80::1]:2"]])").local_rank == 1);
  // A single rank has an empty file.
  CHECK(in_ring("0", "\n").local_rank == 0);
}

TEST_CASE("launcher: mlx.launch's other backends") {
  // jaccl: a rank is a machine.
  Environment jaccl = {{"MLX_RANK", "3"}, {"MLX_IBV_DEVICES", "/tmp/d"}};
  CHECK(found(jaccl).local_rank == 0);
  CHECK(found({{"MLX_RANK", "3"}, {"MLX_WORLD_SIZE", "4"}}).local_rank == 3);
}

TEST_CASE("launcher: those of MPI, Slurm and torch tell it themselves") {
  for (auto* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "SLURM_LOCALID",
        "LOCAL_RANK"}) {
    CHECK(found({{name, "2"}}).local_rank == 2);
    auto bad = found({{name, "-1"}});
    CHECK_FALSE(bad.local_rank);
    CHECK(has(bad.why, name));
  }
  // mlx.launch in a Slurm job: all its ranks have the variables of the job.
  CHECK(found({{"SLURM_LOCALID", "0"}, {"MLX_RANK", "1"}}).local_rank == 1);
}

TEST_CASE("launcher: what makes no sense is told") {
  auto why = [](const Launch& l) {
    CHECK_FALSE(l.local_rank);
    CHECK(has(l.why, "name one with MLX_VK_DEVICE"));
    return l.why;
  };
  CHECK(has(why(found({{"MLX_RANK", "one"}})), "MLX_RANK=one is not a rank"));
  CHECK(has(why(found({{"MLX_RANK", "1x"}})), "MLX_RANK=1x"));
  CHECK(has(why(found({{"MLX_RANK", "99999999999"}})), "99999999999"));
  auto lost = found({{"MLX_RANK", "1"}, {"MLX_HOSTFILE", "/gone"}});
  CHECK(has(why(lost), "MLX_HOSTFILE=/gone cannot be read"));
  for (auto* text : {"[", "{}", "7", "[[1]]", "[\"127.0.0.1:1\"]"}) {
    CHECK(has(why(in_ring("0", text)), "MLX_HOSTFILE=/tmp/h is not a list"));
  }
  CHECK(
      has(why(in_ring("2", R"([["a:1"], ["a:2"]])")),
          "MLX_RANK=2 is not one of the 2"));
}

TEST_CASE("launcher: ranks share out the GPUs of the best kind") {
  std::vector<Caps> devices = {
      usable_gpu("llvmpipe", software),
      usable_gpu("iGPU", integrated),
      usable_gpu("A", discrete),
      usable_gpu("B", discrete),
      usable_gpu("llvmpipe", software)};
  for (auto* wanted : {"", "auto"}) {
    CHECK(choice(devices, wanted, {}) == 2);
    CHECK(choice(devices, wanted, {0, ""}) == 2);
    CHECK(choice(devices, wanted, {1, ""}) == 3);
    CHECK(choice(devices, wanted, {2, ""}) == 2);
    CHECK(choice(devices, wanted, {4294967295u, ""}) == 3);
    CHECK(choice({devices[0], devices[1]}, wanted, {3, ""}) == 1);
    CHECK(choice({devices[0]}, wanted, {1, ""}) == -1);
    CHECK(choice({}, wanted, {1, ""}) == -1);
  }
  CHECK(choice(devices, "cpu", {}) == 0);
  CHECK(choice(devices, "cpu", {1, ""}) == 4);
  // A named device is that one in every process.
  CHECK(choice(devices, "iGPU", {1, ""}) == 1);
  CHECK(choice(devices, "2", {1, ""}) == 2);
  devices[3].timeline_semaphore = false; // not usable: not counted
  CHECK(choice(devices, "auto", {1, ""}) == 2);
}

TEST_CASE("launcher: nonsense matters only where there is a choice") {
  Launch wrong{{}, "MLX_RANK=one is not a rank"};
  std::vector<Caps> two = {
      usable_gpu("A", discrete), usable_gpu("B", discrete)};
  CHECK(choice({two[0]}, "", wrong) == 0);
  CHECK(choice(two, "1", wrong) == 1);
  std::string why;
  CHECK(choose_device(two, "", why, wrong) == -1);
  CHECK(why == wrong.why);
}

TEST_CASE("launch: a ring on one host") {
  CHECK(on_one_host(R"([["127.0.0.1:1"], ["127.0.0.1:2"]])"));
  CHECK(on_one_host(R"([["10.0.0.1:1", "10.1.0.1:1"], ["10.1.0.1:2"]])"));
  CHECK_FALSE(on_one_host(R"([["10.0.0.1:1"], ["10.0.0.2:1"]])"));
  CHECK_FALSE(on_one_host(R"([["10.0.0.1:1"], [], ["10.0.0.1:2"]])"));
  for (auto* text : {"", "{}", "[1]", "[", "[[1]]"}) {
    CHECK_FALSE(on_one_host(text));
  }
}

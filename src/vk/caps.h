// A snapshot of a physical device's properties, and the choices made from it.
// Everything but query_caps() is pure and tested without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vk/config.h"
#include "vk/launcher.h"
#include "vk/matrix_units.h"
#include "vk/type.h"
#include "vk/vk.h"

namespace mlx::core::vulkan {

// The subgroup operations that every device must support.
constexpr VkSubgroupFeatureFlags least_subgroup_operations =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
    VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
    VK_SUBGROUP_FEATURE_BALLOT_BIT;

struct Caps {
  std::string name;
  std::string driver; // name and version, as the driver reports them
  std::string uuid; // 32 hexadecimal digits
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t api_version = 0;
  uint32_t driver_version = 0;
  VkDriverId driver_id{}; // 0: unknown
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;

  // Required.
  bool buffer_device_address = false;
  bool timeline_semaphore = false;
  bool scalar_block_layout = false;
  bool storage_8bit = false;
  bool storage_16bit = false;
  bool shader_int8 = false;
  bool shader_int16 = false;
  bool shader_int64 = false;
  VkSubgroupFeatureFlags subgroup_operations = 0; // of compute kernels
  int compute_queue_family = -1; // by choose_queue_family()

  // Optional.
  bool shader_float16 = false;
  bool shader_float64 = false;
  bool vulkan_memory_model = false;
  bool subgroup_size_control = false;
  bool required_subgroup_size = false; // compute pipelines may name a size
  bool full_subgroups = false; // and require whole ones
  bool subgroup_extended_types = false;
  // float_controls for 32-bit floats
  bool preserve_nan_f32 = false; // signed zero, Inf, NaN
  bool preserve_denorm_f32 = false;
  bool integer_dot_product = false;
  // Dot products of packed bytes that are faster than their expansion: signed,
  // and signed times unsigned.
  bool fast_dot_signed = false, fast_dot_mixed = false;
  bool bfloat16 = false; // VK_KHR_shader_bfloat16
  bool cooperative_matrix = false; // VK_KHR_cooperative_matrix
  bool compute_only_queue = false; // its family has no graphics
  bool host_query_reset = false;
  bool memory_budget = false;
  bool external_memory_host = false; // VK_EXT_external_memory_host
  // Matrices with f32 sums in subgroup scope, per input type: whether there are
  // any, the chosen shape, and all listed shapes.
  bool coopmat_f16 = false;
  bool coopmat_bf16 = false;
  MatrixShape shape_f16, shape_bf16;
  std::vector<MatrixShape> listed_f16, listed_bf16;
  bool emulated_matrices = false; // test hook
  // f16 matrices can take bf16 operands. Assumed if there are no bf16 matrices,
  // then probed, because they must keep subnormal items.
  bool half_items = false;
  // Elements of 16 x 16 x 16 matrices lie as in common/fragments.glsl. Assumed
  // of NVIDIA's drivers, then probed.
  bool known_fragments = false;

  uint32_t subgroup_size = 0;
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  uint32_t max_workgroup_size = 0;
  uint32_t max_workgroup_axes[3] = {0, 0, 0}; // 0: not known
  uint32_t shared_memory = 0;
  uint32_t max_push_constants = 0;
  uint64_t max_buffer_size = 0; // and of its memory
  uint64_t host_import_alignment = 0; // of its pointers and sizes
  float timestamp_period = 0;
  bool timestamps = false;
  // Compute units, if an extension or a table has the number; else 0.
  uint32_t core_count = 0;
  VkPhysicalDeviceMemoryProperties memory{};

  bool software() const {
    return type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  }
  bool discrete() const {
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  }
  // The number of lanes that every subgroup has at least.
  uint32_t least_subgroup() const {
    return min_subgroup_size ? min_subgroup_size : subgroup_size;
  }
  // Subgroup size of kernels with matrices of 16x16x16 and of others that need
  // a fixed size; 0: not available.
  uint32_t matrix_subgroup() const;
  // Matrices for inputs of this type.
  MatrixUnits matrices(Type t) const;
  bool coopmat(Type t) const {
    return matrices(t).lanes != 0;
  }
  // f16 matrices for operands of type bf16, if it has none of its own.
  MatrixUnits half_matrices(Type t) const;
  // Whether kernels that know the element layout can use the matrices.
  bool usual_matrices(Type t) const {
    return coopmat(t) && !emulated_matrices &&
        (t == Type::f16 ? shape_f16 : shape_bf16).usual();
  }
};

Caps query_caps(const Vk& vk, VkPhysicalDevice device);

// The queue family for all work; -1 if none computes. NVIDIA's queues without
// graphics start a submission sooner (5 us on an H200); on AMD's cards those
// with graphics were found faster
// (https://github.com/ggml-org/llama.cpp/pull/20551). AMD's integrated GPUs
// share that queue with the desktop, which a long submission would stop.
int choose_queue_family(
    const std::vector<VkQueueFamilyProperties>& families,
    uint32_t vendor_id,
    VkPhysicalDeviceType type,
    QueueKind kind);

// Fills in core_count from the tables of vk/core_counts.h if nothing told it.
void count_cores(Caps& caps);

// Chooses the shapes of matrices among those listed. `only`: no other shape
// (test hook); then Intel's Alchemist is used too.
void choose_matrices(
    Caps& caps,
    std::optional<MatrixShape> only = std::nullopt);

// Both types' matrices of this shape, made of floats in shared memory (test
// hook).
void emulate_matrices(Caps& caps, const MatrixShape& shape);

// Names of required features and limits that are missing; empty: usable.
std::vector<std::string> missing_features(const Caps& caps);

const char* type_name(VkPhysicalDeviceType type);

// "MESA_RADV", ...: VkDriverId without its prefix; "" if it is not known.
const char* driver_name(VkDriverId id);

// The device to use among `devices`, by MLX_VK_DEVICE's text (index, UUID,
// part of the name, "cpu", "auto" or empty). -1 with `why` set if none fits.
// auto: of the GPUs of the best kind (discrete, integrated, virtual) the one of
// number local rank modulo their count; without a launcher the first. cpu: the
// same of software devices.
int choose_device(
    const std::vector<Caps>& devices,
    const std::string& wanted,
    std::string& why,
    const Launch& launch = {});

// One line per device, for messages.
std::string list_devices(const std::vector<Caps>& devices);

// Device extensions to enable: those of `caps` that the code uses.
std::vector<const char*> extensions_to_enable(const Caps& caps);

} // namespace mlx::core::vulkan

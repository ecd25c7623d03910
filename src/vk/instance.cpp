#include "vk/instance.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity,
    VkDebugUtilsMessageTypeFlagsEXT,
    const VkDebugUtilsMessengerCallbackDataEXT* data,
    void*) {
  bool error = severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  std::fprintf(
      stderr,
      "[mlx-vulkan] validation %s: %s\n",
      error ? "error" : "warning",
      data->pMessage);
  if (error) {
    // MLX_VK_DEBUG=validate promises that errors are fatal.
    std::fflush(stderr);
    std::abort();
  }
  return VK_FALSE;
}

bool has_layer(const Vk& vk, const char* name) {
  uint32_t n = 0;
  vk.vkEnumerateInstanceLayerProperties(&n, nullptr);
  std::vector<VkLayerProperties> layers(n);
  vk.vkEnumerateInstanceLayerProperties(&n, layers.data());
  return std::any_of(layers.begin(), layers.end(), [&](auto& l) {
    return std::strcmp(l.layerName, name) == 0;
  });
}

} // namespace

std::unique_ptr<Instance> Instance::create(bool validate, std::string& why) {
  auto get = system_loader();
  if (!get) {
    why = "the Vulkan loader (libvulkan.so.1) is not installed";
    return nullptr;
  }
  std::unique_ptr<Instance> instance(new Instance);
  Vk& vk = instance->vk;
  if (!vk.load_global(get, why)) {
    return nullptr;
  }
  uint32_t version = 0;
  vk.vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_2) {
    why = "the Vulkan loader is older than 1.2";
    return nullptr;
  }
  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = "mlx-vulkan";
  app.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &app;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* debug_utils = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkDebugUtilsMessengerCreateInfoEXT messenger{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  if (validate) {
    if (!has_layer(vk, layer)) {
      why =
          "MLX_VK_DEBUG=validate, but the Khronos validation layer is not "
          "installed (Debian: apt install vulkan-validationlayers)";
      return nullptr;
    }
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &debug_utils;
    info.pNext = &messenger;
  }
  VkResult r = vk.vkCreateInstance(&info, nullptr, &instance->handle);
  if (r != VK_SUCCESS) {
    why = std::string("vkCreateInstance failed with ") + result_name(r);
    if (r == VK_ERROR_INCOMPATIBLE_DRIVER) {
      why = "no Vulkan driver is installed (" + why + ")";
    }
    return nullptr;
  }
  if (!vk.load_instance(instance->handle, why)) {
    return nullptr;
  }
  if (validate && vk.vkCreateDebugUtilsMessengerEXT) {
    vk.vkCreateDebugUtilsMessengerEXT(
        instance->handle, &messenger, nullptr, &instance->messenger_);
  }
  uint32_t n = 0;
  vk.vkEnumeratePhysicalDevices(instance->handle, &n, nullptr);
  instance->physical.resize(n);
  vk.vkEnumeratePhysicalDevices(
      instance->handle, &n, instance->physical.data());
  instance->physical.resize(n);
  for (auto d : instance->physical) {
    instance->caps.push_back(query_caps(vk, d));
  }
  return instance;
}

Instance::~Instance() {
  if (!handle || !vk.vkDestroyInstance) {
    return;
  }
  if (messenger_) {
    vk.vkDestroyDebugUtilsMessengerEXT(handle, messenger_, nullptr);
  }
  vk.vkDestroyInstance(handle, nullptr);
}

std::string closed_render_node(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with("renderD")) {
      continue;
    }
    int fd = ::open(it->path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      ::close(fd);
    } else if (errno == EACCES || errno == EPERM) {
      return it->path().string() + " cannot be opened: " + std::strerror(errno);
    }
  }
  return {};
}

const Probe& probe() {
  static const Probe result = [] {
    Probe p;
    if (config().off) {
      p.why = "MLX_VK=0 is set";
      return p;
    }
    auto instance = Instance::create(config().debug_validate, p.why);
    if (!instance) {
      return p;
    }
    p.devices = instance->caps;
    p.chosen = choose_device(p.devices, config().device, p.why, launch());
    bool asked = !config().device.empty() && config().device != "auto";
    if (auto closed = closed_render_node();
        p.chosen < 0 && !asked && !closed.empty()) {
      p.why = closed;
    }
    p.bad_choice =
        p.chosen < 0 && !p.devices.empty() && (asked || p.why == launch().why);
    return p;
  }();
  return result;
}

} // namespace mlx::core::vulkan

# Overlays the Vulkan backend on an unpatched MLX: MLX's own build, minus
# backend/no_gpu, plus MLX's backend/gpu and our sources.

set(MLX_REQUIRED_VERSION 0.32.4)
file(STRINGS "${MLX_SOURCE_DIR}/mlx/version.h" version_lines
     REGEX "^#define MLX_VERSION_")
set(found)
foreach(part MAJOR MINOR PATCH)
  string(REGEX MATCH "MLX_VERSION_${part} ([0-9]+)" _ "${version_lines}")
  list(APPEND found ${CMAKE_MATCH_1})
endforeach()
list(JOIN found "." found)
if(NOT found STREQUAL MLX_REQUIRED_VERSION)
  message(
    FATAL_ERROR
      "MLX ${MLX_REQUIRED_VERSION} is needed, but ${MLX_SOURCE_DIR} holds MLX "
      "${found}. Leave MLX_SOURCE_DIR empty to use the locked sources.")
endif()

# nlohmann json from the system, laid out as MLX's FetchContent expects, so
# that nothing is downloaded.
find_path(NLOHMANN_INCLUDE_DIR nlohmann/json.hpp)
if(NOT NLOHMANN_INCLUDE_DIR)
  message(FATAL_ERROR "nlohmann/json.hpp was not found; install "
                      "nlohmann-json3-dev or pass -DNLOHMANN_INCLUDE_DIR=.")
endif()
set(json_tree "${CMAKE_BINARY_DIR}/json")
file(MAKE_DIRECTORY "${json_tree}/single_include")
file(CREATE_LINK "${NLOHMANN_INCLUDE_DIR}/nlohmann"
     "${json_tree}/single_include/nlohmann" SYMBOLIC)
set(FETCHCONTENT_SOURCE_DIR_JSON "${json_tree}" CACHE PATH "" FORCE)

set(MLX_VERSION ${MLX_REQUIRED_VERSION})
set(BUILD_SHARED_LIBS ON)
set(USE_SYSTEM_FMT ON CACHE BOOL "" FORCE)
set(MLX_BUILD_TESTS OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_METAL OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_CUDA OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_GGUF OFF CACHE BOOL "" FORCE)
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_INCLUDEDIR include)
add_subdirectory(${MLX_SOURCE_DIR} ${CMAKE_BINARY_DIR}/mlx)

get_target_property(mlx_sources mlx SOURCES)
list(FILTER mlx_sources EXCLUDE REGEX "/backend/no_gpu/")
file(GLOB mlx_gpu_sources "${MLX_SOURCE_DIR}/mlx/backend/gpu/*.cpp")
set_property(TARGET mlx PROPERTY SOURCES ${mlx_sources} ${mlx_gpu_sources})

file(GLOB_RECURSE mlxvk_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/*.cpp")
target_sources(mlx PRIVATE ${mlxvk_sources})
target_include_directories(
  mlx SYSTEM PRIVATE "${VULKAN_HEADERS_DIR}" "${VMA_INCLUDE_DIR}"
                     "${GLSLANG_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/glslang/include")
target_include_directories(mlx PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(mlx PRIVATE VK_NO_PROTOTYPES)
target_link_libraries(
  mlx PRIVATE $<BUILD_INTERFACE:glslang>
              $<BUILD_INTERFACE:glslang-default-resource-limits>)

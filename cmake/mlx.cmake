# Overlays the Vulkan backend on an unpatched MLX: MLX's own build, minus
# backend/no_gpu, plus MLX's backend/gpu and our sources.

file(STRINGS "${MLX_SOURCE_DIR}/mlx/version.h" version_lines
     REGEX "^#define MLX_VERSION_")
set(found)
foreach(part MAJOR MINOR PATCH)
  string(REGEX MATCH "MLX_VERSION_${part} ([0-9]+)" _ "${version_lines}")
  list(APPEND found ${CMAKE_MATCH_1})
endforeach()
list(JOIN found "." found)

# The stock frontend is compiled against the official headers, so ours must be
# the same byte for byte.
string(JSON mlxvk_headers GET "${mlxvk_version}" headers)
set(MLXVK_CHECK_HEADERS ON CACHE BOOL
    "compare MLX's version and headers with the release; OFF builds any MLX")

function(mlxvk_header_digest folder result)
  file(GLOB_RECURSE headers RELATIVE "${folder}" "${folder}/*.h")
  list(FILTER headers EXCLUDE REGEX "backend/metal/kernels\\.h$")
  list(SORT headers COMPARE STRING)
  set(lines)
  foreach(header IN LISTS headers)
    file(SHA256 "${folder}/${header}" hash)
    string(APPEND lines "${hash}  ${header}\n")
  endforeach()
  string(SHA256 digest "${lines}")
  set(${result} ${digest} PARENT_SCOPE)
endfunction()

if(MLXVK_CHECK_HEADERS)
  if(NOT found STREQUAL MLXVK_MLX)
    message(
      FATAL_ERROR
        "MLX ${MLXVK_MLX} is needed, but ${MLX_SOURCE_DIR} holds MLX ${found}. "
        "Leave MLX_SOURCE_DIR empty to use the locked sources, or pass "
        "-DMLXVK_MLX=${found}.")
  endif()
  mlxvk_header_digest("${MLX_SOURCE_DIR}/mlx" digest)
  if(NOT digest STREQUAL mlxvk_headers)
    message(
      FATAL_ERROR
        "The headers in ${MLX_SOURCE_DIR}/mlx are not those of the official "
        "MLX ${MLXVK_MLX} release (${digest} instead of ${mlxvk_headers}), so "
        "the stock mlx package could not use this library. Leave MLX_SOURCE_DIR empty to use the locked "
        "sources, or pass -DMLXVK_CHECK_HEADERS=OFF.")
  endif()
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

# mx.compile on the CPU hands a text to the user's compiler that begins with MLX's
# headers, preprocessed here. With the standard headers in it, only a compiler of
# this version takes it (GCC 13 refuses GCC 12's); so they stay as #include.
set(kept_includes "${CMAKE_BINARY_DIR}/kept_includes")
foreach(header algorithm arm_bf16.h arm_fp16.h arm_neon.h cmath complex cstdint
               functional limits math.h stdint.h vector)
  file(CONFIGURE OUTPUT "${kept_includes}/${header}" @ONLY
       CONTENT "#define KEPT\nKEPT #include <@header@>\n")
endforeach()
set(PREAMBLE_SIMD_FLAGS "-nostdinc -isystem ${kept_includes}")

set(MLX_VERSION ${found})
set(BUILD_SHARED_LIBS ON)
set(USE_SYSTEM_FMT ON CACHE BOOL "" FORCE)
set(MLX_BUILD_TESTS OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_METAL OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_CUDA OFF CACHE BOOL "" FORCE)
set(MLX_BUILD_GGUF OFF CACHE BOOL "" FORCE)
set(MLX_USE_CCACHE OFF CACHE BOOL "" FORCE) # keeps the launcher of deps.cmake
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_INCLUDEDIR include)
add_subdirectory(${MLX_SOURCE_DIR} ${CMAKE_BINARY_DIR}/mlx)

# Stubs whose functions this library defines: a backend's in src/backend and
# src/ops, GGUF's in src/io.
get_target_property(mlx_sources mlx SOURCES)
list(FILTER mlx_sources EXCLUDE REGEX "/backend/no_gpu/|/io/no_gguf.cpp")
file(GLOB mlx_gpu_sources "${MLX_SOURCE_DIR}/mlx/backend/gpu/*.cpp")
set_property(TARGET mlx PROPERTY SOURCES ${mlx_sources} ${mlx_gpu_sources})
include(cmake/overrides.cmake)
include(src/versions/features.cmake)

# What is free of MLX comes as libraries (cmake/layers.cmake).
file(GLOB_RECURSE mlxvk_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/*.cpp")
list(FILTER mlxvk_sources EXCLUDE REGEX "/src/(vk|policy|msl|pipeline|runtime|ranks)/")
list(REMOVE_ITEM mlxvk_sources ${mlxvk_left_out})

# Half of a file's time is MLX's headers. MLX's own files are compiled as MLX does, some
# with functions renamed.
get_target_property(mlx_sources mlx SOURCES)
target_sources(mlx PRIVATE ${mlxvk_sources})
set_source_files_properties(${mlx_sources} TARGET_DIRECTORY mlx
                            PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
target_precompile_headers(mlx PRIVATE "${PROJECT_SOURCE_DIR}/src/backend/stream_encoder.h"
                                      <mlx/primitives.h> <mlx/utils.h>)
# Small files of MLX's that take less time than their headers are compiled together;
# CMake leaves out those with functions renamed.
set_target_properties(mlx PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
function(mlxvk_compile_together group folder)
  list(TRANSFORM ARGN PREPEND "${MLX_SOURCE_DIR}/mlx/${folder}")
  list(TRANSFORM ARGN APPEND ".cpp")
  set_property(SOURCE ${ARGN} TARGET_DIRECTORY mlx PROPERTY UNITY_GROUP ${group})
  set_property(SOURCE "${CMAKE_BINARY_DIR}/mlx/CMakeFiles/mlx.dir/Unity/unity_${group}_cxx.cxx"
               TARGET_DIRECTORY mlx PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()
mlxvk_compile_together(linalg backend/cpu/ cholesky eig eigh inverse luf qrf svd)
mlxvk_compile_together(rows backend/cpu/ arg_reduce device_info distributed encoder eval
                       hadamard logsumexp select softmax threefry)
mlxvk_compile_together(products backend/cpu/ compiled gemms/cblas gemms/simd_bf16
                       gemms/simd_fp16 jit_compiler masked_mm matmul)
mlxvk_compile_together(common backend/common/ broadcasting common compiled reduce slicing utils)
mlxvk_compile_together(gpu backend/gpu/ copy primitives slicing)
mlxvk_compile_together(graph "" distributed/distributed distributed/ops distributed/primitives
                       distributed/utils dtype dtype_utils einsum fft graph_utils memory
                       random utils)

# As fast as with -O3, in some 60 % of GCC 12's time: vectorized and inlined as there, without
# what makes copies of loops (docs/lab/2026-11-29-build-time.md).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  set(large binary copy indexing quantized reduce scan sort unary)
  list(TRANSFORM large PREPEND "${MLX_SOURCE_DIR}/mlx/backend/cpu/")
  list(TRANSFORM large APPEND ".cpp")
  set_property(SOURCE ${large} TARGET_DIRECTORY mlx APPEND PROPERTY COMPILE_OPTIONS
               -O2 -ftree-vectorize -fvect-cost-model=dynamic
               --param=max-inline-insns-auto=30 --param=max-inline-insns-single=200
               --param=inline-min-speedup=15 --param=early-inlining-insns=14)
endif()

target_link_options(mlx PRIVATE -Wl,--no-undefined)
target_link_libraries(mlx PRIVATE $<BUILD_INTERFACE:mlxvk_ranks>
                                  $<BUILD_INTERFACE:mlxvk_msl>
                                  $<BUILD_INTERFACE:mlxvk_array_memory>)

# Only MLX's own symbols leave the library: glslang's would meet those of other
# Vulkan programs in the same process.
target_link_options(mlx PRIVATE LINKER:--exclude-libs,ALL)
set_target_properties(mlx PROPERTIES INSTALL_RPATH "$ORIGIN"
                                     BUILD_WITH_INSTALL_RPATH ON)

# Embeds src/kernels/** in the library as text, and builds the parts that are
# free of MLX: mlxvk_core (for tests) and mlxvk-glslc (checks kernels).

file(GLOB_RECURSE mlxvk_kernels CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/kernels/*.comp"
     "${PROJECT_SOURCE_DIR}/src/kernels/*.glsl")
set(mlxvk_kernel_list "${CMAKE_BINARY_DIR}/kernel_list.txt")
list(JOIN mlxvk_kernels "\n" lines)
file(CONFIGURE OUTPUT "${mlxvk_kernel_list}" CONTENT "${lines}\n")
set(mlxvk_embedded "${CMAKE_BINARY_DIR}/kernel_sources.cpp")
add_custom_command(
  OUTPUT "${mlxvk_embedded}"
  COMMAND
    ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/src/kernels
    -DLIST=${mlxvk_kernel_list} -DOUTPUT=${mlxvk_embedded} -P
    ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${mlxvk_kernels} "${mlxvk_kernel_list}"
          "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
  COMMENT "Embedding kernels"
  VERBATIM)

set(mlxvk_include_dirs "${VULKAN_HEADERS_DIR}" "${VMA_INCLUDE_DIR}"
                       "${GLSLANG_SOURCE_DIR}"
                       "${CMAKE_BINARY_DIR}/glslang/include")
set(MLXVK_SANITIZE "" CACHE STRING "address or thread: null_tests only")

# Sources that know nothing of MLX.
function(mlxvk_add_core name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARGN} "${mlxvk_embedded}")
  target_include_directories(${name} SYSTEM PUBLIC ${mlxvk_include_dirs})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_compile_definitions(${name} PUBLIC VK_NO_PROTOTYPES)
  target_link_libraries(${name} PUBLIC glslang glslang-default-resource-limits
                                       ${CMAKE_DL_LIBS})
  find_package(Threads REQUIRED)
  target_link_libraries(${name} PUBLIC Threads::Threads)
  if(MLXVK_SANITIZE STREQUAL "address")
    # glslang has no RTTI, which the vptr check needs.
    set(flags -fsanitize=address,undefined -fno-sanitize=vptr
              -fno-sanitize-recover=undefined)
  elseif(MLXVK_SANITIZE STREQUAL "thread")
    set(flags -fsanitize=thread)
  elseif(MLXVK_SANITIZE)
    message(FATAL_ERROR "MLXVK_SANITIZE is address or thread, not "
                        "${MLXVK_SANITIZE}.")
  endif()
  if(MLXVK_SANITIZE)
    target_compile_options(${name} PUBLIC ${flags} -g -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC ${flags})
  endif()
endfunction()

file(GLOB mlxvk_pipeline_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/pipeline/*.cpp")
file(GLOB mlxvk_runtime_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/runtime/*.cpp")

# The compiler alone, so that a kernel can be checked while the runtime is
# being changed.
mlxvk_add_core(mlxvk_pipeline ${mlxvk_pipeline_sources}
               "${PROJECT_SOURCE_DIR}/src/runtime/config.cpp"
               "${PROJECT_SOURCE_DIR}/src/runtime/vk.cpp")
add_executable(mlxvk-glslc EXCLUDE_FROM_ALL
               "${PROJECT_SOURCE_DIR}/tools/mlxvk_glslc.cpp")
target_link_libraries(mlxvk-glslc PRIVATE mlxvk_pipeline)

mlxvk_add_core(mlxvk_core ${mlxvk_pipeline_sources} ${mlxvk_runtime_sources}
               "${PROJECT_SOURCE_DIR}/src/jit/emit.cpp"
               "${PROJECT_SOURCE_DIR}/src/ops/gemm/plan.cpp"
               "${PROJECT_SOURCE_DIR}/src/ops/quant/plan.cpp"
               "${PROJECT_SOURCE_DIR}/src/ops/attention/plan.cpp")

if(TARGET mlx)
  target_sources(mlx PRIVATE "${mlxvk_embedded}")
endif()

# Every variant through AMD's compiler, without hardware.
add_executable(radv_compile EXCLUDE_FROM_ALL
               "${PROJECT_SOURCE_DIR}/tests/radv/radv_compile.cpp")
target_link_libraries(radv_compile PRIVATE mlxvk_core)

find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
if(DOCTEST_INCLUDE_DIR)
  file(GLOB mlxvk_null_tests CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/tests/null/*.cpp")
  add_executable(null_tests EXCLUDE_FROM_ALL ${mlxvk_null_tests})
  target_include_directories(null_tests SYSTEM
                             PRIVATE "${DOCTEST_INCLUDE_DIR}")
  target_include_directories(null_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(null_tests PRIVATE mlxvk_core)
endif()

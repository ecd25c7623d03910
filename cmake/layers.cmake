# The parts that are free of MLX, a library each, lowest first: vk, policy,
# pipeline, runtime, ranks, and msl, which is free of Vulkan too (docs/dev/architecture.md, "The
# ladder"); and what is built from them alone. The library is these and the upper
# layers (cmake/mlx.cmake).

set(MLXVK_SANITIZE "" CACHE STRING "address or thread: null_tests only; fuzzer: cmake/fuzz.cmake")
if(MLXVK_SANITIZE STREQUAL "address")
  # glslang has no RTTI, which the vptr check needs.
  set(mlxvk_sanitize_flags -fsanitize=address,undefined -fno-sanitize=vptr
                           -fno-sanitize-recover=undefined)
elseif(MLXVK_SANITIZE STREQUAL "thread")
  set(mlxvk_sanitize_flags -fsanitize=thread)
elseif(MLXVK_SANITIZE STREQUAL "fuzzer")
  set(mlxvk_sanitize_flags -fsanitize=fuzzer-no-link,address,undefined
                           -fno-sanitize=vptr -fno-sanitize-recover=undefined)
elseif(MLXVK_SANITIZE)
  message(FATAL_ERROR "MLXVK_SANITIZE is address, thread or fuzzer, not "
                      "${MLXVK_SANITIZE}.")
endif()

find_package(Threads REQUIRED)
add_library(mlxvk_flags INTERFACE)
if(MLXVK_SANITIZE)
  target_compile_options(mlxvk_flags INTERFACE ${mlxvk_sanitize_flags} -g
                                               -fno-omit-frame-pointer)
  target_link_options(mlxvk_flags INTERFACE ${mlxvk_sanitize_flags})
endif()
add_library(mlxvk_common INTERFACE)
target_link_libraries(mlxvk_common INTERFACE mlxvk_flags)
target_include_directories(mlxvk_common INTERFACE "${PROJECT_SOURCE_DIR}/src"
                                                "${PROJECT_SOURCE_DIR}/src/kernels")
target_include_directories(mlxvk_common SYSTEM INTERFACE "${VULKAN_HEADERS_DIR}")
target_compile_definitions(mlxvk_common INTERFACE VK_NO_PROTOTYPES)
target_link_libraries(mlxvk_common INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

# The layer of FOLDER, on top of the targets in BELOW. Beside it, as
# mlxvk_<name>_alone, a module of its objects and what is below, which only
# shows that they link: nothing loads it.
add_custom_target(mlxvk_layers)
function(mlxvk_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "BELOW;SOURCES")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*.cpp")
  add_library(mlxvk_${name} STATIC EXCLUDE_FROM_ALL ${sources} ${arg_SOURCES})
  target_link_libraries(mlxvk_${name} PUBLIC ${arg_BELOW})
  if(NOT MLXVK_SANITIZE) # whose run-time symbols only an executable has
    add_library(mlxvk_${name}_alone MODULE EXCLUDE_FROM_ALL
                $<TARGET_OBJECTS:mlxvk_${name}>)
    set_target_properties(mlxvk_${name}_alone PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(mlxvk_${name}_alone PRIVATE ${arg_BELOW})
    target_link_options(mlxvk_${name}_alone PRIVATE LINKER:--no-undefined)
    add_dependencies(mlxvk_layers mlxvk_${name}_alone)
  endif()
endfunction()

# Metal's language: free of Vulkan too. Its headers are "msl/<name>".
mlxvk_add_layer(msl FOLDER msl BELOW mlxvk_flags)
target_include_directories(mlxvk_msl PUBLIC "${PROJECT_SOURCE_DIR}")
find_path(NLOHMANN_INCLUDE_DIR nlohmann/json.hpp REQUIRED)
mlxvk_add_layer(vk FOLDER src/vk BELOW mlxvk_common)
target_include_directories(mlxvk_vk SYSTEM PRIVATE "${NLOHMANN_INCLUDE_DIR}")
mlxvk_add_layer(policy FOLDER src/policy BELOW mlxvk_vk)
mlxvk_add_layer(
  pipeline FOLDER src/pipeline
  BELOW mlxvk_policy glslang glslang-default-resource-limits
  SOURCES "${mlxvk_embedded}")
target_include_directories(
  mlxvk_pipeline SYSTEM PRIVATE "${GLSLANG_SOURCE_DIR}"
                                "${CMAKE_BINARY_DIR}/glslang/include")
mlxvk_add_layer(runtime FOLDER src/runtime BELOW mlxvk_pipeline)
target_include_directories(mlxvk_runtime SYSTEM PRIVATE "${VMA_INCLUDE_DIR}")
target_include_directories(mlxvk_runtime SYSTEM
                           PRIVATE "${NLOHMANN_INCLUDE_DIR}")
mlxvk_add_layer(ranks FOLDER src/ranks BELOW mlxvk_runtime)

if(MLXVK_SANITIZE STREQUAL "fuzzer")
  include(cmake/fuzz.cmake)
  return()
endif()

# What matrix units reach (docs/lab/2026-11-22-matrix-units.md).
if(NLOHMANN_INCLUDE_DIR)
  add_executable(matrix_units EXCLUDE_FROM_ALL
                 "${PROJECT_SOURCE_DIR}/benchmarks/matrix_units/main.cpp")
  target_include_directories(matrix_units SYSTEM
                             PRIVATE "${NLOHMANN_INCLUDE_DIR}")
  target_link_libraries(matrix_units PRIVATE mlxvk_pipeline)
endif()

if(NOT MLXVK_BUILD_TESTS)
  return()
endif()

# The upper layers' pure parts.
file(GLOB mlxvk_plans CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/ops/*/plan.cpp"
     "${PROJECT_SOURCE_DIR}/src/ops/*/candidates.cpp"
     "${PROJECT_SOURCE_DIR}/src/jit/emit.cpp")
add_library(mlxvk_plans STATIC EXCLUDE_FROM_ALL ${mlxvk_plans})
target_link_libraries(mlxvk_plans PUBLIC mlxvk_pipeline mlxvk_msl)
target_include_directories(mlxvk_plans SYSTEM PUBLIC "${NLOHMANN_INCLUDE_DIR}")

# The variants that they choose.
file(GLOB mlxvk_variants CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/tests/variants/*.cpp")
add_library(mlxvk_variants STATIC EXCLUDE_FROM_ALL ${mlxvk_variants})
target_include_directories(mlxvk_variants PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(mlxvk_variants PUBLIC mlxvk_plans)

# With emulated matrices, whose sources are not embedded.
set(mlxvk_emulation MLXVK_EMULATION="${PROJECT_SOURCE_DIR}/tests/emulation")

add_executable(mlxvk-glslc EXCLUDE_FROM_ALL
               "${PROJECT_SOURCE_DIR}/tools/mlxvk_glslc.cpp")
target_compile_definitions(mlxvk-glslc PRIVATE ${mlxvk_emulation})
target_link_libraries(mlxvk-glslc PRIVATE mlxvk_variants)

# The variants that a device's plans choose, through its driver's compiler,
# without hardware (tools/driver_lab.py).
if(NLOHMANN_INCLUDE_DIR)
  add_executable(driver_compile EXCLUDE_FROM_ALL
                 "${PROJECT_SOURCE_DIR}/tests/drivers/driver_compile.cpp"
                 "${PROJECT_SOURCE_DIR}/tests/drivers/null_device.cpp")
  target_include_directories(driver_compile SYSTEM
                             PRIVATE "${NLOHMANN_INCLUDE_DIR}")
  target_link_libraries(driver_compile PRIVATE mlxvk_variants)
endif()

# The translator as a command, and over kernels that tests/kernels/extract.py finds.
add_executable(msl EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/msl/command/main.cpp")
target_link_libraries(msl PRIVATE mlxvk_msl)
add_executable(msl_translate EXCLUDE_FROM_ALL
               "${PROJECT_SOURCE_DIR}/tests/kernels/msl_translate.cpp")
target_include_directories(msl_translate SYSTEM
                           PRIVATE "${NLOHMANN_INCLUDE_DIR}")
target_link_libraries(msl_translate PRIVATE mlxvk_msl mlxvk_pipeline)

find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
if(DOCTEST_INCLUDE_DIR)
  file(GLOB mlxvk_null_tests CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/tests/null/*.cpp"
       "${PROJECT_SOURCE_DIR}/msl/tests/*_test.cpp"
       "${PROJECT_SOURCE_DIR}/msl/tests/print.cpp")
  add_executable(null_tests EXCLUDE_FROM_ALL ${mlxvk_null_tests})
  target_include_directories(null_tests SYSTEM
                             PRIVATE "${DOCTEST_INCLUDE_DIR}")
  target_compile_definitions(null_tests PRIVATE ${mlxvk_emulation}
                             MLXVK_BATCHES="${PROJECT_SOURCE_DIR}/tests/null/batches")
  target_link_libraries(null_tests PRIVATE mlxvk_variants mlxvk_ranks mlxvk_msl)
  add_dependencies(null_tests mlxvk_layers)
  if(TARGET matrix_units)
    add_dependencies(null_tests matrix_units) # so that it compiles
  endif()
endif()

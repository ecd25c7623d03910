# Finds the C++ sources this project builds from. third_party/Cargo.lock pins
# them with checksums; cargo is only the downloader, no Rust is compiled.
# Every folder can be overridden on the command line.

set(MLX_SOURCE_DIR "" CACHE PATH "MLX source tree (default: the locked one)")
set(VMA_INCLUDE_DIR "" CACHE PATH "folder of vk_mem_alloc.h")
set(VULKAN_HEADERS_DIR "" CACHE PATH "Vulkan-Headers include folder")
set(GLSLANG_SOURCE_DIR "" CACHE PATH "glslang source tree")

function(mlxvk_locked_sources)
  find_program(CARGO_PROGRAM cargo)
  if(NOT CARGO_PROGRAM)
    message(
      FATAL_ERROR
        "cargo was not found. It downloads the locked C++ sources (MLX, VMA, "
        "glslang); install it (Debian: apt install cargo), or pass "
        "-DMLX_SOURCE_DIR=, -DVMA_INCLUDE_DIR=, -DVULKAN_HEADERS_DIR= and "
        "-DGLSLANG_SOURCE_DIR=.")
  endif()
  set(manifest "${PROJECT_SOURCE_DIR}/third_party/Cargo.toml")
  foreach(offline "--offline" "")
    execute_process(
      COMMAND ${CARGO_PROGRAM} metadata --locked ${offline} --format-version 1
              --manifest-path ${manifest}
      OUTPUT_VARIABLE metadata
      ERROR_VARIABLE error
      RESULT_VARIABLE result)
    if(result EQUAL 0)
      break()
    endif()
  endforeach()
  if(NOT result EQUAL 0)
    message(
      FATAL_ERROR
        "cargo could not provide the sources locked in third_party/Cargo.lock. "
        "Without network access, pass -DMLX_SOURCE_DIR=, -DVMA_INCLUDE_DIR=, "
        "-DVULKAN_HEADERS_DIR= and -DGLSLANG_SOURCE_DIR=. cargo said: ${error}")
  endif()
  # metadata lists the folders before they are unpacked; fetch unpacks them.
  execute_process(
    COMMAND ${CARGO_PROGRAM} fetch --locked --manifest-path ${manifest}
    OUTPUT_QUIET ERROR_QUIET)
  string(JSON count LENGTH "${metadata}" packages)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON name GET "${metadata}" packages ${i} name)
    string(JSON path GET "${metadata}" packages ${i} manifest_path)
    cmake_path(GET path PARENT_PATH dir)
    string(MAKE_C_IDENTIFIER "${name}" id)
    set(LOCKED_${id} "${dir}" PARENT_SCOPE)
  endforeach()
endfunction()

if(NOT (MLX_SOURCE_DIR AND VMA_INCLUDE_DIR AND VULKAN_HEADERS_DIR
        AND GLSLANG_SOURCE_DIR))
  mlxvk_locked_sources()
endif()

function(mlxvk_source_default variable locked_dir suffix probe)
  if(NOT ${variable})
    set(${variable} "${locked_dir}/${suffix}")
  endif()
  if(NOT EXISTS "${${variable}}/${probe}")
    message(FATAL_ERROR "${variable}=${${variable}} holds no ${probe}.")
  endif()
  message(STATUS "${variable}: ${${variable}}")
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

mlxvk_source_default(MLX_SOURCE_DIR "${LOCKED_rlx_mlx_sys}" vendor/mlx
                     mlx/version.h)
mlxvk_source_default(VMA_INCLUDE_DIR "${LOCKED_vk_mem}"
                     vendor/VulkanMemoryAllocator/include vk_mem_alloc.h)
mlxvk_source_default(VULKAN_HEADERS_DIR "${LOCKED_vk_mem}"
                     vendor/Vulkan-Headers/include vulkan/vulkan.h)
mlxvk_source_default(GLSLANG_SOURCE_DIR "${LOCKED_glslang_sys}" native/glslang
                     glslang/Public/ShaderLang.h)

# glslang: static, hidden, without the optimizer or HLSL.
set(ENABLE_OPT OFF)
set(ENABLE_HLSL OFF)
set(ENABLE_GLSLANG_BINARIES OFF)
set(ENABLE_GLSLANG_JS OFF)
set(GLSLANG_TESTS OFF)
set(GLSLANG_ENABLE_INSTALL OFF)
set(BUILD_EXTERNAL OFF)
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
block()
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  add_subdirectory(${GLSLANG_SOURCE_DIR} ${CMAKE_BINARY_DIR}/glslang
                   EXCLUDE_FROM_ALL SYSTEM)
endblock()

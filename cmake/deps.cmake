# Finds the C++ sources this project builds from. third_party/Cargo.lock and
# third_party/mlx-<version>/Cargo.lock pin them with checksums; cargo is only the
# downloader, no Rust is compiled. Every folder can be overridden on the command
# line.

# third_party/mlx.json lists the versions of MLX.
file(READ "${CMAKE_CURRENT_LIST_DIR}/../third_party/mlx.json" mlxvk_versions)
string(JSON newest GET "${mlxvk_versions}" newest)
set(MLXVK_MLX "${newest}" CACHE STRING "version of MLX, of third_party/mlx.json")
string(JSON mlxvk_version ERROR_VARIABLE unknown GET "${mlxvk_versions}" versions
       "${MLXVK_MLX}")
if(unknown)
  message(FATAL_ERROR "MLXVK_MLX=${MLXVK_MLX} is not among the versions of "
                      "third_party/mlx.json; the newest is ${newest}.")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             "${PROJECT_SOURCE_DIR}/third_party/mlx.json")

set(MLX_SOURCE_DIR "" CACHE PATH "MLX source tree (default: the locked one)")
set(VMA_INCLUDE_DIR "" CACHE PATH "folder of vk_mem_alloc.h")
set(VULKAN_HEADERS_DIR "" CACHE PATH "Vulkan-Headers include folder")
set(GLSLANG_SOURCE_DIR "" CACHE PATH "glslang source tree")
set(MIMALLOC_SOURCE_DIR "" CACHE PATH "mimalloc source tree")

set(mlxvk_source_options
    "-DMLX_SOURCE_DIR=, -DVMA_INCLUDE_DIR=, -DVULKAN_HEADERS_DIR=, \
-DGLSLANG_SOURCE_DIR= and -DMIMALLOC_SOURCE_DIR=")

# The locked packages use Rust edition 2024, which cargo reads since 1.85. Ubuntu
# has such a cargo beside its default one, as cargo-1.NN; rustup's may be older.
function(mlxvk_find_cargo)
  file(GLOB candidates /usr/bin/cargo /usr/bin/cargo-1.*)
  list(SORT candidates COMPARE NATURAL ORDER DESCENDING)
  find_program(CARGO_DEFAULT cargo)
  set(seen)
  foreach(cargo IN LISTS CARGO_DEFAULT candidates)
    if(cargo)
      execute_process(COMMAND ${cargo} --version OUTPUT_VARIABLE version
                      OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(version MATCHES "^cargo ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL
                                                1.85)
        set(CARGO_PROGRAM "${cargo}" CACHE FILEPATH "cargo 1.85 or newer")
        return()
      endif()
      set(seen " (found ${version})")
    endif()
  endforeach()
  message(
    FATAL_ERROR
      "cargo 1.85 or newer was not found${seen}. It downloads the locked C++ "
      "sources (MLX, VMA, glslang, mimalloc). Install it (Debian "
      "12: apt install cargo-web; Ubuntu 24.04: apt install cargo-1.85; or "
      "rustup), or pass ${mlxvk_source_options}.")
endfunction()

# Sets LOCKED_<crate> to the folder of each package that a manifest locks.
function(mlxvk_locked_sources manifest)
  if(NOT CARGO_PROGRAM)
    mlxvk_find_cargo()
  endif()
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
        "cargo could not provide the sources locked beside ${manifest}. "
        "Without network access, pass ${mlxvk_source_options}. cargo said: "
        "${error}")
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

# The tree of a commit, for a release of MLX that no package holds.
function(mlxvk_committed_source commit)
  set(tree "${CMAKE_BINARY_DIR}/mlx-${commit}")
  if(NOT EXISTS "${tree}/mlx/version.h")
    message(STATUS "Fetching MLX's commit ${commit}")
    set(from https://github.com/ml-explore/mlx)
    file(MAKE_DIRECTORY "${tree}")
    foreach(words "init;-q" "fetch;-q;--depth;1;${from};${commit}"
                  "checkout;-q;${commit}")
      execute_process(COMMAND git ${words} WORKING_DIRECTORY "${tree}"
                      RESULT_VARIABLE result ERROR_VARIABLE error)
      if(NOT result EQUAL 0)
        file(REMOVE_RECURSE "${tree}")
        message(
          FATAL_ERROR
            "git could not fetch MLX ${MLXVK_MLX}, commit ${commit} of ${from}. "
            "Pass its tree with -DMLX_SOURCE_DIR=FOLDER (make: "
            "CMAKE_ARGS=-DMLX_SOURCE_DIR=FOLDER). git said: ${error}")
      endif()
    endforeach()
  endif()
  set(MLX_SOURCE_DIR "${tree}" PARENT_SCOPE)
endfunction()

if(NOT (VMA_INCLUDE_DIR AND VULKAN_HEADERS_DIR AND GLSLANG_SOURCE_DIR
        AND MIMALLOC_SOURCE_DIR))
  mlxvk_locked_sources("${PROJECT_SOURCE_DIR}/third_party/Cargo.toml")
endif()
if(NOT MLX_SOURCE_DIR)
  string(JSON commit ERROR_VARIABLE packaged GET "${mlxvk_version}" commit)
  if(packaged)
    mlxvk_locked_sources(
      "${PROJECT_SOURCE_DIR}/third_party/mlx-${MLXVK_MLX}/Cargo.toml")
  else()
    mlxvk_committed_source("${commit}")
  endif()
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
mlxvk_source_default(MIMALLOC_SOURCE_DIR "${LOCKED_libmimalloc_sys}"
                     c_src/mimalloc/v3 include/mimalloc.h)

# glslang: static, hidden, without the optimizer or HLSL.
set(ENABLE_OPT OFF)
set(ENABLE_PCH OFF) # ccache cannot share what a precompiled header is in
set(ENABLE_HLSL OFF)
set(ENABLE_GLSLANG_BINARIES OFF)
set(ENABLE_GLSLANG_JS OFF)
set(GLSLANG_TESTS OFF)
set(GLSLANG_ENABLE_INSTALL OFF)
set(BUILD_EXTERNAL OFF)
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths relative to the tree, so that clones and worktrees share the cache. Files
  # with a precompiled header are not cached: it holds the paths of its tree.
  set(CMAKE_C_COMPILER_LAUNCHER
      env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
block()
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  add_subdirectory(${GLSLANG_SOURCE_DIR} ${CMAKE_BINARY_DIR}/glslang
                   EXCLUDE_FROM_ALL SYSTEM)
  target_compile_options(glslang PRIVATE -w) # its warnings, not ours
  # Headers are two fifths of its files' time.
  set_target_properties(glslang PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # Bison's parser, which GCC 12 compiles in 56 s with -O3 and in 19 s with -O2,
  # and which reads kernels as fast.
  set_property(SOURCE "${GLSLANG_SOURCE_DIR}/glslang/MachineIndependent/glslang_tab.cpp"
               TARGET_DIRECTORY glslang APPEND PROPERTY COMPILE_OPTIONS -O2)
endblock()

# Fuzzers of what reads bytes from elsewhere: build-fuzz/fuzz_<parser>, made by
# tests/fuzz/run.py with Clang (libFuzzer under ASan and UBSan).

find_path(NLOHMANN_INCLUDE_DIR nlohmann/json.hpp REQUIRED)

# MLX is not built again: a parser that makes arrays takes them from this one.
set(MLXVK_FUZZ_MLX "" CACHE FILEPATH "libmlx.so of a plain build")

# fuzz_<name> of tests/fuzz/<name>.cpp or FILE, with the sources of SOURCES.
function(mlxvk_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE" "SOURCES;BELOW")
  if(NOT arg_FILE)
    set(arg_FILE "tests/fuzz/${name}.cpp")
  endif()
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/")
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL
                 "${PROJECT_SOURCE_DIR}/${arg_FILE}" ${arg_SOURCES})
  target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(fuzz_${name} PRIVATE ${arg_BELOW})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()

mlxvk_add_fuzzer(spirv SOURCES pipeline/reflect.cpp BELOW mlxvk_vk)
mlxvk_add_fuzzer(cache SOURCES pipeline/disk_cache.cpp BELOW mlxvk_vk)
mlxvk_add_fuzzer(hostfile BELOW mlxvk_vk)
mlxvk_add_fuzzer(metal FILE msl/tests/fuzzer.cpp BELOW mlxvk_msl)
mlxvk_add_fuzzer(gguf SOURCES io/load_gguf.cpp BELOW mlxvk_common
                 "${MLXVK_FUZZ_MLX}")
target_include_directories(fuzz_gguf SYSTEM PRIVATE "${MLX_SOURCE_DIR}")

# Features of this MLX, found in its headers: the definitions that the files beside
# this one are compiled with, and the files that it needs.

# Sets NAME to 1 or 0: whether MLX's HEADER matches REGEX.
function(mlxvk_feature name header regex)
  file(READ "${MLX_SOURCE_DIR}/mlx/${header}" text)
  string(REGEX MATCH "${regex}" found "${text}")
  if(found)
    set(${name} 1 PARENT_SCOPE)
  else()
    set(${name} 0 PARENT_SCOPE)
  endif()
endfunction()

set(mlxvk_features)
foreach(
  test
  "MLX_FENCE_VALUES|fence.h|uint32_t update\\("
  "MLX_GATHER_QMM_SCALE|ops.h|array gather_qmm\\([^)]*global_scale"
  "MLX_SDPA_FORCE_FUSED|fast_primitives.h|use_fallback\\([^)]*force_fused"
  "MLX_SDPA_SINKS|fast_primitives.h|use_fallback\\([^)]*has_sinks")
  string(REPLACE "|" ";" test "${test}")
  list(GET test 0 name)
  list(GET test 1 header)
  list(GET test 2 regex)
  mlxvk_feature(has "${header}" "${regex}")
  list(APPEND mlxvk_features "${name}=${has}")
endforeach()
message(STATUS "MLX's features: ${mlxvk_features}")
set_source_files_properties(
  "${PROJECT_SOURCE_DIR}/src/versions/members.cpp" TARGET_DIRECTORY mlx
  PROPERTIES COMPILE_DEFINITIONS "${mlxvk_features}")

# Files of src/ that this MLX has no use for.
set(mlxvk_left_out)
if(EXISTS "${MLX_SOURCE_DIR}/mlx/error.h")
  list(APPEND mlxvk_left_out versions/event.cpp)
else()
  list(APPEND mlxvk_left_out versions/event_errors.cpp)
endif()
foreach(
  primitive_and_file
  "CrossEntropy ops/rows/cross_entropy.cpp"
  "FloorDivide ops/floor_divide.cpp"
  "GatedDeltaUpdate ops/gated_delta/update.cpp"
  "GatedDeltaUpdateVJP ops/gated_delta/vjp.cpp"
  "GatherQQMM ops/quant/gather_qqmm.cpp"
  "SearchSorted ops/searchsorted.cpp")
  string(REPLACE " " ";" words "${primitive_and_file}")
  list(GET words 0 primitive)
  list(GET words 1 file)
  mlxvk_feature(found primitives.h "class ${primitive} ")
  mlxvk_feature(found_fast fast_primitives.h "class ${primitive} ")
  if(NOT found AND NOT found_fast)
    list(APPEND mlxvk_left_out ${file})
  endif()
endforeach()
list(TRANSFORM mlxvk_left_out PREPEND "${PROJECT_SOURCE_DIR}/src/")

# Functions of MLX that src/overrides replaces. MLX's file is compiled with another
# name for each, which the replacement may call. tools/check_overrides.py (lint)
# compares these calls with that folder and with docs/dev/upstream.md.
#
#   mlxvk_override(OURS MLX <file>... FUNCTIONS <name>... [HEADER <file> | LEFT_OUT])
#
# A function f becomes f_of_mlx, or g with `f=g`, by a definition for the compiler.
# HEADER names a file of src/overrides that is included before MLX's first line and
# renames instead, where a definition would also change MLX's headers. LEFT_OUT: the
# file of MLX is not compiled on its own.
function(mlxvk_override ours)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LEFT_OUT" "HEADER" "MLX;FUNCTIONS")
  foreach(name IN LISTS arg_MLX)
    set(file "${MLX_SOURCE_DIR}/mlx/${name}.cpp")
    if(NOT EXISTS "${file}")
      message(FATAL_ERROR "src/overrides/${ours} replaces functions of ${file}, "
                          "which is not there.")
    elseif(arg_LEFT_OUT)
      get_target_property(sources mlx SOURCES)
      list(FILTER sources EXCLUDE REGEX "/mlx/${name}\\.cpp$")
      set_property(TARGET mlx PROPERTY SOURCES ${sources})
    elseif(arg_HEADER)
      set(header "${PROJECT_SOURCE_DIR}/src/overrides/${arg_HEADER}")
      set_property(SOURCE "${file}" TARGET_DIRECTORY mlx APPEND
                   PROPERTY COMPILE_OPTIONS "--include=${header}")
      set_property(SOURCE "${file}" TARGET_DIRECTORY mlx APPEND
                   PROPERTY OBJECT_DEPENDS "${header}")
    else()
      foreach(function IN LISTS arg_FUNCTIONS)
        if(NOT function MATCHES "=")
          string(APPEND function "=${function}_of_mlx")
        endif()
        set_property(SOURCE "${file}" TARGET_DIRECTORY mlx APPEND
                     PROPERTY COMPILE_DEFINITIONS "${function}")
      endforeach()
    endif()
  endforeach()
endfunction()

mlxvk_override(array_eval.cpp MLX array FUNCTIONS eval)
# MLX's enqueue() asks which thread it is on to know whether it throws.
mlxvk_override(cpu_errors.cpp MLX scheduler
               FUNCTIONS is_main_thread=enqueue_throws)
mlxvk_override(default_device.cpp MLX device
               FUNCTIONS default_device set_default_device)
mlxvk_override(default_device.cpp MLX stream FUNCTIONS default_stream)
mlxvk_override(eval.cpp MLX transforms FUNCTIONS eval async_eval
               HEADER renamed_evals.h)
mlxvk_override(float64.h MLX array FUNCTIONS float64 HEADER float64.h)
mlxvk_override(gather_qmm.cpp MLX ops FUNCTIONS gather_qmm)
mlxvk_override(linalg.h MLX linalg FUNCTIONS to_stream HEADER linalg.h)
# The is_available() that MLX's readers of files call means whether arrays of files
# are made on GPU streams.
mlxvk_override(load.cpp MLX io/load FUNCTIONS is_available=loads_on_gpu)
mlxvk_override(load.cpp MLX io/safetensors
               FUNCTIONS is_available=loads_on_gpu load_safetensors)
mlxvk_override(make_shared.h MLX array fast ops FUNCTIONS make_shared
               HEADER make_shared.h)
foreach(file array fast ops)
  set_property(SOURCE "${MLX_SOURCE_DIR}/mlx/${file}.cpp" TARGET_DIRECTORY mlx
               PROPERTY INCLUDE_DIRECTORIES "${MIMALLOC_SOURCE_DIR}/include")
endforeach()
mlxvk_override(metal.cpp MLX backend/metal/no_metal
               FUNCTIONS is_available start_capture stop_capture device_info
                         set_metallib_path get_metallib_path
               LEFT_OUT)
# The is_available() that MLX's metal_kernel() calls means whatever runs kernels.
mlxvk_override(metal_kernel.cpp MLX backend/common/metal_kernel
               FUNCTIONS metal_kernel is_available=kernels_available)
mlxvk_override(ring.cpp MLX distributed/ring/ring FUNCTIONS init LEFT_OUT)
mlxvk_override(scatter.h MLX ops FUNCTIONS size_of HEADER scatter.h)
# MLX's own throws: there is no CUDA.
mlxvk_override(traced_calls.cpp MLX backend/cuda/no_cuda
               FUNCTIONS precompiled_cuda_kernel)

# mimalloc in our library, for what it frees itself (overrides/make_shared.h).
add_library(mlxvk_array_memory STATIC "${MIMALLOC_SOURCE_DIR}/src/static.c")
target_include_directories(mlxvk_array_memory SYSTEM
                           PRIVATE "${MIMALLOC_SOURCE_DIR}/include")
# What it calls its time of compilation would make each build another.
set(MIMALLOC_TIMELESS [[-D__DATE__=""]] [[-D__TIME__=""]])
target_compile_options(mlxvk_array_memory PRIVATE -w ${MIMALLOC_TIMELESS})
target_link_libraries(mlxvk_array_memory PRIVATE Threads::Threads)
set_target_properties(mlxvk_array_memory PROPERTIES
                      POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)

# And as a library of its own, which `mlx-vulkan run` preloads into a program:
# most of the small allocations of a decode step cross from one library to
# another.
add_library(mlxvk_mimalloc SHARED "${MIMALLOC_SOURCE_DIR}/src/static.c")
target_include_directories(mlxvk_mimalloc SYSTEM
                           PRIVATE "${MIMALLOC_SOURCE_DIR}/include")
target_compile_definitions(
  mlxvk_mimalloc PRIVATE MI_SHARED_LIB MI_SHARED_LIB_EXPORT MI_MALLOC_OVERRIDE)
# A preloaded library's thread-local variables are always in the static block.
target_compile_options(mlxvk_mimalloc PRIVATE -w ${MIMALLOC_TIMELESS}
                                              -fno-builtin-malloc
                                              -ftls-model=initial-exec)
target_link_libraries(mlxvk_mimalloc PRIVATE Threads::Threads)
set_target_properties(mlxvk_mimalloc PROPERTIES OUTPUT_NAME mimalloc
                                                C_VISIBILITY_PRESET hidden)

# In a wheel beside the command that preloads it.
if(SKBUILD)
  set(folder "${SKBUILD_PLATLIB_DIR}/mlx_vulkan/lib")
else()
  set(folder lib/mlx_vulkan)
endif()
install(TARGETS mlxvk_mimalloc LIBRARY DESTINATION "${folder}")
install(FILES "${MIMALLOC_SOURCE_DIR}/LICENSE" DESTINATION "${folder}"
        RENAME mimalloc-LICENSE)

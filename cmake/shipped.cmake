# Compiles the kernels that src/pipeline/shipped.list lists, and puts the table of them
# into an object of the library (pipeline/shipped.h).
add_executable(ship_kernels EXCLUDE_FROM_ALL
               "${PROJECT_SOURCE_DIR}/tools/ship_kernels.cpp")
target_link_libraries(ship_kernels PRIVATE mlxvk_pipeline)

set(list "${PROJECT_SOURCE_DIR}/src/pipeline/shipped.list")
set(table "${CMAKE_BINARY_DIR}/shipped.table")
add_custom_command(
  OUTPUT "${table}"
  COMMAND ship_kernels "${table}" "${list}" "${CMAKE_BINARY_DIR}/shipped.cache"
  DEPENDS ship_kernels "${list}"
  COMMENT "Compiling the kernels that the library carries"
  VERBATIM)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/shipped.c" @ONLY CONTENT "
__asm__(\".section .rodata\\n.balign 16\\n\"
        \".globl mlxvk_shipped_begin, mlxvk_shipped_end\\n\"
        \".hidden mlxvk_shipped_begin, mlxvk_shipped_end\\n\"
        \"mlxvk_shipped_begin:\\n.incbin \\\"@table@\\\"\\n\"
        \"mlxvk_shipped_end:\\n\");
")
set_source_files_properties("${CMAKE_BINARY_DIR}/shipped.c"
                            PROPERTIES OBJECT_DEPENDS "${table}")
# A target of this folder, where the rule for the table is known.
add_library(mlxvk_shipped OBJECT "${CMAKE_BINARY_DIR}/shipped.c")
target_sources(mlx PRIVATE $<TARGET_OBJECTS:mlxvk_shipped>)

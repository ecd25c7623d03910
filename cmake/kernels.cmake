# Embeds src/kernels/** as text: the source file mlxvk_embedded.

file(GLOB_RECURSE mlxvk_kernels CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/kernels/*.comp"
     "${PROJECT_SOURCE_DIR}/src/kernels/*.glsl"
     "${PROJECT_SOURCE_DIR}/src/kernels/*.h")
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

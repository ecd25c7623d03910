# Embeds src/kernels/** and the rows of tuned chips as text: the source files
# mlxvk_embedded.

set(mlxvk_embedded)
function(mlxvk_embed name root)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/${root}/*.")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${ARGN})
  set(list "${CMAKE_BINARY_DIR}/${name}_list.txt")
  list(JOIN files "\n" lines)
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}\n")
  set(output "${CMAKE_BINARY_DIR}/${name}s.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND
      ${CMAKE_COMMAND} -DNAME=${name} -DROOT=${PROJECT_SOURCE_DIR}/${root}
      -DLIST=${list} -DOUTPUT=${output} -P
      ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} "${list}" "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    COMMENT "Embedding ${root}"
    VERBATIM)
  set(mlxvk_embedded ${mlxvk_embedded} "${output}" PARENT_SCOPE)
endfunction()

mlxvk_embed(embedded_source src/kernels comp glsl h)
mlxvk_embed(embedded_row src/ops/tuned/rows json)

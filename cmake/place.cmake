# Where a wheel has the library: in mlx_vulkan/lib, which is nobody else's, as
# mlx-cpu and mlx-cuda have theirs in mlx/lib too, and who is installed last
# would win. _mlx_vulkan.py, by mlx_vulkan.pth, loads it before mlx.core looks
# for one. Where no .pth is read (PYTHONPATH), mlx/lib/libmlx.so does: a library
# without content that needs ours.
if(NOT SKBUILD)
  return()
endif()
file(WRITE "${CMAKE_BINARY_DIR}/empty.c" "")
# What a library calls itself is what those that are linked with it ask for. In
# a file, as a shell would read the dollar.
file(WRITE "${CMAKE_BINARY_DIR}/far.options"
     "-soname \$ORIGIN/../../mlx_vulkan/lib/libmlx.so")
add_library(mlxvk_far SHARED "${CMAKE_BINARY_DIR}/empty.c")
target_link_options(mlxvk_far PRIVATE "LINKER:@${CMAKE_BINARY_DIR}/far.options")
set_target_properties(mlxvk_far PROPERTIES NO_SONAME ON)
add_library(mlxvk_forward SHARED "${CMAKE_BINARY_DIR}/empty.c")
target_link_libraries(mlxvk_forward PRIVATE -Wl,--no-as-needed mlxvk_far)
target_link_options(mlxvk_forward PRIVATE LINKER:-soname,libmlx.so)
set_target_properties(
  mlxvk_forward
  PROPERTIES NO_SONAME ON OUTPUT_NAME mlx BUILD_WITH_INSTALL_RPATH ON
             LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/forward")

install(FILES "${PROJECT_SOURCE_DIR}/python/mlx_vulkan.pth"
              "${PROJECT_SOURCE_DIR}/python/_mlx_vulkan.py"
        DESTINATION "${SKBUILD_PLATLIB_DIR}")
# Of what `make wheel` puts into the wheel beside them.
foreach(package IN ITEMS libopenblas0-pthread libgfortran5 libquadmath0)
  set(text "/usr/share/doc/${package}/copyright")
  if(EXISTS "${text}")
    file(REAL_PATH "${text}" text)
    install(FILES "${text}" DESTINATION "${SKBUILD_PLATLIB_DIR}/mlx_vulkan/lib"
            RENAME "${package}-copyright")
  endif()
endforeach()
# After MLX's own rules, which put the library into mlx/lib and tell find_package
# so.
install(CODE "
  set(ours \"${SKBUILD_PLATLIB_DIR}/mlx_vulkan/lib\")
  set(lib \"\${CMAKE_INSTALL_PREFIX}/lib\")
  file(MAKE_DIRECTORY \"\${ours}\")
  file(RENAME \"\${lib}/libmlx.so\" \"\${ours}/libmlx.so\")
  file(COPY \"$<TARGET_FILE:mlxvk_forward>\" DESTINATION \"\${lib}\")
  file(GLOB targets \"\${CMAKE_INSTALL_PREFIX}/share/cmake/MLX/MLXTargets-*.cmake\")
  foreach(file IN LISTS targets)
    file(READ \"\${file}\" text)
    string(REPLACE \"/lib/libmlx.so\" \"/../mlx_vulkan/lib/libmlx.so\" text \"\${text}\")
    file(WRITE \"\${file}\" \"\${text}\")
  endforeach()")

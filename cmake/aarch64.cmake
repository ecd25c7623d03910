# A toolchain for `make wheel-aarch64`: Debian's cross compiler, and the libraries
# of an unpacked root (tools/aarch64.sh). What the build runs, qemu-user runs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(MLXVK_AARCH64_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/root" CACHE PATH
    "Debian for arm64, unpacked")
cmake_path(NORMAL_PATH MLXVK_AARCH64_ROOT)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MLXVK_AARCH64_ROOT)
set(libraries "${MLXVK_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH "${MLXVK_AARCH64_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # the locked sources are elsewhere
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(BLAS_INCLUDE_DIRS
    "${MLXVK_AARCH64_ROOT}/usr/include/aarch64-linux-gnu/openblas-pthread"
    CACHE PATH "cblas.h")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libraries}")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64-static;-L;${MLXVK_AARCH64_ROOT})
